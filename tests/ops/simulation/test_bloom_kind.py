"""What the kind `bloom` measures is what a naive recount finds."""

from collections.abc import Collection, Iterator
from itertools import islice

import pytest

from branchline.ops.simulation import bloom
from branchline.ops.simulation.bloom import Spec
from branchline.ops.simulation.generators import Distribution, Population
from branchline.ops.simulation.growing import events_of, filters_of
from branchline.ops.simulation.kind import Case, Result
from branchline.ops.simulation.tables import check_rows
from branchline.routing.bloom.bits import Shape, imprint
from branchline.routing.bloom.sbstree import SbsTree
from branchline.routing.event import Event
from branchline.routing.prefix.places import Owner

FEW = Population(Distribution.UNIFORM, Distribution.PARETO, 4, (1, 3), (2, 4))
SPEC = Spec((20, 60), (4, 16), (1, 3), 25, 1, "table", {"few": FEW})
CASE = Case(1, {"population": "few"})


def run() -> Result:
    result = bloom.run(SPEC, CASE, lambda _: None)
    check_rows(bloom.COLUMNS, result.rows)
    return result


def test_bits_and_what_they_find_are_recounted() -> None:
    """Every constraint is asked of every event, and every Bloom filter is compared with the event's."""
    result = run()
    assert result.failures == []
    assert [(row["filters"], row["size"], row["hashes"]) for row in result.rows] == [
        (count, size, hashes) for count in SPEC.filters for size in SPEC.sizes for hashes in SPEC.hashes
    ]
    events = [Event(each) for each in islice(FEW.events(events_of(1)), SPEC.events)]
    for row in result.rows:
        filters = list(islice(FEW.routing_filters(filters_of(1)), int(row["filters"])))
        shape = Shape(int(row["size"]), int(row["hashes"]))
        bits = {each: set(imprint(each, shape).bits) for filter_ in filters for each in filter_}
        made = [
            set().union(*(bits[each] for each in bits if event.may_match(((each,),)))) for event in events
        ]
        found = sum(
            set().union(*map(bits.__getitem__, filter_)) <= each for filter_ in filters for each in made
        )
        matching = sum(event.may_match((filter_,)) for filter_ in filters for event in events)
        assert row["constraints"] == len(bits)
        assert row["event_bits_mean"] == pytest.approx(sum(map(len, made)) / len(made))
        assert row["set_percent"] == pytest.approx(100 * float(row["event_bits_mean"]) / shape.bits)
        assert row["found_mean"] == found / len(events)
        assert row["matching_mean"] == matching / len(events) > 0
        unwanted = len(filters) * len(events) - matching
        assert row["false_positive_percent"] == pytest.approx(100 * (found - matching) / unwanted)
        assert row["untold_share"] == 0
    assert result.rows[0]["false_positive_percent"] > result.rows[-1]["false_positive_percent"]  # type: ignore[operator]


def test_a_structure_that_misses_somebody_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is not always the same."""
    find = SbsTree.find

    def lossy(self: SbsTree, bits: Collection[int]) -> Iterator[dict[Owner, int]]:
        return islice(find(self, bits), 1)

    monkeypatch.setattr(SbsTree, "find", lossy)
    failures = run().failures
    assert any("filters that match were not found" in each for each in failures)
    assert any("the bftree finds others" in each for each in failures)
