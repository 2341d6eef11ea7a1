"""What a worker finds where it runs, and whether a job can be run with it.

Nothing is imported here that executors may lack: it is what tells them so.
"""

import importlib
import os
import platform
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pyspark

from branchline.streaming.parcel import PACKAGES, digest

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

CONNECT_TIMEOUT_S = 5.0
SPARK_PORT, KAFKA_PORT = 7077, 9092
"""Where an address says none."""


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


def here() -> Found:
    """What is on this machine."""
    versions = {name: _version(name) for name in LIBRARIES}
    return Found(socket.gethostname(), python_here(), versions, digest(*PACKAGES))


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


def look(files: tuple[str, ...], probe: Path | None, bootstrap: str, _: Iterable[int]) -> Iterator[Found]:
    """What is found where this runs."""
    yield Found(
        socket.gethostname(),
        python_here(),
        {name: _version(name) if _imports(module) else None for name, module in LIBRARIES.items()},
        digest(*PACKAGES),
        tuple(each for each in files if not Path(each).is_file()),
        # Whoever sees the probe is on the same file system.
        probe is None or (probe.exists() and os.access(probe.parent, os.W_OK)),
        not bootstrap or not unreached(bootstrap, KAFKA_PORT),
    )


def unreached(addresses: str, default_port: int) -> list[str]:
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


def python_here() -> str:
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
