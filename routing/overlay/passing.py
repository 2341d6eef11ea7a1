"""Many copies that other brokers have sent to one broker, routed at once.

Theory of operation. What an event is owed to was found out where it entered, and travels in its header. So
headers are columns, prefixes are followed (`compiled/following.py`) and what is found is divided
(`compiled/dividing.py`), without an object for any copy; of a header that goes on, the prefix is the bytes
that came. Whoever is found here in doubt is checked (`doubts.py`).

A copy that is in any way unusual is not *done*, and `Divider.route` decides about it: it came too early or
from too far, its prefix is of an older version or was cut, a residual or an array has to be evaluated, its
content cannot be read, or its next header would be too large. What is done is what `Divider.route` does, also
in what is counted.

Cost: what the loops take, and what checking takes where somebody is in doubt. Who stands at the root of the
tree is found for every copy: so many rows are followed at a time that this stays within bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from branchline.routing.compiled.dividing import EXACT, HOME, INEXACT, UNKNOWN, Divided, Known, divide
from branchline.routing.compiled.following import Follower
from branchline.routing.compiled.header_writing import Copies, Written, write_onward
from branchline.routing.compiled.names import Names as TreeNames
from branchline.routing.compiled.names import grown
from branchline.routing.compiled.prefixes import SCOPE_BITS, Flags, Ints, Longs, Words, frozen
from branchline.routing.control import Identity
from branchline.routing.deliveries import Names
from branchline.routing.limits import HOPS_MAX
from branchline.routing.overlay.dividing import Divider
from branchline.routing.overlay.doubts import Check, Doubts, decide
from branchline.routing.overlay.sent import Sent
from branchline.routing.prefix.forwarding import Forwarder

FOUND_AT_ONCE = 4_000_000
"""Owners that may be found for the rows that are followed at a time: some tens of bytes each."""


@dataclass(slots=True)
class Passed:
    """What became of the copies that are done, by their indexes in the batch."""

    done: Longs
    events: Longs
    subscribers: Ints
    """To whom they are owed, side by side."""
    copied: Longs
    to: Ints
    headers: Sequence[bytes]
    """Those that go on, the neighbours' numbers and the headers as they travel, side by side."""
    retired: int
    exact_checks: int
    refuted: int
    afresh: int = 0
    """Those whose content was matched."""
    taken: Mapping[str, int] = field(default_factory=dict)
    """What the method counts."""


