"""Are Spark's executors fit for a job? Asked once, before anything is read.

On a cluster, workers run on other machines with whatever Python is there. One that lacks a library would fail
batch after batch with words that nobody understands; one with another version might decide otherwise than the
next. So a job begins with one small task on each core that there is: it tells what it finds, and what is not
as here is refused by name. Executors that come later are not asked; a batch that fails there says why.

Nothing is imported here that executors may lack.
"""

import importlib
import os
import platform
import re
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from branchline.kafka.errors import ConfigError, ExecutorsUnfit, MasterUnreachable
from branchline.streaming.parcel import PACKAGES, digest

if TYPE_CHECKING:  # it imports a library that executors may lack
    from branchline.kafka.cluster import Cluster

Report = Callable[[str], None]

LIBRARIES = {
    "confluent-kafka": "confluent_kafka",
    "lark": "lark",
    "numpy": "numpy",
    "pandas": "pandas",
    "protobuf": "google.protobuf",
    "pyarrow": "pyarrow",
    "pyspark": "pyspark",
}
"""What workers import beside the package itself, with the module to try."""

PYTHON = "spark.pyspark.python"
"""The Python that runs on executors; Spark itself reads it only if it starts the driver, too."""

EXECUTORS_DEADLINE_S = 300.0
"""How long executors may take to come: a cluster may have to pull an image first."""
TELL_AFTER_S = 15.0
"""When to say that none has come yet, and how often."""
STEADY_S = 1.0
"""Executors that come together come within this time."""
CONNECT_TIMEOUT_S = 5.0
SPARK_PORT, KAFKA_PORT = 7077, 9092
"""Where an address says none."""
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


@dataclass(frozen=True, slots=True)
class Found:
    """What a task found where it ran."""

    host: str
    python: str
    versions: dict[str, str | None]
    package: str
    """What tells the package, as it is imported there, from every other version."""
    missing: tuple[str, ...] = ()
    """Files that should be there, and are not."""
    checkpoint: bool = True
    """Whether the checkpoint's folder is there, the same one, and can be written to."""
    kafka: bool = True
    """Whether somebody listens at one of Kafka's addresses."""


def is_local(master: str) -> bool:
    """Whether executors are this machine's own processes."""
    return master.startswith("local")


def check_master(master: str) -> None:
    """Raise an error if a standalone master does not listen: Spark itself would try for a minute."""
    if not master.startswith("spark://"):
        return
    reasons = _unreached(master.removeprefix("spark://"), SPARK_PORT)
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
    cluster: "Cluster | None" = None,
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
        found = _ask(spark, partial(_look, files, probe, "" if cluster is None else cluster.bootstrap))
    hosts = sorted({each.host for each in found})
    wrong = sorted({f"{each.host}: {fault}" for each in found for fault in faults(each, here())})
    if wrong:
        raise ExecutorsUnfit(
            f"Spark's executors cannot run the job: {'; '.join(wrong)}", hint=_hint(found, here())
        )
    report(f"spark: executors on {', '.join(hosts)} are fit")
    return found


def here() -> Found:
    """What is on this machine."""
    versions = {name: _version(name) for name in LIBRARIES}
    return Found(socket.gethostname(), _python(), versions, digest(*PACKAGES))


def faults(found: Found, ours: Found) -> Iterator[str]:
    """What is not as it must be, each in a few words."""
    if found.python != ours.python:
        yield f"Python {found.python} is not {ours.python}"
    for name, version in ours.versions.items():
        there = found.versions.get(name)
        if there is None:
            yield f"{name} is missing"
        elif there != version:
            yield f"{name} {there} is not {version}"
    if found.package != ours.package:
        yield "another version of branchline is imported there"
    for file in found.missing:
        yield f"{file} is not there"
    if not found.kafka:
        yield "Kafka cannot be reached from there"
    if not found.checkpoint:
        yield "the folder of the checkpoint is not the same as here, or cannot be written to"


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
            hint=f"is {context.pythonExec} there, and {_python()}? Else {_SAME_PYTHON}",
        ) from None


def _look(files: tuple[str, ...], probe: Path | None, bootstrap: str, _: Iterable[int]) -> Iterator[Found]:
    """What is found where this runs."""
    yield Found(
        socket.gethostname(),
        _python(),
        {name: _version(name) if _imports(module) else None for name, module in LIBRARIES.items()},
        digest(*PACKAGES),
        tuple(each for each in files if not Path(each).is_file()),
        # Whoever sees the probe is on the same file system.
        probe is None or (probe.exists() and os.access(probe.parent, os.W_OK)),
        not bootstrap or not _unreached(bootstrap, KAFKA_PORT),
    )


def _unreached(addresses: str, default_port: int) -> list[str]:
    """Why nobody listens at any of the addresses; nothing if somebody does."""
    reasons = []
    for address in addresses.split(","):
        host, _, port = address.strip().rpartition("/")[2].rpartition(":")
        if not port.isdecimal():
            host, port = f"{host}:{port}" if host else port, str(default_port)
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
            return []
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {error}")
    return reasons


def _python() -> str:
    return f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"


def _imports(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _version(name: str) -> str | None:
    if name == "pyspark":
        # The one that runs: an executor has it from its own Spark, whatever else is installed.
        return pyspark.__version__
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


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
