"""Arming failpoints in the folder that the suite's processes share."""

import os
from pathlib import Path

from waiting import wait_until

from branchline.streaming.failpoints import FOLDER


def _file(name: str) -> Path:
    return Path(os.environ[FOLDER]) / name


def arm(name: str, action: str = "fail") -> None:
    """Make whoever comes to the place next fail there."""
    _file(f"{name}@reached").unlink(missing_ok=True)
    _file(f"{name}@go").unlink(missing_ok=True)
    file = _file(f"{name}@new")
    file.write_text(action)
    file.rename(_file(name))


def reached(name: str) -> bool:
    """Whether somebody has been there since it was armed."""
    return _file(f"{name}@reached").exists()


def await_reached(name: str, deadline_s: float = 60) -> None:
    wait_until(lambda: reached(name), deadline_s, f"{name} is reached")


def let_go(name: str) -> None:
    """Let whoever holds at the place go on."""
    _file(f"{name}@go").touch()


def disarm_all() -> None:
    for file in Path(os.environ[FOLDER]).iterdir():
        file.unlink()
