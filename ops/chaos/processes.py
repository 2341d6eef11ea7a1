"""Processes on this machine, as Linux shows them: who is whose child, and signals and limits for them.

A process id may be given again, so a process is known by its id and the time it was started at.
"""

import contextlib
import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_PARENT, _STATE, _STARTED = 1, 0, 19
"""Places of the fields in /proc/PID/stat behind the name."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, alive or not."""

    pid: int
    started: int

    def is_alive(self) -> bool:
        """Whether it runs; one that only waits to be taken notice of does not."""
        fields = _fields(self.pid)
        return fields is not None and int(fields[_STARTED]) == self.started and fields[_STATE] != "Z"

    def signal(self, number: int) -> bool:
        """Send the signal; whether there was anybody to get it."""
        if not self.is_alive():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False

    def kill(self) -> bool:
        return self.signal(signal.SIGKILL)

    def name(self) -> str:
        """What it runs, shortly: `java`, `python3`; nothing if it is gone."""
        with contextlib.suppress(OSError):
            return (PROC / str(self.pid) / "comm").read_text().strip()
        return ""

    def command(self) -> str:
        """How it was called; nothing if it is gone."""
        with contextlib.suppress(OSError):
            return (
                (PROC / str(self.pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        return ""

    def limit_files(self, most_bytes: int | None) -> bool:
        """Let no file that it writes grow beyond this, until it is called with None; whether it is there.

        Only the soft limit is moved, which any process of the same user may move back.
        """
        with contextlib.suppress(ProcessLookupError):
            if self.is_alive():
                _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
                resource.prlimit(
                    self.pid, resource.RLIMIT_FSIZE, (hard if most_bytes is None else most_bytes, hard)
                )
                return True
        return False


def find(pid: int) -> Process | None:
    """The process of that id, if there is one."""
    fields = _fields(pid)
    return Process(pid, int(fields[_STARTED])) if fields is not None else None


def family(pid: int) -> list[Process]:
    """The process and all below it, parents before their children; those that are there at this moment."""
    children: dict[int, list[Process]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))) is not None:
            found = Process(int(entry.name), int(fields[_STARTED]))
            children.setdefault(int(fields[_PARENT]), []).append(found)
    head = find(pid)
    everything = [head] if head is not None else []
    for each in everything:  # grows while it is gone through
        everything += children.get(each.pid, [])
    return everything


def _fields(pid: int) -> list[str] | None:
    try:
        # The name is in brackets, and may hold anything.
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
