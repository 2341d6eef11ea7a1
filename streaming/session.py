"""The Spark session that all jobs share, and every setting of it, in one place.

Each setting stands with its reason; `docs/architecture.md` has the measured effect of those that matter.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from branchline.kafka.class_archives import ClassArchive, class_archive
from branchline.streaming.executors import PYTHON, is_local
from branchline.streaming.images import FOLDER
from branchline.streaming.watchdog import watch

_STATE = "spark.sql.streaming.stateStore"

SETTINGS: dict[str, str] = {
    # State larger than memory, and one small changelog file per batch instead of a whole snapshot.
    f"{_STATE}.providerClass": ("org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"),
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    # Python workers talk to the JVM over Unix sockets: tens of milliseconds less a batch.
    "spark.python.unix.domain.socket.enabled": "true",
    # Workers are forked with all that they need in memory, see there.
    "spark.python.daemon.module": "branchline.streaming.daemon",
    # Batches to keep for going back; the default of 100 only fills the disk.
    "spark.sql.streaming.minBatchesToRetain": "20",
    # A batch of events fits one Arrow batch, so the operator sees few, large frames.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # And one of large events is divided before it fills the memory.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 1024 * 1024),
    # An idle query asks Kafka for news so often; the default of 10 ms takes a third of a core, all the time.
    "spark.sql.streaming.pollingDelay": "100ms",
    # A batch without input would only cost time: nothing here waits for Spark's own clock.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Spark turns it off for such queries anyway, with a warning for each.
    "spark.sql.adaptive.enabled": "false",
    # A query that does not stop, because Kafka is gone, must not keep the process from stopping.
    "spark.sql.streaming.stopTimeout": "15s",
    # No web server unless asked for: the `branchline` command shows what there is to see.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What signs in to Kafka stands in the options of the sources: whoever turns the pages or the log on does
    # not find it there. The first is Spark's own, and `jaas`.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas",
    "spark.sql.redaction.options.regex": "(?i)url|secret|password|jaas",
    "spark.sql.session.timeZone": "UTC",
}

JVM_STOP_DEADLINE_S = 30.0

LOCAL_CHECKPOINT = {
    # With the changelog it saves 150 ms a batch. Its rename is atomic on a local disk, and only there.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Hadoop keeps a checksum beside each file on a local disk already; Spark would add a file of its own.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}

LOCAL_MASTER = {
    # A job on one machine has no business on any other address.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Hadoop's own starts `chmod` for every file of a checkpoint, several times a batch.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
}

REMOTE_MASTER = {
    # An executor of a job that runs for months would fill its disk with what it has to say.
    "spark.executor.logs.rolling.strategy": "size",
    "spark.executor.logs.rolling.maxSize": str(20 * 1024 * 1024),
    "spark.executor.logs.rolling.maxRetainedFiles": "3",
}

EXECUTOR_VARIABLES = (FOLDER,)
"""Environment variables that are for executors too: theirs is not this process's environment."""

COLLECTOR = ("-XX:+UseParallelGC", "-XX:NewRatio=1")
"""What a batch makes is garbage at its end: with much room for what is young, little of it is ever copied.
Java's own choice works beside the batches, and takes their time where there are few cores."""

_PYTHONPATH = "spark.executorEnv.PYTHONPATH"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"

_LOG4J = """\
status = error
appenders = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


def is_local_path(location: str) -> bool:
    """Whether a checkpoint location is on this machine's own disk."""
    return location.startswith("file:") or "://" not in location


