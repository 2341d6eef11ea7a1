"""The `branchline up` of this machine's home folder: there is one at most, and other commands find it.

It holds a lock on `run/up.json` for as long as it lives, and writes its Kafka's address there. The lock and
not a process id tells whether it lives: the system drops it however the process ends, and never reuses it.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from branchline.kafka.errors import KafkaDataInUse
from branchline.kafka.home import Home

CLAIM_TIMEOUT_S = 1.0
"""Commands that look hold the lock for an instant; another `up` holds it for longer than this."""

POLL_S = 0.02


@contextlib.contextmanager
def claim(home: Home) -> Iterator[Callable[[str], None]]:
    """Be the home's `up`; the function given tells others the address."""
    path = _path(home)
    home.make(home.run)
    with path.open("a+") as file:
        _lock(file, home)
        file.truncate(0)
        try:
            yield lambda bootstrap: _write(file, {"bootstrap": bootstrap, "pid": os.getpid()})
        finally:
            # Not deleted: whoever has it open would lock a file that nobody else sees.
            file.truncate(0)


def running_bootstrap(home: Home) -> str | None:
    """The address of the Kafka that the home's live `up` runs, if there is one."""
    try:
        with _path(home).open() as file:
            if _take(file, fcntl.LOCK_SH):
                return None
            return str(json.load(file)["bootstrap"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(home: Home) -> Path:
    return home.run / "up.json"


def _lock(file: IO[str], home: Home) -> None:
    deadline = time.monotonic() + CLAIM_TIMEOUT_S
    while not _take(file, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            raise KafkaDataInUse(
                f"another `branchline up` is running in {home.root}",
                hint="use that one, stop it with Ctrl-C, or set BRANCHLINE_HOME to another folder",
            )
        time.sleep(POLL_S)


def _take(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: IO[str], fields: dict[str, object]) -> None:
    file.write(json.dumps(fields))
    file.flush()
