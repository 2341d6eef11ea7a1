"""The bfposet gives an event the bits of the constraints that it satisfies, of those that are there."""

from itertools import pairwise
from random import Random

from amounts import often
from filter_world import WORLD, dependent, normal
from hypothesis import given
from hypothesis import strategies as st
from reuse_networks import compiled

from branchline.routing.bloom.bfposet import BfPoset
from branchline.routing.bloom.bits import HASHES_MAX, SIZE_MAX, Shape, imprint, name_groups
from branchline.routing.bloom.nesting import Chain, Nesting
from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Contains, Filter, Range
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, covers, holds, point

shapes = st.builds(Shape, st.integers(1, SIZE_MAX), st.integers(1, HASHES_MAX))
ARRAYS = [Event({"a": value}) for value in ([0, 3], ["abc", 1], [], [[2], {}], [{"b": 1}, "ba"])]


def union(filters: list[Filter], event: Event, shape: Shape) -> tuple[int, ...]:
    """Every constraint is asked by itself."""
    satisfied = {each for filter_ in filters for each in filter_ if event.may_match(((each,),))}
    return tuple(sorted({bit for each in satisfied for bit in imprint(each, shape).bits}))


@often
@given(st.lists(normal(dependent), max_size=12), shapes, st.data())
def test_an_event_has_the_bits_of_what_it_satisfies_while_filters_come_and_go(
    filters: list[Filter], shape: Shape, data: st.DataObject
) -> None:
    """Just these bits, and the digest of just these constraints, whatever was there before."""
    poset = BfPoset(shape)
    standing: list[Filter] = []
    for filter_ in filters:
        poset.add(filter_)
        standing.append(filter_)
        while len(standing) > 1 and data.draw(st.booleans()):
            poset.remove(standing.pop(data.draw(st.integers(0, len(standing) - 1))))
    for event in (*data.draw(st.lists(st.sampled_from(WORLD), max_size=6)), *ARRAYS):
        assert poset.of_event(event) == union(standing, event, shape)
    known = {each for filter_ in standing for each in filter_}
    assert len(poset) == len(known)
    for names in (("a",), ("b",), ("a", "b", "c"), ()):
        digest = 0
        for each in known:
            if each.axis is Axis.PRESENCE or each.path[0] in names:
                digest ^= imprint(each, shape).check
        assert poset.digest(name_groups(names)) == digest
    for filter_ in standing:
        satisfied = [event for event in WORLD if event.may_match((filter_,))][:3]
        assert all(set(poset.bits(filter_)) <= set(poset.of_event(event)) for event in satisfied)
    assert len(poset.describe().splitlines()) == len(known)
    for filter_ in standing:
        poset.remove(filter_)
    assert (len(poset), poset.digest(2**64 - 1), poset.describe()) == (0, 0, "")
    assert not poset._orders and not poset._presence


def some_interval(source: Random) -> Interval:
    low, high = sorted(source.sample(range(40), 2))
    return Interval(source.choice((before, after))(low), source.choice((before, after))(high))


@often
@given(st.integers(0, 2**32))
def test_intervals_that_nest_are_found_by_any_value(seed: int) -> None:
    """Siblings cover none of each other, all below an interval is covered by it, and nothing is lost."""
    source = Random(seed)
    nesting, standing = Nesting(), dict[Interval, tuple[int, ...]]()
    for number in range(60):
        interval = some_interval(source)
        if standing and source.random() < 0.4:
            gone = source.choice(list(standing))
            nesting.remove(gone)
            del standing[gone]
        elif interval not in standing:
            standing[interval] = (number,)
            nesting.add(interval, (number,))
        assert len(nesting) == len(standing)
    for tenth in range(-10, 420, 5):
        found: set[int] = set()
        nesting.collect(tenth / 10, found)
        assert found == {bits[0] for each, bits in standing.items() if holds(each, tenth / 10)}
    path: list[Interval] = []
    siblings: dict[tuple[Interval, ...], list[Interval]] = {}
    for level, interval in nesting.nested():
        del path[level - 1 :]
        assert all(covers(above, interval) for above in path)
        siblings.setdefault(tuple(path), []).append(interval)
        path.append(interval)
    for each in siblings.values():
        assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(each))


def test_a_chain_brings_the_bits_of_all_that_cover() -> None:
    """The narrowest that holds, and everything wider."""
    chain = Chain(2)
    for number in (3, 1, 2):
        chain.add(after(number), (number, 10 * number))
    assert chain.until((0, 2.5, 0)) == [1, 10, 2, 20]
    assert chain.since((0, 2.5, 1)) == [3, 30]
    chain.remove(after(2))
    assert (chain.until((0, 9, 0)), chain.since((0, 9, 1))) == ([1, 10, 3, 30], [])


def test_what_is_covered_is_described_below_what_covers_it() -> None:
    """For people to read."""
    x, y = ("x",), ("y",)

    def number(low: tuple[object, ...], high: tuple[object, ...]) -> Constraint:
        return Range(x, Axis.NUMBER, Interval(low, high))

    poset = BfPoset(Shape())
    for each in (
        number(after(1), HIGHEST),
        number(after(0), HIGHEST),
        number(LOWEST, before(5)),
        number(before(1), after(9)),
        number(before(2), after(3)),
        Range(x, Axis.NUMBER, point(4)),
        Contains(y, Axis.TEXT, "abc"),
        Contains(y, Axis.TEXT, "b"),
    ):
        poset.add((each,))
    assert poset.describe().splitlines() == [
        "x > 0",
        "  x > 1",
        "x < 5",
        "x >= 1 AND x <= 9",
        "  x >= 2 AND x <= 3",
        "x = 4",
        "y CONTAINS 'b'",
        "  y CONTAINS 'abc'",
    ]


def test_bits_are_the_same_in_every_process_for_ever() -> None:
    """All brokers must agree on them, also with those that are started anew years later."""
    cover = compiled("x < 3 AND t LIKE '%a%' AND s = 'b'").cover
    assert [imprint(each, Shape()) for each in cover[0]] == [
        ((4554, 9710), 14618943970258648093),
        ((9558, 6757), 15008894166751160217),
        ((1376, 11672), 611367095023976266),
    ]
    wide, narrow = (imprint(cover[0][0], Shape(size, HASHES_MAX)) for size in (SIZE_MAX, 3))
    assert [bit % 8 for bit in wide.bits] == list(narrow.bits)
    assert wide.check == narrow.check


def test_constraints_that_are_equal_have_the_same_bits() -> None:
    """However their numbers were written: a broker may have heard of the one, and another of the other."""
    for one, other in (("x = 1", "x = 1.0"), ("x < 0", "x < -0.0"), ("x > 1e22", "x > 1" + 22 * "0")):
        (mine,), (theirs,) = compiled(one).cover[0], compiled(other).cover[0]
        assert mine == theirs
        assert imprint(mine, Shape()) == imprint(theirs, Shape())
