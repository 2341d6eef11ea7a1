"""Covering: what is left matches the same, and none of it covers another."""

from hypothesis import given
from hypothesis import strategies as st
from strategies import events
from table_filters import NAMES, compiled, entries, filters_in, matches, sql

from branchline.routing.compiling import Compiled
from branchline.routing.event import Event
from branchline.routing.filters import EVERYTHING, Filter, covers
from branchline.routing.optimise.covering import Covering
from branchline.routing.optimise.entries import Entry, in_order, plain
from branchline.routing.optimise.protocols import Smaller
from branchline.routing.optimise.selectivity import Assumed
from branchline.routing.values import JsonValue


def covered(given_: list[Entry]) -> Smaller:
    """What is left, whether filters are compared one by one or in arrays."""
    ordered = in_order(given_)
    one_by_one, in_arrays = (Covering(few).optimise(ordered, Assumed(ordered)) for few in (1_000_000, 0))
    assert one_by_one == in_arrays
    return in_arrays


@given(entries())
def test_what_is_left_is_what_an_oracle_leaves(given_: list[Entry]) -> None:
    """Each filter that is left out is covered by one that is left, of which none covers another."""
    left = filters_in(covered(given_).entries)
    for one in filters_in(given_):
        assert any(covers(each, one) for each in left)
    for one in left:
        assert not any(covers(other, one) for other in left if other is not one)


@given(entries(), st.lists(events(NAMES), max_size=4))
def test_the_same_events_match(given_: list[Entry], happened: list[dict[str, JsonValue]]) -> None:
    """Covering is exact, also for events with arrays."""
    left = covered(given_)
    assert left.counts == {"filters_hidden": len(set(given_)) - len(left.entries)}
    for attributes in happened:
        assert matches(left.entries, Event(attributes)) == matches(given_, Event(attributes))


@given(entries(), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(given_: list[Entry], random) -> None:  # type: ignore[no-untyped-def]
    """Nor is anything left out when it is done again."""
    once = covered(given_)
    random.shuffle(given_)
    assert covered(given_) == once
    assert covered(list(once.entries)).entries == once.entries


@given(st.lists(compiled, max_size=4), st.lists(compiled, max_size=4))
def test_a_tree_is_hidden_and_hides_nothing(plain_ones: list[Compiled], trees: list[Compiled]) -> None:
    """An entry with a tree goes if filters cover all of its cover, and no filter goes because of it."""
    filters = [plain(filter_) for made in plain_ones for filter_ in made.cover]
    with_trees = [Entry(made.cover, made.expression) for made in trees]
    left = set(covered([*filters, *with_trees]).entries)
    stay: list[Filter] = filters_in([each for each in filters if each in left])
    assert {each for each in left if each.tree is None} == set(covered(filters).entries)
    for entry in with_trees:
        hidden = all(any(covers(each, one) for each in stay) for one in entry.cover)
        assert (entry not in left) == hidden


def test_everything_hides_all() -> None:
    """The filter without constraints is all that is left beside nothing."""
    some = [plain(EVERYTHING), *sql("a = 1", "b LIKE '%x%'", "a > 1 AND b = 'x'", "a IS NULL")]
    assert covered(some).entries == [plain(EVERYTHING)]
    assert covered([]).entries == []


def test_covering_looks_across_axes() -> None:
    """A known text decides what others say of it, any range implies its kind, and words contain words."""
    for wide, narrow in (
        ("a LIKE 'x%'", "a = 'xy' AND b = 1"),
        ("a LIKE '%y'", "a = 'xy'"),
        ("a LIKE '%x%'", "a LIKE '%xy%'"),
        ("a LIKE '%x%'", "a LIKE 'xy%'"),
        ("a IS NOT NULL", "a BETWEEN 1 AND 3"),
        ("a LIKE '%x%'", "a LIKE '%ax%' AND a LIKE '%xb%'"),
    ):
        assert covered([*sql(wide), *sql(narrow)]).entries == sql(wide), (wide, narrow)
        assert covered(sql(narrow)).entries == sql(narrow)


def test_many_filters_of_one_shape_are_compared_in_arrays() -> None:
    """Of nested ranges and points the widest are left, however many there are."""
    ranges = sql(*(f"a BETWEEN {low} AND {high}" for low in range(40) for high in range(low, 40)))
    points = sql(*(f"a = {low} AND b = {high}" for low in range(20, 60) for high in range(20)))
    left = covered([*ranges, *points]).entries
    assert left == in_order([*sql("a BETWEEN 0 AND 39"), *(each for each in points if _from(each, 40))])


def _from(entry: Entry, low: int) -> bool:
    return entry.cover[0][0][2].low >= (0, low, 0)  # type: ignore[union-attr]
