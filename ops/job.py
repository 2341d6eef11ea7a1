"""The router job in this process: Spark started, run until it is told to stop, and stopped.

The one module here that imports Spark, which takes a second: the commands import it when they need it.
"""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from branchline.kafka.admin import cluster_id
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import JobFailed
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars
from branchline.ops.spark_options import SparkChoice
from branchline.streaming.executors import check_executors, check_master, check_python, is_local
from branchline.streaming.parcel import make_parcel
from branchline.streaming.session import create_session, is_local_path, stop_session

Report = Callable[[str], None]

REASON_CHARS = 200

# py4j logs to the root logger when Java is gone, which without a handler prints a stack trace.
logging.getLogger().addHandler(logging.NullHandler())


def default_checkpoint(home: Home, cluster: Cluster, namespace: str, name: str) -> str:
    """A folder of its own for every cluster and job: a checkpoint means nothing to another one."""
    return str(home.checkpoints / cluster_id(cluster) / namespace / name)


def start_spark(
    stack: contextlib.ExitStack,
    jars: Jars,
    report: Report,
    choice: SparkChoice,
    checkpoint: str,
    log: Path,
    cluster: Cluster | None = None,
) -> SparkSession:
    """A Spark session that is stopped with the stack.

    Executors on other machines are fit to run a job on the Kafka cluster.
    """
    report(f"spark: starting ({choice.master}), log {log}")
    on_path, here = is_local_path(checkpoint), is_local(choice.master)
    check_master(choice.master)
    check_python(choice.conf)
    home = Home.default()
    parcel = None if here else make_parcel(home.make(home.run))
    try:
        spark = create_session(
            jars.spark,
            log,
            choice.master,
            # A folder that several machines share is not on a local disk.
            local_checkpoint=on_path and here,
            more=choice.conf,
            parcel=parcel,
        )
    except (PySparkException, Py4JError) as error:
        raise JobFailed(
            f"Spark did not start: {_reason(error)}",
            hint=f"check --master, and read {log.with_suffix('.out')}",
        ) from None
    stack.callback(_stop, spark)
    stack.callback(report, "spark: stopping")
    if not here:
        check_executors(spark, report, cluster, checkpoint if on_path else None)
    return spark


def kill_spark(spark: SparkSession) -> None:
    """End Spark's Java process at once: what is in progress is run again from the checkpoint."""
    gateway: Any = spark.sparkContext._gateway
    gateway.proc.kill()


def _stop(spark: SparkSession) -> None:
    # A Java process that is gone already cannot be asked to stop.
    with contextlib.suppress(Py4JError, OSError):
        stop_session(spark)


def _reason(error: Exception) -> str:
    """The line of a Java trace that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line.partition(": ")[2] for line in lines if line.startswith(("org.apache.spark.", "java."))]
    return (named or lines or [type(error).__name__])[0][:REASON_CHARS]
