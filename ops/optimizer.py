"""`optimizer`: the Tree Optimizer as a process of its own, and as a companion of a router."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import BranchlineError
from branchline.kafka.home import Home
from branchline.ops.durations import duration_ms
from branchline.ops.numbers import FiniteRange
from branchline.ops.settings import LIMIT, SNAPSHOT_EVERY, THRESHOLD, make_topics, option
from branchline.routing.prefix.optimizer import Settings

if TYPE_CHECKING:  # it imports Spark, which takes a second
    from pyspark.sql import SparkSession

    from branchline.streaming.optimizer import OptimizerConfig

CHECKPOINT_NAME = "optimizer.trees"
"""Of the default checkpoint, beside those of routers: no broker's name has a dot."""


def tree_options(command: Any) -> Any:
    """When the tree is told."""
    for setting, kind in ((SNAPSHOT_EVERY, duration_ms), (LIMIT, duration_ms), (THRESHOLD, FiniteRange())):
        command = option(setting, kind)(command)
    return command


def optimizer_config(
    cluster: Cluster,
    namespace: str,
    checkpoint: str,
    parts: int,
    threshold: float,
    limit: int,
    snapshot_every: int,
) -> "OptimizerConfig":
    """What the job is told; what is wrong is refused before anything is started."""
    from branchline.streaming.optimizer import OptimizerConfig

    make_topics(namespace)
    settings = Settings(parts=parts, threshold=threshold, limit_ms=limit, snapshot_ms=snapshot_every)
    return OptimizerConfig(cluster, checkpoint, namespace, settings)


def default_checkpoint(home: Home, cluster: Cluster, namespace: str) -> str:
    """Where the optimizer keeps its state unless it is told otherwise."""
    from branchline.ops import job

    return job.default_checkpoint(home, cluster, namespace, CHECKPOINT_NAME)


@contextlib.contextmanager
def beside(
    spark: "SparkSession", config: "OptimizerConfig", report: Callable[[str], None], log: Path
) -> Iterator[None]:
    """A Tree Optimizer in a thread of its own. If it cannot go on, that is told, and the router goes on."""
    from branchline.streaming.job import OptimizerJob

    stop = Event()

    def run() -> None:
        try:
            OptimizerJob(spark, config, report, log).run(stop)
        except BranchlineError as error:
            report(f"optimizer: {error}; the router goes on without it, less precisely. {error.hint}")

    thread = threading.Thread(target=run, name="optimizer")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
