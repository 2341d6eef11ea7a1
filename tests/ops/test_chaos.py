"""A short fixed schedule of faults on real jobs, judged by the checker, and what a verdict is worth."""

from dataclasses import replace

import pytest

from branchline.kafka.home import Home
from branchline.kafka.jars import ensure_jars
from branchline.ops.chaos.faults import Fault
from branchline.ops.chaos.report import CLEAN, FINDINGS, VOID, Report
from branchline.ops.chaos.run import Plan, judge, run
from branchline.ops.chaos.world import AT_LEAST_ONCE, EXACTLY_ONCE
from branchline.routing.history import Entry, Published, Read

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

FAULTS = (
    Fault("worker-kill", hold_s=0.0, pause_s=0.5, into=0.5),
    Fault("cut", hold_s=1.0, pause_s=0.5, into=0.3),
    Fault("disk-full", hold_s=1.0, pause_s=0.5, into=0.6),
    Fault("kafka-stop", hold_s=1.0, pause_s=0.5, into=0.2),
)
"""Drivers are killed in `test_kills.py`."""


@pytest.fixture(scope="module")
def report() -> Report:
    """The run; what it told on its way stands in the test's output if it fails."""
    plan = Plan(1, None, nodes=1, delivery=EXACTLY_ONCE, events_per_s=60, optimizer=False, faults=FAULTS)
    return run(plan, ensure_jars(Home.default(), print), print)


def test_faults_lose_nothing(report: Report) -> None:
    """Four faults of different kinds, most of them in a batch: nothing lost, misrouted, repeated, swapped."""
    print(report.describe())
    assert report.exit_code == CLEAN, report.describe()
    assert [each.fault for each in report.struck] == list(FAULTS)
    assert report.verdict.owed > 200, "or there was little to lose"
    assert report.verdict.ordered > 100, "or there was little to be out of order"


def test_a_verdict_depends_on_every_record(report: Report) -> None:
    """The recorded history without one record that was owed, with one for somebody else, in another order, or
    with one twice where that is forbidden, is not clean.
    """
    history = list(report.history)
    owed = _owed(history)
    first = history[owed]
    assert isinstance(first, Read)

    lost = judge([*history[:owed], *history[owed + 1 :]], EXACTLY_ONCE)
    assert [(each.subscriber, each.event) for each in lost.lost] == [(first.subscriber, first.event)]
    assert replace(report, verdict=lost).exit_code == FINDINGS

    twice = [*history[:owed], first, *history[owed:]]
    assert judge(twice, AT_LEAST_ONCE).clean
    [repeat] = judge(twice, EXACTLY_ONCE).duplicated
    assert (repeat.subscriber, repeat.event) == (first.subscriber, first.event)

    unasked = replace(first, subscriber="nobody")
    assert judge([*history, unasked], EXACTLY_ONCE).misrouted

    one, other = _neighbours(history)
    swapped = list(history)
    swapped[one], swapped[other] = swapped[other], swapped[one]
    assert judge(swapped, EXACTLY_ONCE).out_of_order


def test_a_run_is_void_if_its_faults_missed(report: Report) -> None:
    """Fewer than half of the faults in a batch: clean or not, that shows nothing."""
    missed = [replace(each, batch=None) for each in report.struck]
    assert replace(report, struck=[*report.struck[:1], *missed[1:]]).exit_code == VOID
    assert replace(report, struck=[*report.struck[:3], *missed[3:]]).exit_code == CLEAN
    assert replace(report, struck=[]).exit_code == VOID


def _owed(history: list[Entry]) -> int:
    """Where a record stands whose loss the checker must find: had nobody read anything, it would be lost."""
    unread = judge([each for each in history if not isinstance(each, Read)], EXACTLY_ONCE)
    owed = {(each.subscriber, each.event) for each in unread.lost}
    return next(
        place
        for place, each in enumerate(history)
        if isinstance(each, Read) and (each.subscriber, each.event) in owed
    )


def _neighbours(history: list[Entry]) -> tuple[int, int]:
    """Where two reads stand of one subscriber and one stream."""
    streams = {each.event: each.stream for each in history if isinstance(each, Published)}
    last: dict[tuple[str, object], int] = {}
    for place, each in enumerate(history):
        if not isinstance(each, Read) or streams[each.event] is None:
            continue
        stream = each.subscriber, streams[each.event]
        if stream in last:
            return last[stream], place
        last[stream] = place
    raise AssertionError("no stream has two records")