class Passage:
    """Where copies from other brokers come by at one broker."""

    def __init__(self, divider: Divider, names: Names, trees: Sequence[TreeNames]) -> None:
        """The divider's forwarding follows prefixes; the names are those of its trees, part by part."""
        assert isinstance(divider.forwarding, Forwarder)
        self._divider = divider
        self._names = names
        self._follower = Follower(divider.forwarding, trees)
        self._sort: Ints = np.zeros(0, np.int32)
        self._number: Ints = np.zeros(0, np.int32)
        divider.renewed = set()

    def route(self, sent: Sent, check: Check) -> Passed:
        """Where the copies go that can be routed so. Changes nothing."""
        self._follower.catch_up()
        position, headers = self._divider.position, sent.headers
        assert position.topology is not None, "whoever is open has one"
        everybody = word(position.routes.everybody)
        scope = headers.scope & everybody
        here = word(1 << position.routes.numbers[position.name])
        local = (scope & here != 0) & self._divider.has_own()
        fit = (headers.topology <= position.topology.number) & (headers.hops <= HOPS_MAX)
        gone = np.bitwise_count(headers.scope & ~everybody)
        at_once = max(1, FOUND_AT_ONCE // max(1, self._follower.everywhere()))
        bounds = [*range(0, len(sent), at_once), len(sent)]
        pieces = [self._some(sent, slice(*each), fit, scope, local, gone, check) for each in pairwise(bounds)]
        return pieces[0] if len(pieces) == 1 else _joined(pieces)

    def _some(
        self,
        sent: Sent,
        rows: slice,
        fit: Flags,
        scope: Words,
        local: Flags,
        gone: Words,
        check: Check,
    ) -> Passed:
        """Route these rows."""
        prefixes, index = sent.headers.prefixes, sent.index[rows]
        part_first = prefixes.part_first[rows.start : rows.stop + 1]
        told = prefixes._replace(arrays=prefixes.arrays[rows], part_first=part_first)
        done, first, owner, certain = self._follower.find(told, fit[rows])
        known, hops = self._known(owner), self._divider.position.routes.behind
        divided = divide(
            frozen(first),
            frozen(owner),
            frozen(certain),
            known,
            len(hops),
            frozen(scope[rows]),
            frozen(local[rows]),
        )
        written = self._write(sent, rows.start, scope, divided)
        done[divided.copy_row[~written.ok]] = False
        # Where a residual must be evaluated, an index says nothing.
        done[divided.doubt_row[self._sort[divided.doubt] == INEXACT]] = False
        doubts = Doubts(divided.doubt_row, divided.doubt, self._number[divided.doubt])
        doubts = doubts.of(done[doubts.row])
        more_rows, more, exact_checks, refuted = divided.owed_row[:0], divided.subscriber[:0], 0, 0
        if len(doubts.row):
            left, more_rows, more, exact_checks, refuted = decide(doubts, self._follower.owners, index, check)
            done[left] = False
        owed, on = done[divided.owed_row], done[divided.copy_row]
        numbers = np.array([self._names.number(hop) for hop in hops], np.int32)
        headers = written.slices()
        return Passed(
            index[done],
            np.concatenate([index[divided.owed_row[owed]], index[more_rows]]),
            np.concatenate([divided.subscriber[owed], more]),
            index[divided.copy_row[on]],
            numbers[divided.hop[on]],
            headers if on.all() else [headers[place] for place in np.flatnonzero(on).tolist()],
            int(gone[rows][done].sum()),
            exact_checks,
            refuted,
        )

    def _known(self, found: Ints) -> Known:
        """What is known of owners, after those that were found have been looked up."""
        owners, renewed = self._follower.owners, self._divider.renewed
        assert renewed is not None, "it is noted from the beginning"
        self._sort = grown(self._sort, len(owners.table), UNKNOWN)
        self._number = grown(self._number, len(owners.table), 0)
        codes = [owners.find(identity) for identity in renewed]
        for code in (*owners.renewed, *(each for each in codes if each is not None)):
            self._sort[code] = UNKNOWN
        owners.renewed.clear()
        renewed.clear()
        for code in np.unique(found[self._sort[found] == UNKNOWN]).tolist():
            owner = owners.table[code]
            if isinstance(owner, Identity):
                self._sort[code] = EXACT if self._divider.is_exact(owner) else INEXACT
                self._number[code] = self._names.number(owner.subscriber)
            else:
                assert isinstance(owner, str), "an owner is a home or a subscription"
                self._sort[code], self._number[code] = HOME, self._names.number(owner)
        position = self._divider.position
        places = {hop: place for place, hop in enumerate(position.routes.behind)}
        numbers = {address: self._names.number(address) for address in position.addresses}
        hop, bit = np.full(len(self._names.all), -1, np.int32), np.zeros(len(self._names.all), np.uint64)
        for address, number in numbers.items():
            hop[number] = places[position.addresses[address]]
            bit[number] = word(position.homes_of(address))
        return Known(frozen(self._sort), frozen(self._number), frozen(hop), frozen(bit))

    def _write(self, sent: Sent, start: int, scope: Words, divided: Divided) -> Written:
        """The headers of the copies that go on."""
        position = self._divider.position
        assert position.topology is not None
        row = divided.copy_row + start
        behind = np.array([word(homes) for homes in position.routes.behind.values()], np.uint64)
        topology = np.full(len(row), position.topology.number, np.int64)
        copies = Copies(row, scope[row] & behind[divided.hop], topology, sent.headers.hops[row] + 1)
        return write_onward(sent.data, sent.first, sent.headers, copies)


def _joined(pieces: Sequence[Passed]) -> Passed:
    """What became of all rows."""
    return Passed(
        np.concatenate([each.done for each in pieces]),
        np.concatenate([each.events for each in pieces]),
        np.concatenate([each.subscribers for each in pieces]),
        np.concatenate([each.copied for each in pieces]),
        np.concatenate([each.to for each in pieces]),
        [cell for each in pieces for cell in each.headers],
        sum(each.retired for each in pieces),
        sum(each.exact_checks for each in pieces),
        sum(each.refuted for each in pieces),
    )


def word(homes: int) -> np.uint64:
    """As many homes of a set as a scope in a column has bits for; a scope with more is in no column."""
    return np.uint64(homes & (1 << SCOPE_BITS) - 1)
