"""K-d trees: a walk finds the boxes that an event lies in, whatever is added and removed, and visits few."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexed import NUMBERS, PATHS, filters, intervals

from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import Filter, Range
from branchline.routing.intervals import Interval, after, before
from branchline.routing.methods import kd_forest, kd_tree
from branchline.routing.methods.kd_forest import KdForest, box_of
from branchline.routing.methods.kd_tree import KdTree
from branchline.routing.values import JsonValue

numbers = intervals(Axis.NUMBER)
boxes = st.dictionaries(st.sampled_from(PATHS), numbers, max_size=3).map(
    lambda box: [Range(path, Axis.NUMBER, interval) for path, interval in sorted(box.items())]
)
values = st.sampled_from((*NUMBERS, *NUMBERS, "1", True, None))
points: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {}, optional={"a": values, "b": values, "c": st.fixed_dictionaries({}, optional={"d": values})}
)
arrays: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {}, optional={name: st.lists(values, max_size=3) for name in "ab"}
)


@pytest.fixture(params=[(1, 24), (8, 24), (2, 1)], ids=["deep", "usual", "one-dimension"])
def shape(request: pytest.FixtureRequest) -> Iterator[None]:
    """Trees that are divided as far as can be, usual ones, and ones that look at one dimension."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kd_tree, "LEAF", request.param[0])
        patch.setattr(kd_tree, "WORTH", 1.0 if request.param[0] == 1 else kd_tree.WORTH)
        patch.setattr(kd_tree, "DIMENSIONS_MAX", request.param[1])
        yield


@pytest.mark.usefixtures("shape")
def test_a_walk_finds_the_boxes_that_a_point_lies_in() -> None:
    """Each once, and no others but those that ask for more than the tree looks at. Ends may be open or
    closed, numbers such as no float holds, attributes missing or no numbers.
    """

    @given(st.lists(boxes, max_size=40), st.lists(points, min_size=1, max_size=6))
    def check(some: list[list[Range]], events: list[dict[str, JsonValue]]) -> None:
        tree = KdTree(some)
        for attributes in events:
            event = Event(attributes)
            found = tree.walk(event).boxes
            assert len(set(found)) == len(found)
            holding = {place for place, box in enumerate(some) if event.may_match((tuple(box),))}
            assert holding <= set(found)
            assert {place for place in found if tree.is_whole[place]} <= holding

    check()


@pytest.mark.usefixtures("shape")
def test_a_walk_with_arrays_misses_nothing() -> None:
    """Whatever elements satisfy the ranges of a box, it is found."""

    @given(st.lists(boxes, max_size=30), arrays)
    def check(some: list[list[Range]], attributes: dict[str, JsonValue]) -> None:
        event = Event(attributes)
        found = set(KdTree(some).walk(event).boxes)
        assert {place for place, box in enumerate(some) if event.may_match((tuple(box),))} <= found

    check()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), filters.filter(lambda each: bool(box_of(each)))),
        st.tuples(st.just("remove"), st.integers(0, 1_000)),
        st.tuples(st.just("look"), points | arrays),
    ),
    max_size=60,
)


@given(steps)
def test_a_forest_holds_what_is_there(steps: list[tuple[str, Any]]) -> None:
    """After any adding and removing, with looks in between, whenever trees are made anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kd_forest, "WAITING_MAX", 2)
        patch.setattr(kd_forest, "DEAD_MIN", 1)
        forest, there = KdForest[Filter](), dict[Filter, None]()
        for step, what in [*steps, ("look", {"a": 1, "b": 2.5}), ("look", {})]:
            if step == "add" and what not in there:
                forest.add(what, what)
                there[what] = None
            elif step == "remove" and there:
                gone = list(there)[what % len(there)]
                forest.remove(gone)
                del there[gone]
            elif step == "look":
                event = Event(what)
                found = list(forest.holding(event))
                assert len(set(found)) == len(found)
                assert set(found) == {each for each in there if event.may_match((each,))}
            assert len(forest) == len(there)


# Cost


def some_boxes(count: int, width: float) -> list[list[Range]]:
    random = Random(5)
    starts = [[random.random() for _ in range(3)] for _ in range(count)]
    return [
        [
            Range((name,), Axis.NUMBER, Interval(before(start), after(start + width)))
            for name, start in zip("xyz", box, strict=True)
        ]
        for box in starts
    ]


def visits(count: int) -> float:
    """Nodes and boxes that a walk looks at, on average, among so many boxes of which a few are met."""
    random = Random(6)
    tree = KdTree(some_boxes(count, (2 / count) ** (1 / 3)))
    walks = [tree.walk(Event({name: random.random() for name in "xyz"})) for _ in range(40)]
    return sum(walked.visited + walked.checked for walked in walks) / len(walks)


def test_a_walk_looks_at_few() -> None:
    """Of eight times the boxes it does not look at twice as many, where as many are found."""
    assert visits(4_000) < 2 * visits(500) < 500


def test_what_lies_in_no_box_is_seen_early() -> None:
    """A point outside all hulls, or without the attributes, is out at the first node."""
    tree = KdTree(some_boxes(500, 0.1))
    for attributes in ({"x": 7, "y": 0.5, "z": 0.5}, {"y": 0.5, "z": 0.5}, {"x": "0.5"}, {}):
        assert tree.walk(Event(attributes)) == ([], 1, 0)


def test_there_are_few_trees_and_few_that_are_dead() -> None:
    """However many have come and gone, and whenever somebody looked."""
    forest, random = KdForest[Filter](), Random(7)
    there: list[Filter] = []
    for number, box in enumerate(some_boxes(2_000, 0.1)):
        forest.add(tuple(box), tuple(box))
        there.append(tuple(box))
        if random.random() < 0.45:
            forest.remove(there.pop(random.randrange(len(there))))
        if number % 3 == 0:
            list(forest.holding(Event({"x": 0.5, "y": 0.5, "z": 0.5})))
    trees = forest._trees
    assert 1 < len(trees) <= 7 and len(forest._waiting) <= kd_forest.WAITING_MAX
    assert sum(len(each.rows) for each in trees) <= 2 * len(there) + len(trees) * kd_forest.DEAD_MIN
    for filter_ in there:
        forest.remove(filter_)
    list(forest.holding(Event({})))
    assert forest.describe() == "0 filters, 0 of them waiting"
