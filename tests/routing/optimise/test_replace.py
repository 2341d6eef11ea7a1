"""Predicate replacement: fewer predicates, each filter at least as wide, and not much wider."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import events
from table_filters import NAMES, entries, filters_in, matches, sql

from branchline.routing.event import Event
from branchline.routing.filters import Constraint, covers
from branchline.routing.optimise.entries import Entry, in_order
from branchline.routing.optimise.protocols import Smaller
from branchline.routing.optimise.replace import Replacement, make, replacements
from branchline.routing.optimise.selectivity import Assumed
from branchline.routing.values import JsonValue

BOUNDS = (0.0, 0.1, 0.5, 1.0)


def replaced(given_: list[Entry], bound: float) -> Smaller:
    ordered = in_order(given_)
    return Replacement(bound).optimise(ordered, Assumed(ordered))


def predicates(entries_: list[Entry]) -> set[Constraint]:
    return {each for filter_ in filters_in(entries_) for each in filter_}


@pytest.mark.parametrize("bound", BOUNDS)
@given(given_=entries(), happened=st.lists(events(NAMES), max_size=3))
def test_at_least_the_same_events_match(
    bound: float, given_: list[Entry], happened: list[dict[str, JsonValue]]
) -> None:
    """Each filter is covered by the one that stands for it, and no predicate is there that was not."""
    made = replaced(given_, bound)
    left = filters_in(made.entries)
    assert all(any(covers(each, one) for each in left) for one in filters_in(given_))
    assert predicates(list(made.entries)) <= predicates(given_)
    for attributes in happened:
        assert matches(made.entries, Event(attributes)) >= matches(given_, Event(attributes))


@pytest.mark.parametrize("bound", BOUNDS)
@given(given_=entries())
def test_each_replacement_is_wider_and_within_the_bound(bound: float, given_: list[Entry]) -> None:
    """What replaces covers, stays itself, and lets through no more than the bound allows."""
    shares = Assumed(given_)
    instead = replacements(filters_in(given_), shares, bound)
    for narrow, wide in instead.items():
        assert covers((wide,), (narrow,))
        assert wide not in instead
        assert shares.share(wide) - shares.share(narrow) <= bound
    stay = predicates(given_) - instead.keys()
    for one in stay:
        same = [each for each in stay - {one} if (each.dimension, type(each)) == (one.dimension, type(one))]
        wider = [each for each in same if covers((each,), (one,))]
        assert all(shares.share(each) - shares.share(one) > bound for each in wider)


@given(entries(), st.randoms(use_true_random=False), st.sampled_from(BOUNDS))
def test_the_order_does_not_matter(given_: list[Entry], random: Random, bound: float) -> None:
    """What is replaced by what hangs on the set of filters alone."""
    once = replaced(given_, bound)
    random.shuffle(given_)
    assert replaced(given_, bound) == once


def test_near_predicates_become_one() -> None:
    """Of ten bounds side by side every third stays; what is far off stays as it is."""
    some = sql(*(f"a < {each} AND b = {each}" for each in range(10)))
    made = make(20).optimise(some, Assumed(some))
    assert made.counts == {"predicates_replaced": 6}
    assert len(made.entries) == 10
    assert replaced(some, 0.0).entries == some


def test_a_word_gives_way_to_a_word_that_it_contains() -> None:
    """The one that says most."""
    some = sql("t LIKE '%abc%' AND a = 1", "t LIKE '%ab%' AND a = 2", "t LIKE '%b%' AND a = 3")
    expected = sql("t LIKE '%ab%' AND a = 1", "t LIKE '%ab%' AND a = 2", "t LIKE '%b%' AND a = 3")
    assert replaced(some, 0.2).entries == expected
