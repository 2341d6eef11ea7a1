"""Matching whole batches against the Routing Tree gives the prefixes that the reference gives."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from prefix_runs import Broker, Run
from prefix_scripts import EVENTS, Script, seeded, sql
from strategies import constraints, events, expressions, few_names, paths

from branchline.ops.workloads import WORKLOADS
from branchline.routing.compiled import walking
from branchline.routing.compiled.header_reading import read_headers
from branchline.routing.compiled.header_writing import Copies, write_headers
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.prefixes import Prefixes
from branchline.routing.compiled.reading import rows_of
from branchline.routing.compiled.walking import Walker
from branchline.routing.compiling import Compiled, compile_expression
from branchline.routing.event import Event
from branchline.routing.expression import Expression
from branchline.routing.prefix import trees as trees_module
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import Prefix, Trees
from branchline.routing.values import JsonValue

SEEDS = 16


class Entrance:
    """Trees that events enter by whole batches."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        self._paths = Paths()
        self._walker = Walker(trees, self._paths)

    def enter(self, events: Sequence[Mapping[str, JsonValue]]) -> tuple[Prefixes, np.ndarray]:
        """What the events give, and which of them are single-valued."""
        self._walker.catch_up()
        rows = rows_of(self._paths, events)
        return self._walker.walk(rows.scanned, ~rows.arrays), ~rows.arrays

    def check(self, events: Sequence[Mapping[str, JsonValue]]) -> list[Prefix]:
        """The prefixes of single-valued events, which are those of the reference; others have none."""
        made, single = self.enter(events)
        found = []
        for row, event in enumerate(events):
            if single[row]:
                assert made.prefix(row) == self.trees.enter(Event(event))
                found.append(made.prefix(row))
            else:
                assert made.part_first[row] == made.part_first[row + 1]
        return found


class Entrances(Run):
    """A script in which events enter at each broker after each step, one by one and all at once."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.entrances = [Entrance(broker.forwarder.trees) for broker in self.brokers]
        self.versions: list[object] = []

    def check(self, broker: Broker, prefix: Prefix, attributes: dict[str, Any]) -> None:
        """Who is owed what is checked elsewhere."""

    def _check_places(self, broker: Broker) -> None:
        """As is where filters stand."""

    def _check_told(self, broker: Broker) -> None:
        """And what brokers were told."""

    def check_flights(self) -> None:
        """Only where something has changed since."""
        versions = [v.version for broker in self.brokers for v in broker.forwarder.trees.vocabularies]
        if versions == self.versions:
            return
        self.versions = list(versions)
        for entrance in self.entrances:
            self.seen["versions"] += 1
            for prefix in entrance.check(EVENTS[self._owners % 5 :: 5]):
                self.seen["entries"] += sum(len(part.entries) for part in prefix.parts)
                self.seen["walked cut"] += any(part.cut for part in prefix.parts)
                self.seen["walked many"] += any(part.many for part in prefix.parts)
                self.seen["walked numbers"] += any(part.numbers for part in prefix.parts)
                self.seen["deep"] += any(level > 1 for part in prefix.parts for level, _ in part.entries)
                self.seen["parts"] += len(prefix.parts) > 1 and bool(prefix.parts[1].entries)


def test_prefixes_are_those_of_the_reference() -> None:
    """In every version that a script comes by, at every broker, for every single-valued event."""
    seen: Counter[str] = Counter()
    with patch.object(walking, "_SPARE_GATHERED", 3), patch.object(trees_module, "NUMBERS_MAX", 1):
        for seed in range(SEEDS):
            seen += Entrances(seeded(seed)).play().seen
    for what in ("walked cut", "walked many", "walked numbers", "deep", "parts", "versions"):
        assert seen[what] > 9, what
    assert seen["entries"] > 200


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_are_walked(name: str) -> None:
    """Larger trees, of the shapes that matchers are measured by; with overflow numbers, and cut."""
    source, workload = Random(3), WORKLOADS[name]
    settings = Settings(3, threshold=0, nodes_per_filter=4, spare_nodes=50)
    optimizer, trees = Optimizer(1, settings), [Trees(3), Trees(3, height=1)]
    for filter_ in islice(workload.filters(source), 150):
        optimizer.subscribe((filter_,))
    for update in optimizer.updates(0):
        for each in trees:
            each.apply(update)
    them = [workload.event(source) for _ in range(60)]
    for each in trees:
        made = Entrance(each).check(them)
        assert any(part.entries for prefix in made for part in prefix.parts)


few_expressions = expressions(constraints(paths(few_names, longest=2)), depth=2)


@often
@given(st.lists(few_expressions, min_size=1, max_size=6), st.lists(events(few_names), max_size=6))
def test_filters_of_every_kind_are_followed(
    wanted: list[Expression], them: list[dict[str, JsonValue]]
) -> None:
    """Whatever filters say, on every axis, with words and what is missing."""
    optimizer, trees = Optimizer(1, Settings(threshold=0)), Trees()
    for expression in wanted:
        compiled = compile_expression(expression)
        if isinstance(compiled, Compiled):
            optimizer.subscribe(compiled.cover)
    for update in optimizer.updates(0):
        trees.apply(update)
    Entrance(trees).check(them)


def test_many_siblings_are_in_the_order_of_their_numbers() -> None:
    """An event that follows more children of one node than are sorted as they come."""
    optimizer, trees = Optimizer(1, Settings(threshold=0)), Trees()
    for name in range(60):
        optimizer.subscribe(sql(f"n{name * 37 % 60} = 1").cover)
        optimizer.subscribe(sql(f"n{name * 23 % 60} > 0").cover)
    for update in optimizer.updates(0):
        trees.apply(update)
    [prefix, _] = Entrance(trees).check([{f"n{name}": 1 for name in range(60)}, {}])
    assert len(prefix.parts[0].entries) == 120


def test_an_event_travels_from_its_match_to_the_next_broker() -> None:
    """What was walked is written, and read again, as it was."""
    run = Run(seeded(2))
    for step in run.script.steps:
        run.step(step)
    entrance = Entrance(run.brokers[0].forwarder.trees)
    made, single = entrance.enter(EVENTS)
    rows = np.flatnonzero(single)
    zeros = np.zeros(len(rows), np.int64)
    written = write_headers(made, Copies(rows, zeros.astype(np.uint64), zeros, zeros))
    read = read_headers(written.data, written.first)
    assert read.ok.all()
    for place, row in enumerate(rows.tolist()):
        assert read.prefixes.prefix(place) == made.prefix(row)
