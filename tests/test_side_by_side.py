"""What `make test` runs when."""

from types import SimpleNamespace
from typing import Any

from side_by_side import FAST_PARTS, PARTS, may_begin

WAITING, OTHER_WAITING, *FAST = PARTS


def beside(*running: tuple[Any, bool]) -> list[Any]:
    return [SimpleNamespace(part=part, politely=politely) for part, politely in running]


def test_one_part_takes_what_two_that_wait_leave() -> None:
    """Politely, and never two of them; as soon as one that waits has ended, the next takes its place."""
    assert may_begin(WAITING, []) is False
    assert may_begin(OTHER_WAITING, beside((WAITING, False))) is False
    both = [(WAITING, False), (OTHER_WAITING, False)]
    assert may_begin(FAST[0], beside(*both)) is True
    assert may_begin(FAST[1], beside(*both, (FAST[0], True))) is None
    assert may_begin(FAST[1], beside(both[0], (FAST[0], True))) is False
    assert may_begin(FAST[2], beside(both[0], (FAST[0], True), (FAST[1], False))) is None
    assert may_begin(FAST[2], beside(both[0], (FAST[1], False))) is True


def test_when_nobody_waits_two_run_at_a_time() -> None:
    """The polite one is one of them: nobody takes its time any more."""
    assert may_begin(FAST[2], beside((FAST[0], True))) is False
    assert may_begin(FAST[2], beside((FAST[0], True), (FAST[1], False))) is None
    assert may_begin(FAST[3], beside((FAST[1], False), (FAST[2], False))) is None
    assert len(FAST) == FAST_PARTS
