"""What matchers are measured with is what it says it is."""

import json
from itertools import islice, pairwise
from random import Random

import numpy as np
import pytest

from branchline.ops.cw_flat import cw_parts
from branchline.ops.cw_workload import cw_filters
from branchline.ops.matching_workloads import MATCHING, Shape, draw_events, draw_filters
from branchline.ops.spelled_filters import SPELLINGS, Spelled
from branchline.ops.sql_texts import sql_text
from branchline.routing.codes import Rejection
from branchline.routing.compiled.bounds import ranked
from branchline.routing.compiled.gathering import gathered
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiling import compile_filter
from branchline.routing.event import Event
from branchline.routing.filters import conjoin


@pytest.mark.parametrize("name", MATCHING)
def test_filters_are_in_normal_form_and_events_match_wherever_attributes_are(name: str) -> None:
    """Nested or not, awkward, with arrays or without, the same filters match the same events."""
    workload = MATCHING[name]
    found = []
    for shape, awkward, arrays in (
        (Shape.FLAT, 0.0, 0.0),
        (Shape.NESTED, 0.0, 0.0),
        (Shape.NESTED, 0.0, 0.5),
        (Shape.NESTED, 0.25, 0.5),
    ):
        filters = draw_filters(workload, 150, 1, shape)
        assert all(conjoin(each) == each for each in filters)
        texts = draw_events(workload, 40, 1, shape, awkward, arrays)
        assert sum(b"[" in each for each in texts) == 40 * (awkward + (1 - awkward) * arrays)
        assert sum(b"[]" in each for each in texts) == 40 * awkward
        events = [Event(json.loads(each)) for each in texts]
        found.append([[event.may_match((each,)) for each in filters] for event in events])
    assert found[0] == found[1] == found[2] == found[3]


@pytest.mark.parametrize("name", sorted(set(MATCHING) - {"spellings"}))
def test_filters_can_be_written_as_texts(name: str) -> None:
    """As a subscriber would: the cover of the text is the filter."""
    for filter_ in draw_filters(MATCHING[name], 60, 1, Shape.NESTED):
        compiled = compile_filter("sql", sql_text(filter_))
        assert not isinstance(compiled, Rejection)
        assert compiled.cover == (filter_,) and compiled.exact


@pytest.mark.parametrize("name", MATCHING)
def test_a_larger_draw_begins_with_the_smaller(name: str) -> None:
    """So that growth is of one set of filters."""
    few, many = (draw_filters(MATCHING[name], count, 7, Shape.FLAT) for count in (50, 120))
    assert many[:50] == few
    assert few != draw_filters(MATCHING[name], 50, 8, Shape.FLAT)


@pytest.mark.parametrize(("name", "density"), [("gaussian-0.1", 0.001), ("gaussian-1", 0.01)])
def test_ranges_have_the_density_that_they_are_named_for(name: str, density: float) -> None:
    """An event matches that share of the filters, within what so small a sample allows."""
    filters = draw_filters(MATCHING[name], 1_000, 1, Shape.FLAT)
    events = [Event(json.loads(each)) for each in draw_events(MATCHING[name], 100, 1, Shape.FLAT, 0)]
    share = sum(event.may_match((each,)) for event in events for each in filters) / 100_000
    assert density / 2 < share < density * 2


def test_texts_of_all_spellings_differ() -> None:
    """However few words there are."""
    for spelling in SPELLINGS:
        texts = list(islice(Spelled(2).texts(spelling, Random(1)), 200))
        assert len(set(texts)) == 200


def test_flat_filters_are_the_same_as_those_that_are_objects() -> None:
    """Each filter has the same constraints, in ranks of the same values; also a part of a block."""
    objects = ranked(gathered(cw_filters("1 filters", 1_300)), Paths())
    flat = ranked(cw_parts("1 filters", 1_300), Paths())
    assert objects.bounds.kins == flat.bounds.kins
    assert objects.first.tolist() == flat.first.tolist()
    for name in ("value_first", "near", "blob", "at", "label"):
        assert objects.bounds.arrays[name].tobytes() == flat.bounds.arrays[name].tobytes()
    columns = [np.stack([each.slot, each.low, each.high], axis=1).tolist() for each in (objects, flat)]
    for start, end in pairwise(objects.first.tolist()):
        assert sorted(columns[0][start:end]) == sorted(columns[1][start:end])