def create_session(
    jars: Sequence[Path],
    log_file: Path,
    master: str,
    app_name: str = "branchline",
    local_checkpoint: bool = True,
    driver_memory: str = "1g",
    more: Mapping[str, str] | None = None,
    parcel: Path | None = None,
    record: ClassArchive | None = None,
) -> SparkSession:
    """A new session with our settings and then `more`, logging to a file.

    With a parcel (`parcel.py`), executors import the package from there. With `record` its Java writes that
    archive when it stops.
    """
    log_file.parent.mkdir(parents=True, exist_ok=True)
    configuration = log_file.with_suffix(".log4j2.properties")
    configuration.write_text(_LOG4J.format(log=log_file))
    # A failed batch's trace comes with the query's own exception; py4j would also print it.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    given = dict(more or {})
    # Without it, workers run whatever `python3` is first on the path.
    os.environ["PYSPARK_PYTHON"] = _python(given, master)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOCAL_MASTER["spark.driver.host"])
    settings = {"spark.driver.memory": driver_memory}
    settings |= settings_for(master, local_checkpoint, given, parcel)
    # To what is given, not in place of it.
    archive = spark_archive(jars).options() if record is None else record.recording()
    logging_to = f"-Dlog4j2.configurationFile={configuration}"
    options = (*archive, logging_to, *_collector(given), given.get(_JAVA_OPTIONS))
    settings[_JAVA_OPTIONS] = " ".join(filter(None, options))
    # An archive has classes of Java's own class path only, and jars that come to it later are not on it.
    settings[_CLASS_PATH] = ":".join(filter(None, (*map(str, jars), given.get(_CLASS_PATH))))
    settings["spark.jars"] = ",".join(filter(None, (*map(str, jars), given.get("spark.jars"))))
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _standard_error_to(log_file.with_suffix(".out")), _importing_from(parcel):
        spark = builder.getOrCreate()
    gateway: Any = spark.sparkContext._gateway
    # Kept with the JVM: its pipe closes when this process ends, however it ends.
    gateway.watchdog = watch(gateway.proc.pid)
    if parcel is not None:
        # Not as a Python file: modules that this process has yet to import would come from there too.
        spark.sparkContext.addFile(str(parcel))
    return spark


def settings_for(
    master: str, local_checkpoint: bool, given: Mapping[str, str], parcel: Path | None = None
) -> dict[str, str]:
    """All settings that do not hang on this machine's files; what is given wins."""
    settings = dict(SETTINGS)
    if local_checkpoint:
        settings |= LOCAL_CHECKPOINT
    if is_local(master):
        settings |= LOCAL_MASTER
    else:
        settings |= REMOTE_MASTER
        settings |= {
            f"spark.executorEnv.{name}": os.environ[name] for name in EXECUTOR_VARIABLES if name in os.environ
        }
    settings |= given
    if parcel is not None:
        # By its bare name: Spark puts it into the folder in which an executor, and so its workers, run.
        settings[_PYTHONPATH] = ":".join(filter(None, (parcel.name, given.get(_PYTHONPATH))))
    return settings


def _collector(given: Mapping[str, str]) -> tuple[str, ...]:
    """Ours, unless another one is asked for: Java refuses to start with two."""
    asked = given.get(_JAVA_OPTIONS, "")
    return () if "GC" in asked else COLLECTOR


def _python(given: Mapping[str, str], master: str) -> str:
    if PYTHON in given:
        return given[PYTHON]
    return sys.executable if is_local(master) else os.environ.get("PYSPARK_PYTHON", sys.executable)


def spark_archive(jars: Sequence[Path]) -> ClassArchive:
    """What the driver's Java has to load, as it was written down once."""
    return class_archive("spark", jars[0].parent, Path(pyspark.__file__).parent)


def stop_session(spark: SparkSession, deadline_s: float = JVM_STOP_DEADLINE_S) -> None:
    """Stop Spark, and return when its JVM has ended: no process is left behind."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    # The JVM waits for the end of its standard input.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=deadline_s)
    gateway.watchdog.communicate()
    SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Let the JVM, and so its workers, inherit a file as standard error: their chatter is not for people."""
    sys.stderr.flush()
    saved = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


@contextlib.contextmanager
def _importing_from(parcel: Path | None) -> Iterator[None]:
    """Let the JVM inherit the parcel on the Python path: Spark also starts a worker beside the driver, with
    the executors' Python, to ask a stateful operator for its variables.
    """
    if parcel is None:
        yield
        return
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(parcel), before)))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
