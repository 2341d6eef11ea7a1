"""The growing index finds what an index made at once would, whatever came before."""

from array import array
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexed import expected, filters, found, some_events

from branchline.ops.workloads import WORKLOADS
from branchline.routing.compiled import index as module
from branchline.routing.compiled.index import GrowingIndex
from branchline.routing.compiled.paths import Paths
from branchline.routing.filters import Filter
from branchline.routing.values import JsonValue

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), filters),
        st.tuples(st.just("add"), filters),
        st.tuples(st.just("remove"), st.integers(0, 1000)),
        st.tuples(st.sampled_from(("match", "store")), st.none()),
    ),
    max_size=60,
)


@pytest.mark.parametrize("delta_min", [2, 8, 4096])
@given(steps, some_events)
def test_it_finds_what_is_there(
    delta_min: int, steps: list[tuple[str, object]], events: list[dict[str, JsonValue]]
) -> None:
    """After any adding and removing, with matches and openings in between, whenever tiers are merged."""
    before, module.DELTA_MIN = module.DELTA_MIN, delta_min
    try:
        paths = Paths()
        index, there = GrowingIndex(paths), {}
        for step, what in steps:
            if step == "add":
                row = index.add(what)  # type: ignore[arg-type]
                assert row not in there
                there[row] = what
            elif step == "remove" and there:
                row = sorted(there)[int(what) % len(there)]  # type: ignore[call-overload]
                index.remove(row)
                del there[row]
            elif step == "store":
                index = GrowingIndex.opened(memoryview(index.stored()), paths)
            check(index, paths, there, events[:2] if step == "match" else ())  # type: ignore[arg-type]
        check(index, paths, there, events)  # type: ignore[arg-type]
    finally:
        module.DELTA_MIN = before


def check(
    index: GrowingIndex, paths: Paths, there: dict[int, Filter], events: list[dict[str, JsonValue]]
) -> None:
    assert len(index) == len(there)
    if events:
        rows = sorted(there)
        wanted = [[rows[each] for each in one] for one in expected([there[row] for row in rows], events)]
        assert found(index, paths, events) == wanted


def test_rows_depend_on_what_was_added_and_removed_alone() -> None:
    """Matching, storing and merging change no row that is given later."""
    random = Random(3)
    drawn = WORKLOADS["mixed"].filters(random)
    made = [next(drawn) for _ in range(300)]
    rows = []
    before, module.DELTA_MIN = module.DELTA_MIN, 16
    try:
        for often in (1, 7, 1000):
            paths = Paths()
            index, given, there = GrowingIndex(paths), array("i"), []
            choice = Random(5)
            for place, each in enumerate(made):
                there.append(index.add(each))
                given.append(there[-1])
                if choice.random() < 0.4:
                    index.remove(there.pop(choice.randrange(len(there))))
                if place % often == 0:
                    found(index, paths, [{"text0": "value0"}])
                if place % (2 * often) == 0:
                    index = GrowingIndex.opened(memoryview(index.stored()), paths)
            rows.append(given.tolist())
    finally:
        module.DELTA_MIN = before
    assert rows[0] == rows[1] == rows[2]
    assert max(rows[0]) < 280, "rows are given again"


def test_few_tiers() -> None:
    """However it grew, few tiers stand beside the main one."""
    drawn = WORKLOADS["equalities"].filters(Random(1))
    paths = Paths()
    index = GrowingIndex(paths)
    for _ in range(40):
        for _ in range(100):
            index.add(next(drawn))
        found(index, paths, [{"text0": "value0"}])
    assert index.describe().count("tier") <= 6
    assert index.nbytes > 0
