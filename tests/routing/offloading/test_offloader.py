"""Subscribers that find out where filters go: what they say is verified, and nobody hangs on them."""

from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_filters import filters_in, sql

from branchline.ops.simulation.helpers import Helpers
from branchline.routing.codes import Code
from branchline.routing.dissemination.shared import SharedTable, View
from branchline.routing.dissemination.summaries import CoveringSummary, hides
from branchline.routing.filters import Filter, covers
from branchline.routing.offloading.assisting import (
    ASSIST_MAX_MS,
    ASSIST_MIN_MS,
    VOLUNTEERS_MAX,
    Assist,
)
from branchline.routing.offloading.client import answer
from branchline.routing.offloading.facts import Volunteered, Worked
from branchline.routing.offloading.layers import cut
from branchline.routing.offloading.messages import BATCH_MAX, Answer, Dispatch, Task
from branchline.routing.offloading.offloader import (
    COPIES,
    TIMEOUT_MS,
    WAIT_MS,
    WAITING_MOST,
    Offloader,
    Work,
)
from branchline.routing.posets.checking import link_faults, poset_faults

RANGES = filters_in(sql(*(f"x BETWEEN {low} AND {low + wide}" for low in range(8) for wide in (0, 2, 5, 9))))
FOREVER_MS = 10**12

Answers = Callable[[Task, str], list[Answer]]


def honest(task: Task, name: str) -> list[Answer]:
    return [answer(task, name, hides)]


def silent(task: Task, name: str) -> list[Answer]:
    return []


def told_alone(filters: list[Filter]) -> set[Filter]:
    """What a table for one neighbour tells of these."""
    made = CoveringSummary()
    for each in filters:
        made.add(each)
    return set(made.told())


class Broker:
    """An offloader, what one neighbour is told, and what an own table would tell it."""

    def __init__(self, batch: int = 3) -> None:
        self.offloader = Offloader("a", SharedTable(waits=True), batch)
        self.view: View = self.offloader.table.view()
        self.alone = CoveringSummary()

    def want(self, filters: list[Filter]) -> None:
        for each in filters:
            self.view.add(each)
            self.alone.add(each)

    def volunteer(self, *names: str, until_ms: int = FOREVER_MS, own: bool = False) -> None:
        for name in names:
            self.offloader.obey(Volunteered(name, until_ms, own))

    def finish(self, now_ms: int) -> list[Work]:
        """All that is to be done now; the tasks that are given."""
        given = []
        for step in self.offloader.finish(now_ms):
            if isinstance(step, Work):
                given.append(step)
            else:
                self.offloader.obey(step)
        return given

    def answer(self, given: list[Work], answers: Answers) -> int:
        """Have the tasks done; how many answers were taken."""
        taken = 0
        for work in given:
            for each in answers(work.dispatch.task, work.dispatch.client):
                if self.offloader.takes(each, own=False):
                    self.offloader.obey(Worked(each))
                    taken += 1
        return taken

    def place(self, filters: list[Filter], answers: Answers, now_ms: int = 0) -> int:
        """Have filters placed, in as many rounds as it takes; the time then."""
        self.want(filters)
        given = self.finish(now_ms)
        while self.offloader.table.waiting:
            self.answer(given, answers)
            due_ms = self.offloader.due_ms()
            assert due_ms is not None, "whoever waits is looked after"
            now_ms = max(now_ms, due_ms)
            given = self.finish(now_ms)
        return now_ms

    @property
    def counts(self) -> Iterator[int]:
        named = ("slices_offloaded", "slices_computed", "claims_refuted", "rounds_timed_out")
        return iter([self.offloader.counts[each] for each in named])


def test_without_volunteers_a_broker_places_filters_at_once() -> None:
    """And tells what a table of its own would."""
    broker = Broker()
    broker.want(RANGES)
    assert not broker.view.told()
    assert broker.finish(0) == []
    assert broker.view.told() == broker.alone.told()
    assert poset_faults(broker.offloader.table.poset) == []
    assert broker.offloader.due_ms() is None


