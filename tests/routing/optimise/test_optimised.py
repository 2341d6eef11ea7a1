"""A matching whose table is optimised: never less is found, and nothing hangs on how interests came."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import events
from table_filters import HOMES, NAMES, interests, matches

from branchline.routing.control import Identity
from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import EVERYTHING, Contains, Range
from branchline.routing.intervals import WHOLE, Interval, after, before, point
from branchline.routing.methods.naming import Methods, misfit
from branchline.routing.methods.optimised import OptimisedMatching, optimised
from branchline.routing.methods.protocols import Interest
from branchline.routing.methods.table import TableMatching
from branchline.routing.optimise.entries import Entry, as_interest, in_order, plain
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller
from branchline.routing.optimise.selectivity import Assumed, filter_share
from branchline.routing.values import JsonValue


class Shortened:
    """The first constraint of each filter only: as coarse as can be, and easy to be sure of."""

    def optimise(self, entries: Sequence[Entry], selectivity: Selectivity) -> Smaller:
        made = in_order(plain(filter_[:1]) for entry in entries for filter_ in entry.cover)
        return Smaller(made, {"filters_shortened": len(entries) - len(made)})


def matching(*optimisations: Optimisation) -> OptimisedMatching:
    return OptimisedMatching(TableMatching(), optimisations)


def told(interests_: Sequence[Interest], *optimisations: Optimisation) -> OptimisedMatching:
    made = matching(*optimisations)
    for interest in interests_:
        made.add(interest)
    return made


@given(interests(), st.lists(events(NAMES), max_size=4))
def test_a_table_that_is_not_optimised_finds_what_there_is(
    asked: list[Interest], happened: list[dict[str, JsonValue]]
) -> None:
    """Without any optimisation it is the matching below."""
    made, plain_one = told(asked), TableMatching()
    for interest in asked:
        plain_one.add(interest)
    for attributes in happened:
        assert made.match(Event(attributes)) == plain_one.match(Event(attributes))


@given(interests(), st.lists(events(NAMES), max_size=4))
def test_nobody_is_missed_and_those_here_are_found_as_they_are(
    asked: list[Interest], happened: list[dict[str, JsonValue]]
) -> None:
    """Other homes may be found for nothing, subscriptions here never are."""
    made, exact = told(asked, Shortened()), told(asked)
    for attributes in happened:
        one, other = made.match(Event(attributes)), exact.match(Event(attributes))
        found, owed = one.certain | one.doubtful, other.certain | other.doubtful
        assert found >= owed
        assert {each for each in found - owed if isinstance(each, Identity)} == set()


@given(interests(), st.randoms(use_true_random=False), st.lists(events(NAMES), max_size=2))
def test_a_table_hangs_on_the_interests_in_force_alone(
    asked: list[Interest], random: Random, happened: list[dict[str, JsonValue]]
) -> None:
    """Not on their order, nor on what came and went in between, nor on when events came."""
    first = told(asked, Shortened())
    twice = asked + asked[::2]
    random.shuffle(twice)
    second = matching(Shortened())
    for interest in twice:
        second.add(interest)
        if random.random() < 0.3:
            second.match(Event({}))
    for interest in asked[::2]:
        second.remove(interest)
        if random.random() < 0.3:
            second.match(Event({}))
    for home in HOMES:
        assert first.table(home) == second.table(home)
    for attributes in happened:
        assert first.match(Event(attributes)) == second.match(Event(attributes))


@given(interests())
def test_what_has_left_leaves_nothing_behind(asked: list[Interest]) -> None:
    """After the last one has left, nobody is found and nothing is counted."""
    made = told(asked, Shortened())
    made.match(Event({}))
    for interest in asked:
        made.remove(interest)
    found = made.match(Event({"a": 1, "b": 1}))
    assert not found.certain | found.doubtful
    assert not any(found.counts.values())
    assert all(not made.table(home) for home in HOMES)


class Noting(TableMatching):
    """A table that notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str]] = []

    def add(self, interest: Interest) -> None:
        self.told.append(("add", str(interest.owner)))
        super().add(interest)

    def remove(self, interest: Interest) -> None:
        self.told.append(("remove", str(interest.owner)))
        super().remove(interest)


def test_a_change_of_one_home_leaves_the_others_alone() -> None:
    """And only what is another entry now is told, when the next event comes."""
    below = Noting()
    made = OptimisedMatching(below, [Shortened()])
    ranges = [(Range(("a",), Axis.NUMBER, point(value)),) for value in range(4)]
    for home in HOMES:
        for filter_ in ranges:
            made.add(as_interest(plain(filter_), home))
    assert below.told == []
    made.match(Event({}))
    assert len(below.told) == 2 * len(ranges)
    below.told.clear()
    made.remove(as_interest(plain(ranges[0]), HOMES[0]))
    made.match(Event({}))
    assert below.told == [("remove", HOMES[0])]


@given(interests(), events(NAMES))
def test_optimisations_are_applied_in_turn(asked: list[Interest], attributes: dict[str, JsonValue]) -> None:
    """Each goes on from what the one before has made, and what they count is added up."""
    entries = [plain(each) for interest in asked for each in interest.compiled.cover]
    once, twice = optimised(entries, [Shortened()]), optimised(entries, [Shortened(), Shortened()])
    assert once.entries == twice.entries
    assert once.counts == twice.counts
    assert matches(once.entries, Event(attributes)) >= matches(entries, Event(attributes))


def test_shares_are_counted_in_pieces_between_bounds() -> None:
    """Two bounds make three pieces; points are pieces of their own; a longer word is rarer."""

    def number(interval: Interval) -> Range:
        return Range(("a",), Axis.NUMBER, interval)

    entries = [plain((number(Interval(before(1), before(5))),)), plain((number(point(5)),))]
    assumed = Assumed(entries)
    assert assumed.share(number(WHOLE)) == 1
    assert assumed.share(number(point(5))) == 1 / 4
    assert assumed.share(number(Interval(before(1), before(5)))) == 1 / 4
    assert assumed.share(number(Interval(before(1), after(5)))) == 1 / 2
    assert filter_share(EVERYTHING, assumed) == 1
    short, long = (Contains(("a",), Axis.TEXT, word) for word in ("a", "ab"))
    assert assumed.share(long) < assumed.share(short)


@pytest.mark.parametrize("text", ["covering(", "(3)"])
def test_an_optimisation_that_is_not_named_is_refused(text: str) -> None:
    """As every other method."""
    wrong = misfit(Methods("rematch", "table", optimise=(text,)))
    assert wrong is not None
    assert wrong.startswith(f"optimise = {text!r} is not known")


def test_prefix_forwarding_has_no_tables_to_optimise() -> None:
    """It is refused with the reason; matching at every broker is not."""
    assert misfit(Methods("rematch", "table", optimise=("covering",))) is None
    assert misfit(Methods(optimise=("covering",))) == (
        "optimise = covering: prefix forwarding matches content once for all brokers, so none may make a "
        "table of its own"
    )
    assert misfit(Methods("rematch", "table", optimise=("covering(3)",))) == (
        "optimise = 'covering(3)': covering takes no number"
    )
