"""The access index: which filters each event of a batch matches.

A row of cells is laid out in one array of slots (`held`), which is put back to what it was afterwards: no
matter how many dimensions there are, only those that the row has are visited, and those of presence under
which something is filed for what is missing. Whatever is filed under what the row has is checked
(`filing`).

An event with several rows matches what any of them matches, once.

Cost: what is filed under the row's cells, a few ns each; 24 bytes for each filter with a rest, 12 for each
constraint, and what `Bounds` takes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.blocks import SIDES, Blocks
from branchline.routing.compiled.blocks import STORED as BLOCKS_STORED
from branchline.routing.compiled.bounds import STORED as BOUNDS_STORED
from branchline.routing.compiled.bounds import WORDS_STORED, Bounds, bounds_of, ranked
from branchline.routing.compiled.filing import ENTRY, Filing, filed
from branchline.routing.compiled.filing import STORED as FILING_STORED
from branchline.routing.compiled.gathering import Parts, gathered
from branchline.routing.compiled.matching import match_rows
from branchline.routing.compiled.meeting import ITEM, ITEMS_OF_CELL, LIKELY, Rows, Scratch
from branchline.routing.compiled.memory import Ints, address
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.ranking import Cells, rank
from branchline.routing.compiled.regathering import unranked
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.texts import Longs
from branchline.routing.filters import Filter
from branchline.routing.prefix.keyed import Kins, read_kins
from branchline.routing.prefix.layout import Facts, Kind, read, write

_SECTIONS: dict[str, type[np.generic]] = {
    "first": np.int32,
    **{f"bounds_{name}": kind for name, kind in (BOUNDS_STORED | WORDS_STORED).items()},
    **{f"filing_{name}": kind for name, kind in (FILING_STORED | BLOCKS_STORED).items()},
}
"""The arrays of a stored index, in order, and what they are of."""


@dataclass(frozen=True, slots=True)
class Hits:
    """What each event matches: filters `row[first[e]]` to `row[first[e + 1]]`, each once, in no order."""

    first: Longs
    row: Ints
    late: int = 0
    """How many values had to be ranked in Python."""


@dataclass(frozen=True, slots=True)
class AccessIndex:
    """Filters, filed; immutable."""

    bounds: Bounds
    first: Ints
    """Where the checks of each filter begin; one more at the end."""
    arrays: dict[str, NDArray[Any]]
    """What `filing` points to."""
    filing: Filing
    blocks: Blocks

    @staticmethod
    def of(filters: Iterable[Filter], paths: Paths) -> "AccessIndex":
        """The index of these filters, which are numbered from 0 on."""
        return AccessIndex.built(gathered(filters), paths)

    @staticmethod
    def built(parts: Parts, paths: Paths) -> "AccessIndex":
        """The index of filters that are flattened."""
        found = ranked(parts, paths)
        return AccessIndex.laid(found.bounds, found.first, filed(found))

    @staticmethod
    def laid(bounds: Bounds, first: Ints, arrays: dict[str, NDArray[Any]]) -> "AccessIndex":
        """The index whose arrays are these."""
        facts = {
            "dimensions": bounds.dimensions,
            "cells": int(bounds.value_first[-1]),
            "default_count": arrays["defaults"].size,
            "everything_count": arrays["everything"].size,
            "bucket_count": arrays["bucket"].size - 1,
            "pair_lists": len(arrays["lists"]) - len(arrays["pair"]),
            "side_sure_from": arrays["sure"].size - arrays["side_sure_bound"].size,
            "side_entry_from": len(arrays["entries"]) - arrays["side_entry_bound"].size,
        }
        filing = Filing(*(facts[name] if name in facts else address(arrays[name]) for name in Filing._fields))
        of_blocks = [
            arrays[name] for name in ("blocks", "sides", "cuts", "block_bits", "block_rows", "checks")
        ]
        blocks = Blocks(*map(address, [*of_blocks, first]))
        return AccessIndex(bounds, first, arrays, filing, blocks)

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def constraints(self) -> int:
        return len(self.arrays["checks"])

    @property
    def nbytes(self) -> int:
        return self.bounds.nbytes + self.first.nbytes + sum(each.nbytes for each in self.arrays.values())

    def describe(self) -> str:
        """How many filters there are, and how they are filed."""
        size = {name: len(array) for name, array in self.arrays.items()}
        lines = [
            f"{len(self)} filters of {self.constraints} constraints on {self.bounds.dimensions} dimensions,"
            f" {self.bounds.words} words",
            f"{self.nbytes} bytes",
            f"lists: {self.filing.pair_lists} of cells and segments, {size['pair']} of pairs",
            f"filed without a rest: {size['sure']}, {size['side_sure_bound']} of them by one end",
            f"filed with a rest: {size['entries']}, {size['side_entry_bound']} of them by one end",
            f"filed in blocks: {size['block_rows']} in {len(self.arrays['blocks'])}",
            f"without constraints: {size['everything']}",
        ]
        return "\n".join(lines)

    def parts(self, kept: NDArray[np.bool_]) -> Parts:
        """The filters that are kept, flattened again."""
        return unranked(self.bounds, self.first, self.arrays["checks"], kept)

    def stored(self) -> bytes:
        """The index as bytes that can be used where they lie."""
        arrays = {
            "first": self.first,
            **{f"bounds_{name}": array for name, array in self.bounds.arrays.items()},
            **{f"filing_{name}": array for name, array in self.arrays.items()},
        }
        sections = {name: arrays[name].tobytes() for name in _SECTIONS}
        kins, wide = Kins(self.bounds.kins).packed(), " ".join(f"{each:x}" for each in self.bounds.wide)
        facts = Facts(self.bounds.marks.seed, len(self), 0)
        return write(facts, {"kins": kins, "wide": wide.encode(), **sections}, Kind.INDEX)

    @staticmethod
    def opened(data: memoryview, paths: Paths) -> "AccessIndex":
        """A stored index, whose arrays stay where they are. Raises `UnreadableTree` if the bytes are no
        such.
        """
        facts, found = read(data, ("kins", "wide", *_SECTIONS), Kind.INDEX)
        arrays = {name: np.frombuffer(found[name], kind) for name, kind in _SECTIONS.items()}
        parts: dict[str, dict[str, NDArray[Any]]] = {"bounds": {}, "filing": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition("_")
            if rest:
                parts[part][rest] = array
        for name, width in (("checks", 3), ("entries", ENTRY), ("lists", ITEM)):
            parts["filing"][name] = parts["filing"][name].reshape(-1, width)
        wide = tuple(int(each, 16) for each in str(found["wide"], "ascii").split())
        known = bounds_of(tuple(read_kins(found["kins"])), parts["bounds"], facts.digest, wide, paths)
        return AccessIndex.laid(known, arrays["first"], parts["filing"])

    def match(self, scanned: Scanned, events: int) -> Hits:
        """The filters that some row of each event satisfies."""
        return self.hits(rank(self.bounds, scanned), scanned.event, events)

    def hits(self, cells: Cells, event: Ints, events: int) -> Hits:
        """The same, of rows that are ranked; the rows of one event stand together, events in order."""
        steps = np.diff(event)
        assert not np.any(steps < 0), "rows are in the order of their events"
        found_in = (cells.first, cells.dimension, cells.rank, cells.word_first, cells.word, event)
        columns: list[NDArray[Any]] = [np.ascontiguousarray(each) for each in found_in]
        rows = Rows(len(event), *map(address, columns))
        first = np.zeros(events + 1, np.int64)
        most = int(np.diff(cells.first).max(initial=0))
        most_words = int(np.diff(cells.word_first).max(initial=0))
        held = self.arrays["blank"].copy()
        seen = np.full(len(self) if np.any(steps == 0) else 0, -1, np.int32)
        marked = np.empty(most, np.int64)
        met = ITEMS_OF_CELL * (most + self.filing.default_count) + most_words
        items = np.empty(ITEM * (met + min(most * most, self.arrays["pair"].size)), np.int32)
        chosen = np.empty(2 * SIDES, np.int64)
        likely = np.empty(LIKELY + most, np.int64)
        scratch = Scratch(*map(address, (held, seen, marked, likely, items, chosen)))
        out = np.empty(max(4 * events, 1024), np.int32)
        row = at = 0
        while True:
            row, at, wanted = match_rows(
                self.filing,
                self.blocks,
                rows,
                scratch,
                events,
                row,
                at,
                address(first),
                address(out),
                out.size,
            )
            if at >= events:
                return Hits(first, out[: first[-1]], cells.late)
            more = np.empty(max(2 * out.size, wanted + 1024), np.int32)
            more[: first[at]] = out[: first[at]]
            out = more
