"""What a figure was measured on: a number without its machine and versions says nothing."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from branchline.kafka.errors import BranchlineError
from branchline.kafka.java import find_java

PACKAGES = ("branchline", "numba", "numpy", "pyspark", "pyarrow", "confluent-kafka")


def facts(seed: int) -> dict[str, Any]:
    """The machine, what else it was doing, versions, and the seed."""
    return {
        "machine": {
            "cpu": _cpu(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "memory_gb": _memory_gb(),
            "system": f"{platform.system()} {platform.machine()}",
            "load": round(os.getloadavg()[0], 2),
        },
        "versions": {
            "python": platform.python_version(),
            "java": _java(),
            **{name: _version(name) for name in PACKAGES},
        },
        "seed": seed,
    }


def facts_text(found: dict[str, Any]) -> str:
    """The same for people, in two lines."""
    machine, versions = found["machine"], found["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}, "
        f"load {machine['load']}; seed {found['seed']}\n"
        + ", ".join(f"{name} {number}" for name, number in versions.items())
    )


def warning(found: dict[str, Any]) -> str | None:
    """What to say if others are busy on this machine: figures are then too low, and not alike."""
    load, cores = found["machine"]["load"], found["machine"]["cores"]
    return f"the machine is busy (load {load}): figures will be off" if load > cores / 2 else None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor() or "unknown",
    )


def _memory_gb() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def _java() -> str:
    try:
        return find_java().version
    except BranchlineError:
        return "none"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