def test_a_round_begins_when_enough_wait_or_long_enough() -> None:
    """Each slice goes to a few of those who have volunteered, and all get their turn."""
    broker = Broker(batch=3)
    broker.want(RANGES[:1])
    broker.finish(0)
    broker.volunteer("h0", "h1", "h2", "h3")
    broker.want(RANGES[1:3])
    assert broker.finish(10) == []
    assert broker.offloader.due_ms() == 10 + WAIT_MS
    broker.want(RANGES[3:4])
    first = broker.finish(20)
    assert [each.dispatch.client for each in first] == ["h0", "h1", "h2"]
    assert len(first) == COPIES and first[0].dispatch.task.batch == tuple(RANGES[1:4])
    assert broker.offloader.due_ms() == 20 + TIMEOUT_MS
    assert broker.answer(first, honest) == COPIES
    broker.want(RANGES[4:5])
    assert broker.finish(30) == []
    assert broker.offloader.due_ms() == 30 + WAIT_MS
    second = broker.finish(30 + WAIT_MS)
    assert [each.dispatch.client for each in second[:COPIES]] == ["h0", "h1", "h3"]
    assert broker.view.told() == told_alone(RANGES[:4])


def test_honest_volunteers_make_the_table_that_the_broker_would_have_made() -> None:
    """With a test for each link in place of a search."""
    broker, alone = Broker(batch=8), Broker()
    broker.want(RANGES[:8])
    broker.finish(0)
    broker.volunteer("h0", "h3", "h6")
    broker.place(RANGES[8:], honest)
    alone.want(RANGES)
    alone.finish(0)
    assert broker.view.told() == alone.view.told() == broker.alone.told()
    assert poset_faults(broker.offloader.table.poset) == []
    offloaded, computed, refuted, timed_out = broker.counts
    assert offloaded > 0 and computed == refuted == timed_out == 0
    tests = broker.offloader.counts["covering_tests"]
    assert 0 < tests < alone.offloader.counts["covering_tests"]


@given(st.integers(0, 10**6))
def test_whatever_volunteers_say_every_link_is_true_and_nothing_wanted_is_left_out(seed: int) -> None:
    """They lie, are late, silent or talk nonsense; it costs time, and filters that are told for nothing."""
    random, helpers = Random(seed), Helpers(seed)
    broker = Broker(batch=random.randint(1, 6))

    def any_answers(task: Task, name: str) -> list[Answer]:
        said: list[Answer] = []
        helpers.work(Dispatch(name, task), lambda _, each: said.append(each))
        return said

    filters = random.sample(RANGES, 24)
    now_ms = broker.place(filters[:6], honest)
    for at in (6, 12, 18):
        broker.volunteer(*(f"h{random.randrange(12)}" for _ in range(random.randint(1, 5))))
        now_ms = broker.place(filters[at : at + 6], any_answers, now_ms)
        table = broker.offloader.table
        assert link_faults(table.poset) == []
        assert not table.waiting and len(table.poset) == at + 6
        told = broker.view.told()
        assert told <= set(filters)
        for each in filters[: at + 6]:
            assert any(covers(wider, each) for wider in told)


def test_a_time_out_leads_to_the_brokers_own_computation() -> None:
    """Who was silent is asked no more, until it volunteers again."""
    broker = Broker(batch=1)
    broker.want(RANGES[:4])
    broker.finish(0)
    broker.volunteer("h2", "h8")
    broker.want(RANGES[4:6])
    given = broker.finish(100)
    slices = len(cut(broker.offloader.table.poset, 5))
    assert {each.dispatch.client for each in given} == {"h2", "h8"}
    assert broker.finish(100 + TIMEOUT_MS - 1) == [] and broker.offloader.table.waiting
    broker.finish(100 + TIMEOUT_MS)
    assert broker.view.told() == broker.alone.told()
    offloaded, computed, refuted, timed_out = broker.counts
    assert (offloaded, computed, refuted, timed_out) == (0, slices, 0, 1)
    assert broker.offloader.active(0) == []


