"""Processes as tests look at them: any of them may end between two looks."""

from collections.abc import Sequence
from contextlib import suppress

import psutil
from waiting import wait_until


def family(pid: int) -> list[psutil.Process]:
    """The process and all below it."""
    head = psutil.Process(pid)
    return [head, *head.children(recursive=True)]


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; one that only waits to be taken notice of, as an orphan may for a while, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_is_alive(pid: int) -> bool:
    try:
        return is_alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def living(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if is_alive(each)]


def named(processes: Sequence[psutil.Process], name: str) -> list[psutil.Process]:
    """Those of that name, as far as they still live."""
    found = []
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            if each.name() == name:
                found.append(each)
    return found


def await_end(processes: Sequence[psutil.Process], deadline_s: float) -> None:
    """Return when none of them lives: psutil's own way stumbles over one that is gone just then."""
    wait_until(lambda: not living(processes), deadline_s, f"{len(processes)} processes have ended")
