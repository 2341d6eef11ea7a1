"""Merging: perfect mergers match the same, imperfect ones at least the same and little more."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import events
from table_filters import NAMES, entries, filters_in, matches, sql

from branchline.routing.event import Event
from branchline.routing.filters import Filter, Range, conjoin, covers, intersect
from branchline.routing.intervals import hull, joined
from branchline.routing.optimise.entries import Entry, in_order, plain
from branchline.routing.optimise.imperfect import Imperfect
from branchline.routing.optimise.imperfect import make as make_imperfect
from branchline.routing.optimise.merging import Merging
from branchline.routing.optimise.protocols import Optimisation, Smaller
from branchline.routing.optimise.selectivity import Assumed
from branchline.routing.values import JsonValue

MERGING = [Merging(), Imperfect(0.0), Imperfect(0.2), Imperfect(1.0)]


def made_by(optimisation: Optimisation, given_: list[Entry]) -> Smaller:
    ordered = in_order(given_)
    return optimisation.optimise(ordered, Assumed(ordered))


def joins(one: Filter, other: Filter) -> bool:
    """Whether the two differ in ranges of one dimension that touch: the definition, pair by pair."""
    if [each.dimension for each in one] != [each.dimension for each in other]:
        return False
    differ = [(mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine != theirs]
    return (
        len(differ) == 1
        and all(isinstance(each, Range) for each in differ[0])
        and len(joined([each[2] for each in differ[0]])) == 1  # type: ignore[misc]
    )


@given(entries(), st.lists(events(NAMES), max_size=4))
def test_perfect_mergers_match_the_same(given_: list[Entry], happened: list[dict[str, JsonValue]]) -> None:
    """No more and no less, also for events with arrays."""
    made = made_by(Merging(), given_)
    assert made.counts == {"filters_merged": len(set(given_)) - len(made.entries)}
    for attributes in happened:
        assert matches(made.entries, Event(attributes)) == matches(given_, Event(attributes))


@given(entries())
def test_perfect_merging_goes_on_until_nothing_can_be_joined(given_: list[Entry]) -> None:
    """Each filter is covered by one that is left, of which no two can be joined."""
    made = made_by(Merging(), given_)
    left = filters_in(made.entries)
    assert all(any(covers(each, one) for each in left) for one in filters_in(given_))
    assert not any(joins(one, other) for one in left for other in left if one is not other)
    assert made_by(Merging(), list(made.entries)).entries == made.entries


@pytest.mark.parametrize("merging", MERGING)
@given(given_=entries(), random=st.randoms(use_true_random=False))
def test_the_order_does_not_matter(merging: Optimisation, given_: list[Entry], random: Random) -> None:
    """What is merged with what hangs on the set of filters alone."""
    once = made_by(merging, given_)
    random.shuffle(given_)
    assert made_by(merging, given_) == once


@pytest.mark.parametrize("merging", MERGING[1:])
@given(given_=entries(), happened=st.lists(events(NAMES), max_size=3))
def test_imperfect_mergers_match_at_least_the_same(
    merging: Optimisation, given_: list[Entry], happened: list[dict[str, JsonValue]]
) -> None:
    """Each filter is covered by one that is left."""
    made = made_by(merging, given_)
    left = filters_in(made.entries)
    assert all(any(covers(each, one) for each in left) for one in filters_in(given_))
    for attributes in happened:
        assert matches(made.entries, Event(attributes)) >= matches(given_, Event(attributes))


def grid(entries_: list[Entry], size: int) -> int:
    """How many events of whole numbers match."""
    return sum(matches(entries_, Event({"a": a, "b": b})) for a in range(size) for b in range(size))


@given(st.randoms(use_true_random=False), st.sampled_from((0, 10, 30, 60)))
def test_the_share_that_nobody_asked_for_stays_within_the_bound(random: Random, percent: int) -> None:
    """Where every bound is named, so that shares are counted and not guessed, the bound is kept exactly."""
    size = 8
    cells = sql(*(f"a >= {each} AND a < {each + 1} AND b >= 0 AND b < {size}" for each in range(size)))
    all_named = sql(*(f"b >= {each} AND b < {each + 1} AND c = 1" for each in range(size)))
    asked = random.sample(cells, random.randint(2, size))
    ordered = in_order(asked)
    shares = Assumed([*cells, *all_named])
    made = make_imperfect(percent).optimise(ordered, shares)
    for entry in made.entries:
        whole = grid([entry], size)
        under = [each for each in ordered if covers(entry.cover[0], each.cover[0])]
        assert whole - grid(under, size) <= whole * percent / 100 + 1e-9
    if percent == 0:
        assert grid(list(made.entries), size) == grid(ordered, size)


def test_what_is_near_is_merged_and_what_is_far_is_not() -> None:
    """A gap of one piece in ten may be matched for nothing, one of many may not."""
    marks = sql(*(f"a < {each}" for each in range(100)))
    near = sql("a >= 10 AND a < 20", "a >= 21 AND a < 30")
    far = sql("a >= 10 AND a < 20", "a >= 60 AND a < 70")
    shares = Assumed([*marks, *near, *far])
    assert Imperfect(0.1).optimise(near, shares).entries == sql("a >= 10 AND a < 30")
    assert Imperfect(0.1).optimise(far, shares).entries == far


def test_perfect_merging_goes_over_several_dimensions() -> None:
    """Four quarters are a whole, and all numbers with all that are none are everything."""
    quarters = sql("a < 5 AND b < 5", "a < 5 AND b >= 5", "a >= 5 AND b < 5", "a >= 5 AND b >= 5")
    (whole,) = made_by(Merging(), quarters).entries
    (both,) = (intersect(*filters_in([*sql("a >= 0 OR a < 0"), *sql("b >= 0 OR b < 0")])),)
    assert whole == plain(both or ())
    halves = sql("a < 5 AND t LIKE '%x%'", "a >= 5 AND t LIKE '%x%'", "a < 5 AND t LIKE '%y%'")
    assert len(made_by(Merging(), halves).entries) == 2


def test_trees_are_left_alone() -> None:
    """An entry with a tree is none that could be joined."""
    trees = [Entry(each.cover, conjoin) for each in sql("a < 5", "a >= 5")]  # type: ignore[arg-type]
    for merging in MERGING:
        assert made_by(merging, trees).entries == in_order(trees)
    assert hull(*(each[0][2] for each in filters_in(trees)))  # type: ignore[arg-type]
