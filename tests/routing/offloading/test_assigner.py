"""A fixed set that is given out: claims spare tests, are verified, and nothing hangs on them."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from table_filters import filters_in, sql

from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.dissemination.summaries import CoveringSummary, hides
from branchline.routing.filters import Filter, covers
from branchline.routing.offloading.assigner import NO_SET, Assigner
from branchline.routing.offloading.client import claimed
from branchline.routing.offloading.facts import Assigned, Began, RoundOver
from branchline.routing.offloading.messages import Between, Claimed
from branchline.routing.posets.checking import link_faults, poset_faults
from branchline.routing.posets.searching import find_place

RANGES = filters_in(sql(*(f"x BETWEEN {low} AND {low + wide}" for low in range(8) for wide in (0, 2, 5, 9))))


class Broker:
    """An assigner, what one neighbour is told, and what an own table would tell it."""

    def __init__(self, most: int | None = None) -> None:
        self.assigner = Assigner("a", SharedTable(waits=True), most)
        self.view = self.assigner.table.view()
        self.alone = CoveringSummary()
        self.chosen = 0

    def want(self, *filters: Filter) -> None:
        for each in filters:
            self.view.add(each)
            self.alone.add(each)
        self.finish()

    def drop(self, *filters: Filter) -> None:
        for each in filters:
            self.view.remove(each)
            self.alone.remove(each)
        self.finish()

    def claim(self, filter_: Filter) -> None:
        """A filter comes with what a client that knows the newest set finds out."""
        self.assigner.hear([filter_], claimed(self.assigner.assignment, [filter_], hides))
        self.want(filter_)

    def finish(self) -> None:
        for fact in self.assigner.finish(0):
            self.chosen += isinstance(fact, Assigned)
            self.assigner.obey(fact)

    @property
    def tests(self) -> int:
        return self.assigner.counts["covering_tests"]


def test_true_claims_make_the_table_that_tests_make_and_spare_them() -> None:
    """To the link; a filter never waits."""
    broker, alone = Broker(), Broker()
    shuffled = Random(1).sample(RANGES, len(RANGES))
    for each in shuffled:
        broker.claim(each)
        alone.want(each)
        assert not broker.assigner.table.waiting
        assert poset_faults(broker.assigner.table.poset) == []
        assert broker.view.told() == alone.view.told() == broker.alone.told()
    assert broker.assigner.counts["claims_refuted"] == 0
    assert broker.assigner.counts["filters_claimed"] > len(RANGES) // 2
    assert 0 < broker.tests < alone.tests


@given(st.integers(0, 10**6))
def test_whatever_is_claimed_every_link_is_true_and_nothing_wanted_is_left_out(seed: int) -> None:
    """Also of an older set, of places that are in none, and while filters come and go."""
    random, broker = Random(seed), Broker(most=6)
    wanted: list[Filter] = []
    for filter_ in random.sample(RANGES, 20):
        size = len(broker.assigner.assignment.filters)
        some = [tuple(random.choices(range(size + 2), k=random.randint(0, 3))) for _ in range(2)]
        version = broker.assigner.assignment.version - (random.random() < 0.2)
        broker.assigner.hear([filter_], Claimed(max(0, version), (Between(*some),)))
        broker.want(filter_)
        wanted.append(filter_)
        if random.random() < 0.3:
            broker.drop(wanted.pop(random.randrange(len(wanted))))
        assert link_faults(broker.assigner.table.poset) == []
        told = broker.view.told()
        assert told <= set(wanted)
        for each in wanted:
            assert any(covers(wider, each) for wider in told)


def test_claims_about_an_older_set_or_another_filter_are_not_used() -> None:
    """They are counted, and the filter is placed by tests."""
    broker = Broker(most=4)
    broker.want(*RANGES[:8])
    old = claimed(broker.assigner.assignment, [RANGES[9]], hides)
    broker.want(*RANGES[12:24])
    assert broker.assigner.assignment.version != old.version
    broker.assigner.hear([RANGES[9]], old)
    broker.assigner.hear(RANGES[9:11], claimed(broker.assigner.assignment, [RANGES[9]], hides))
    broker.want(*RANGES[9:11])
    assert broker.assigner.counts["claims_outdated"] == 2
    assert broker.assigner.counts["filters_claimed"] == 0
    assert broker.view.told() == broker.alone.told()


def test_a_set_is_chosen_anew_when_it_is_worn_and_not_before() -> None:
    """As the table doubles, and when half of it has left; of the uppermost filters, as many as may be."""
    broker = Broker(most=8)
    assert broker.assigner.assignment == NO_SET
    for each in RANGES:
        broker.want(each)
    assert broker.chosen == len(RANGES).bit_length()
    poset = broker.assigner.table.poset
    chosen = broker.assigner.assignment.filters
    assert len(chosen) == 8
    kept = broker.chosen
    broker.drop(*chosen[:4])
    assert broker.chosen == kept
    broker.drop(chosen[4])
    assert broker.chosen == kept + 1
    assert all(each in poset for each in broker.assigner.assignment.filters)


def test_a_set_is_linked_as_tests_would_link_it() -> None:
    """Each filter with what is right above and below it in the set, whatever lies between in the table."""
    broker = Broker(most=12)
    broker.want(*RANGES)
    filters, order = broker.assigner.assignment.filters, broker.assigner.assignment.order
    found = SharedTable()
    view = found.view()
    for each in filters:
        view.add(each)
    for each, between in zip(filters, order, strict=True):
        entry = found.poset.entry(found.poset.number(each) or 0)
        assert {filters[place] for place in between.above} == {
            found.poset.entry(number).filter for number in entry.above
        }
        assert {filters[place] for place in between.below} == {
            found.poset.entry(number).filter for number in entry.below
        }


def test_what_volunteers_have_left_half_done_is_ended() -> None:
    """A job that goes on with fixed sets, in the middle of a round: its table is not frozen for ever."""
    broker = Broker()
    broker.want(*RANGES[:3])
    broker.assigner.obey(Began(1, 0, 0, (), 0))
    assert broker.assigner.table.frozen
    steps = broker.assigner.finish(0)
    assert next(steps) == RoundOver()
    broker.finish()
    broker.drop(RANGES[0])
    assert RANGES[0] not in broker.assigner.table.poset
    assert find_place(broker.assigner.table.poset, RANGES[0]).covered is not None