def test_who_stops_is_not_waited_for() -> None:
    """Its slices are compared here, and nobody waits until the time is over."""
    broker = Broker(batch=1)
    broker.want(RANGES[:4])
    broker.finish(0)
    broker.volunteer("h2", "h8")
    broker.want(RANGES[4:6])
    given = broker.finish(100)
    broker.answer([each for each in given if each.dispatch.client == "h2"], honest)
    assert broker.finish(101) == [] and broker.offloader.table.waiting
    broker.offloader.obey(Volunteered("h8", 0))
    broker.finish(102)
    assert broker.view.told() == broker.alone.told()


def test_who_volunteers_for_a_time_is_asked_within_it() -> None:
    """And not after it, nor when it has said that it stops."""
    broker = Broker(batch=1)
    broker.volunteer("h0", until_ms=500)
    broker.volunteer("h1")
    assert broker.offloader.active(499) == ["h0", "h1"]
    assert broker.offloader.active(500) == ["h1"]
    broker.offloader.obey(Volunteered("h1", 0))
    assert broker.offloader.active(499) == ["h0"]


def test_who_volunteered_by_an_own_topic_answers_by_that_alone() -> None:
    """Whoever else writes in its name on the shared topic is not heard."""
    broker = Broker(batch=1)
    broker.want(RANGES[:1])
    broker.finish(0)
    broker.volunteer("h0", own=True)
    broker.want(RANGES[1:2])
    (work,) = broker.finish(0)
    assert work.own
    (good,) = honest(work.dispatch.task, "h0")
    assert not broker.offloader.takes(good, own=False)
    assert broker.offloader.takes(good, own=True)
    assert not broker.offloader.takes(honest(work.dispatch.task, "h1")[0], own=True)


def test_a_round_has_a_limit_and_so_has_what_waits() -> None:
    """Beyond, the broker places all of it by itself, also in the middle of a round."""
    many = filters_in(sql(*(f"y = {number}" for number in range(WAITING_MOST + 2))))
    broker = Broker(batch=2)
    broker.want(RANGES[:1])
    broker.finish(0)
    broker.volunteer("h2")
    broker.want(many[: BATCH_MAX + 20])
    (work,) = broker.finish(0)
    assert len(work.dispatch.task.batch) == BATCH_MAX
    broker.want(many[BATCH_MAX + 20 :])
    assert broker.finish(1) == []
    broker.finish(2)
    assert not broker.offloader.table.waiting
    assert broker.view.told() == broker.alone.told()


def test_a_table_is_cut_into_slices_of_its_layers() -> None:
    """Each filter in one of them, after all that is above it; the same for equal tables."""
    broker = Broker()
    broker.want(RANGES)
    broker.finish(0)
    poset = broker.offloader.table.poset
    slices = cut(poset, 5)
    place = {number: at for at, numbers in enumerate(slices) for number in numbers}
    assert sorted(place) == sorted(poset)
    assert max(map(len, slices)) == 5
    for number in poset:
        assert all(place[each] < place[number] for each in poset.entry(number).above)


@pytest.mark.parametrize("for_ms", [ASSIST_MIN_MS - 1, ASSIST_MAX_MS + 1])
def test_nobody_volunteers_for_too_short_or_too_long(for_ms: int) -> None:
    """It is refused with the limits."""
    wrong = Assist("h0", "a", for_ms).fault(0)
    assert wrong is not None and wrong.code is Code.ASSIST_INVALID
    assert str(ASSIST_MIN_MS) in wrong.reason and str(ASSIST_MAX_MS) in wrong.reason


def test_there_are_not_too_many_volunteers() -> None:
    """Who is one too many is refused; whoever stops never is."""
    wrong = Assist("h0", "a", ASSIST_MIN_MS).fault(VOLUNTEERS_MAX)
    assert wrong is not None and wrong.code is Code.ASSISTANTS_TOO_MANY
    assert Assist("h0", "a", ASSIST_MIN_MS).fault(VOLUNTEERS_MAX - 1) is None
    assert Assist("h0", "a", 0).fault(VOLUNTEERS_MAX) is None
