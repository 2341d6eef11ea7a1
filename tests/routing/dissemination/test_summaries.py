"""Summaries: what is told stands for all that is wanted, and hangs on nothing but that."""

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import events
from table_filters import NAMES, compiled, filters_in, sql

from branchline.routing.compiling import Compiled
from branchline.routing.dissemination.strategies import make_dissemination
from branchline.routing.dissemination.summaries import CoveringSummary, IdentitySummary, Summary
from branchline.routing.event import Event
from branchline.routing.filters import EVERYTHING, Filter, covers
from branchline.routing.methods.protocols import OnTree
from branchline.routing.values import JsonValue

EVERY = (
    "identity",
    "covering",
    "covering+merging",
    "identity+merging+imperfect(40)",
    "covering+pre-prune(40)",
    "covering+poset",
    "covering+poset+merging",
)
EXACT = ("identity", "covering", "covering+merging", "covering+poset", "covering+poset+merging")

filters = st.lists(compiled, max_size=5).map(lambda many: [each for one in many for each in one.cover])


def made(strategy: str) -> Summary:
    dissemination = make_dissemination(strategy)
    assert isinstance(dissemination, OnTree)
    return dissemination.summary()


def holding(strategy: str, wanted: list[Filter]) -> Summary:
    summary = made(strategy)
    for each in wanted:
        summary.add(each)
    return summary


@pytest.mark.parametrize("strategy", EVERY)
@given(filters, st.lists(events(NAMES), max_size=4))
def test_what_is_told_matches_all_that_is_wanted(
    strategy: str, wanted: list[Filter], happened: list[dict[str, JsonValue]]
) -> None:
    """And just that, unless more is let through on purpose."""
    told = holding(strategy, wanted).told()
    for attributes in happened:
        event = Event(attributes)
        if event.may_match(tuple(wanted)):
            assert event.may_match(tuple(told))
        elif strategy in EXACT:
            assert not event.may_match(tuple(told))


@pytest.mark.parametrize("strategy", EVERY)
@given(filters, filters, st.randoms(use_true_random=False))
def test_what_is_told_hangs_on_what_is_wanted_alone(  # type: ignore[no-untyped-def]
    strategy: str, wanted: list[Filter], passing: list[Filter], random
) -> None:
    """Not on the order in which it came, nor on what has come and gone meanwhile."""
    summary = made(strategy)
    steps: list[tuple[Callable[[Filter], None], Filter]] = [(summary.add, each) for each in wanted]
    random.shuffle(steps)
    for each in passing:
        at = random.randint(0, len(steps))
        steps.insert(at, (summary.add, each))
        steps.insert(random.randint(at + 1, len(steps)), (summary.remove, each))
    for number, (act, each) in enumerate(steps):
        act(each)
        if number % 3 == 0:
            summary.told()
    assert set(summary.told()) == set(holding(strategy, wanted).told())


@given(filters)
def test_covering_tells_what_an_oracle_leaves(wanted: list[Filter]) -> None:
    """Each filter is covered by one that is told, and no told one covers another."""
    told = holding("covering", wanted).told()
    assert set(told) <= set(wanted)
    for one in wanted:
        assert any(covers(each, one) for each in told)
    for one, other in permutations(told, 2):
        assert not covers(one, other)


@given(st.lists(compiled, min_size=3, max_size=5))
def test_covering_is_transitive(several: list[Compiled]) -> None:
    """What hides something that hides a third hides that too: so what is told does not hang on the order."""
    known = {each for made in several for each in made.cover}
    for one, other, third in permutations(list(known)[:8], 3):
        if covers(one, other) and covers(other, third):
            assert covers(one, third)


def a_filter(text: str) -> Filter:
    (only,) = filters_in(sql(text))
    return only


def test_what_was_hidden_comes_to_light() -> None:
    """When the filter that hid it goes; it is hidden again behind another that is left."""
    wide, narrow, narrower = map(a_filter, ("x > 1", "x > 5", "x = 7 AND y = 1"))
    summary = holding("covering", [narrow, narrower, wide])
    assert set(summary.told()) == {wide}
    summary.remove(wide)
    assert set(summary.told()) == {narrow}
    summary.remove(narrow)
    assert set(summary.told()) == {narrower}
    summary.add(EVERYTHING)
    assert set(summary.told()) == {EVERYTHING}


def test_what_is_spared_is_counted() -> None:
    """Identical filters, covered ones, merged ones, and predicates that are told no more."""
    low, high, both = map(a_filter, ("x BETWEEN 1 AND 5", "x BETWEEN 5 AND 9", "x BETWEEN 1 AND 9"))
    identical, covering = IdentitySummary(), CoveringSummary()
    for each in (low, low, both, high):
        identical.add(each)
        covering.add(each)
    assert identical.counts == Counter(told_identical=1)
    assert covering.counts == Counter(told_identical=1, told_covered=2, covering_tests=3)
    merged = holding("identity+merging", [low, high])
    assert (set(merged.told()), merged.counts["told_merged"]) == ({both}, 1)
