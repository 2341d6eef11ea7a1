"""Are Spark's executors fit for a job? Asked once, before anything is read.

On a cluster, workers run on other machines with whatever Python is there. One that lacks a library would fail
batch after batch with words that nobody understands; one with another version might decide otherwise than the
next. So a job begins with one small task on each core that there is: it tells what it finds, and what is not
as here is refused by name. Executors that come later are not asked; a batch that fails there says why.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, ExecutorsUnfit, MasterUnreachable
from branchline.streaming.fitness import SPARK_PORT, Found, faults, here, look, python_here, unreached

Report = Callable[[str], None]

PYTHON = "spark.pyspark.python"
"""The Python that runs on executors; Spark itself reads it only if it starts the driver, too."""

EXECUTORS_DEADLINE_S = 300.0
"""How long executors may take to come: a cluster may have to pull an image first."""
TELL_AFTER_S = 15.0
"""When to say that none has come yet, and how often."""
STEADY_S = 1.0
"""Executors that come together come within this time."""
REASON_CHARS = 300

_SAME_PYTHON = (
    "give executors the same libraries: the same image, or a packed environment with --spark-conf "
    "spark.archives=... and spark.pyspark.python=..., see docs/operate.md"
)
_SAME_FILES = (
    "the checkpoint must be where all machines see it, a shared folder or an address as hdfs:// or s3a://; "
    "files that the client properties name must be on every machine at the same place"
)
_SAME_KAFKA = (
    "every machine must reach Kafka under the names of --bootstrap; the one that `up` runs is for its own"
)


def is_local(master: str) -> bool:
    """Whether executors are this machine's own processes."""
    return master.startswith("local")


def check_master(master: str) -> None:
    """Raise an error if a standalone master does not listen: Spark itself would try for a minute."""
    if not master.startswith("spark://"):
        return
    reasons = unreached(master.removeprefix("spark://"), SPARK_PORT)
    if reasons:
        raise MasterUnreachable(
            f"there is no Spark master to be reached ({'; '.join(reasons)})",
            hint="check --master, spark://host:port, and that the master listens on an address of that name",
        )


def check_python(conf: Mapping[str, str]) -> None:
    """Raise an error if the Python that executors are to run is not here too, where Spark needs it once."""
    python = conf.get(PYTHON, "")
    if "/" in python and not Path(python).exists():
        raise ConfigError(
            f"{PYTHON} is {python}, which is not on this machine",
            hint="it runs here too, to ask operators for their state: unpack the archive that executors get, "
            "so that the path is right from here as well",
        )


def check_executors(
    spark: SparkSession,
    report: Report,
    cluster: Cluster | None = None,
    folder: str | None = None,
    deadline_s: float = EXECUTORS_DEADLINE_S,
) -> list[Found]:
    """What runs the job, once it is there and fit for it; raises ExecutorsUnfit otherwise.

    Executors must reach the Kafka cluster, see the files that its clients need where this machine does, and
    be able to write to `folder`, if there is one.
    """
    _await_executors(spark, report, deadline_s)
    with _probe(folder) as probe:
        files = () if cluster is None else cluster.files()
        found = _ask(spark, partial(look, files, probe, "" if cluster is None else cluster.bootstrap))
    hosts = sorted({each.host for each in found})
    wrong = sorted({f"{each.host}: {fault}" for each in found for fault in faults(each, here())})
    if wrong:
        raise ExecutorsUnfit(
            f"Spark's executors cannot run the job: {'; '.join(wrong)}", hint=_hint(found, here())
        )
    report(f"spark: executors on {', '.join(hosts)} are fit")
    return found


def _hint(found: Sequence[Found], ours: Found) -> str:
    hints = {
        _SAME_PYTHON: any(
            (each.python, each.versions, each.package) != (ours.python, ours.versions, ours.package)
            for each in found
        ),
        _SAME_FILES: any(each.missing or not each.checkpoint for each in found),
        _SAME_KAFKA: not all(each.kafka for each in found),
    }
    return "; ".join(hint for hint, wanted in hints.items() if wanted)


@contextmanager
def _probe(folder: str | None) -> Iterator[Path | None]:
    """A file in the checkpoint's folder, for as long as executors are asked whether they see it."""
    if folder is None:
        yield None
        return
    path = Path(unquote(urlsplit(folder).path) if folder.startswith("file:") else folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    probe = path / f".branchline-{uuid4().hex}"
    probe.touch()
    try:
        yield probe
    finally:
        probe.unlink(missing_ok=True)


def _await_executors(spark: SparkSession, report: Report, deadline_s: float) -> None:
    """Return when executors are there, and no more of them have come for a moment."""
    status: Any = spark.sparkContext._jsc.sc()
    started = told = steady = time.monotonic()
    count = 0
    while not count or time.monotonic() < steady + STEADY_S:
        now = time.monotonic()
        try:
            registered = status.getExecutorMemoryStatus().size() - 1  # the driver is one of them
        except Py4JError as error:
            raise ExecutorsUnfit(
                f"Spark has ended while it waited for executors: {_reason(error)}",
                hint="check --master, and read the master's log",
            ) from None
        if registered != count:
            count, steady = registered, now
        if not count and now > started + deadline_s:
            raise ExecutorsUnfit(
                f"no executor came within {deadline_s:.0f} s",
                hint="are there workers with free cores, and with the memory that spark.executor.memory asks "
                "for (1g)? Can they reach this machine: --spark-conf spark.driver.host=NAME?",
            )
        if not count and now > told + TELL_AFTER_S:
            told = now
            report(f"spark: no executor after {now - started:.0f} s; waiting for free cores and memory")
        time.sleep(0.1)


def _ask(spark: SparkSession, look: Callable[[Iterable[int]], Iterable[Found]]) -> list[Found]:
    context = spark.sparkContext
    tasks = max(2, context.defaultParallelism)
    try:
        return context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except (PySparkException, Py4JError) as error:
        raise ExecutorsUnfit(
            f"Python does not run on Spark's executors: {_reason(error)}",
            hint=f"is {context.pythonExec} there, and {python_here()}? Else {_SAME_PYTHON}",
        ) from None


_TELLING = (
    re.compile(r"Cannot run program|No module named|VERSION_MISMATCH"),
    re.compile(r"(?:Error|Exception)\b"),
)


def _reason(error: Exception) -> str:
    """The line of a trace that says most: of a chain of errors the last one named is the cause."""
    lines = [line.strip() for line in str(error).splitlines() if not line.startswith("\tat ")]
    lines = [line for line in lines if line and "Py4J" not in line]
    for telling in _TELLING:
        found = [line for line in lines if telling.search(line)]
        if found:
            return found[-1][:REASON_CHARS]
    return (lines or [type(error).__name__])[0][:REASON_CHARS]
