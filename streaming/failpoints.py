"""Named places at which a test makes the program fail. They do nothing unless a test has armed them.

A failpoint is armed by a file of its name in the folder that the environment names; the file says what is to
happen, and is taken away by whoever reaches the place first, unless it is for all that come. Workers, drivers
and a test's own process share nothing else.
"""

import os
import signal
import time
from pathlib import Path

FOLDER = "BRANCHLINE_FAILPOINTS"
"""The variable that names the folder. Without it nothing is ever looked for."""

HOLD_MOST_S = 60.0
ALWAYS = "always"


class FailpointReached(Exception):
    """A test wanted the program to fail here."""


def reach(name: str, shard: int | None = None) -> None:
    """Do what a test has asked for at this place, or for this shard at this place."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    for each in (name,) if shard is None else (f"{name}.{shard}", name):
        action = _take(Path(folder) / each)
        if action is not None:
            _do(each, action, Path(folder))


def _take(armed: Path) -> str | None:
    try:
        if armed.read_text() == ALWAYS:
            return ALWAYS
    except FileNotFoundError:
        return None
    taken = armed.with_name(f"{armed.name}@{os.getpid()}")
    try:
        armed.rename(taken)
    except FileNotFoundError:
        return None
    action = taken.read_text()
    taken.rename(armed.with_name(f"{armed.name}@reached"))
    return action


def _do(name: str, action: str, folder: Path) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "hold":
        deadline = time.monotonic() + HOLD_MOST_S
        while not (folder / f"{name}@go").exists():
            if time.monotonic() > deadline:
                raise FailpointReached(f"{name}: nobody let go")
            time.sleep(0.02)
    else:
        raise FailpointReached(name)
