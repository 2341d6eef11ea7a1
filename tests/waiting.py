"""The one way in which tests wait: for a condition, with a deadline, saying what for."""

import time
from collections.abc import Callable

POLL_S = 0.02

PATIENCE = 3
"""Deadlines are for a machine that is quiet; where much else runs, all takes a multiple."""


def wait_until(condition: Callable[[], object], deadline_s: float, what: str) -> None:
    """Return once the condition holds; fail the test if it does not by the deadline."""
    end = time.monotonic() + PATIENCE * deadline_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE * deadline_s} s in vain: {what}")
        time.sleep(POLL_S)
