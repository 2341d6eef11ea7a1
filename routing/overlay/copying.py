"""Copies of the events that enter together at one broker, for the homes elsewhere that want them.

Homes give the hops that need a copy. Only events that have one are walked along the Routing Tree, for the
prefix that travels along; their headers are written in a loop. An event with arrays is matched by itself, and
one of which a header would be too large is left to the reference, which trims it. Where nothing travels
along, all copies to one hop have the same header, which is written once.

Cost: the walk, a pass to write, and a bytes object for each copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from branchline.routing.compiled.header_writing import Copies, write_headers
from branchline.routing.compiled.prefixes import SCOPE_BITS, Flags, Ints, Longs, Prefixes
from branchline.routing.compiled.walking import Walker
from branchline.routing.deliveries import Names
from branchline.routing.overlay.dividing import Arrival, Copy, Divider
from branchline.routing.overlay.scan import Scan
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.header import encode
from branchline.routing.prefix.trees import UNMATCHED


@dataclass(slots=True)
class Copied:
    """Copies of the events of a batch, by their numbers in it."""

    events: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    to: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    headers: Sequence[bytes] = ()
    """Events, the neighbours' numbers and the headers as they travel, side by side."""
    single: list[tuple[int, Copy]] = field(default_factory=list)
    """Those of other events."""


class Copying:
    """Makes the copies of one broker's events."""

    def __init__(self, divider: Divider, names: Names) -> None:
        self._divider = divider
        self._names = names

    def copies(
        self, arrivals: Sequence[Arrival], scan: Scan, walker: Walker | None, event: Longs, home: Ints
    ) -> Copied:
        """Copies for the hops that lead to these homes, with what a walk along the tree gives."""
        copied = Copied()
        behind = list(self._divider.position.routes.behind)
        event, hop = self._needed(event, home)
        if not len(event):
            return copied
        if not isinstance(self._divider.forwarding, Forwarder):
            self._unmatched(event, hop, copied)
            return copied
        walked = np.zeros(len(arrivals), np.bool_)
        written, prefixes = walked, None
        if walker is not None:
            walked[event] = True
            walked &= ~scan.arrays
            prefixes = walker.walk(scan.scanned, walked)
            written = self._write(prefixes, event, hop, walked, copied)
        for each in np.unique(event[~written[event]]).tolist():
            if prefixes is not None and walked[each]:
                prefix = prefixes.prefix(each)
            else:
                prefix = self._divider.enter(arrivals[each])
            to = {behind[one] for one in hop[event == each].tolist()}
            copied.single += [(each, copy) for copy in self._divider.copies_of(prefix, to)]
        return copied

    def _unmatched(self, event: Longs, hop: Longs, copied: Copied) -> None:
        """Copies with nothing but their scope; their header is the same for every event."""
        behind = self._divider.position.routes.behind
        made = self._divider.copies_of(UNMATCHED, set(behind))
        headers = [encode(copy.header) for copy in made]
        numbers = np.array([self._names.number(copy.to) for copy in made], np.int32)
        copied.events, copied.to = event, numbers[hop]
        copied.headers = [headers[each] for each in hop.tolist()]

    def _needed(self, event: Longs, home: Ints) -> tuple[Longs, Longs]:
        """Events and the hops that they go to, counted in their order; each pair once."""
        position = self._divider.position
        places = {hop: place for place, hop in enumerate(position.routes.behind)}
        hop_of = np.full(len(self._names.all), -1, np.int64)
        for number in np.unique(home).tolist():
            hop = position.addresses.get(self._names.all[number])
            if hop is not None:
                hop_of[number] = places[hop]
        needed = hop_of[home] >= 0
        hops = np.int64(max(len(places), 1))
        pairs = np.unique(event[needed] * hops + hop_of[home[needed]])
        return pairs // hops, pairs % hops

    def _write(self, prefixes: Prefixes, event: Longs, hop: Longs, walked: Flags, copied: Copied) -> Flags:
        """Write the headers of events that were walked, and say of which: of an event all, or none."""
        position = self._divider.position
        assert position.topology is not None, "whoever is open has one"
        if position.routes.everybody >> SCOPE_BITS:
            return np.zeros(len(walked), np.bool_)
        event, hop = event[walked[event]], hop[walked[event]]
        homes = np.array(list(position.routes.behind.values()), np.uint64)
        topology = np.full(len(event), position.topology.number, np.int64)
        made = write_headers(prefixes, Copies(event, homes[hop], topology, np.ones(len(event), np.int64)))
        written = walked.copy()
        written[event[~made.ok]] = False
        kept = written[event]
        numbers = np.array([self._names.number(each) for each in position.routes.behind], np.int32)
        copied.events, copied.to, copied.headers = event[kept], numbers[hop[kept]], made.slices()
        if not kept.all():
            copied.headers = [copied.headers[place] for place in np.flatnonzero(kept).tolist()]
        return written
