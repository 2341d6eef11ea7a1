"""Many copies that have come to one broker, which matches the content of each of them, at once.

Theory of operation. Where nothing travels but a scope, a copy is matched as an event that enters is
(`entering.py`): the copies are scanned, and the broker's interests give pairs of copies and owners. Of these
count the homes that are in the copy's scope, which give the hops, and the subscriptions here, if the broker
is. A copy goes on with the header that came, but for scope, topology and hops.

A copy that is in any way unusual is not *done*, and `Divider.route` decides about it: it came too early or
from too far, cannot be read, has more choices than rows, or a subscription here that was found has a residual
or an array to look at. What is done is what `Divider.route` does, also in what is counted.

Cost: the scan and the match, and passes over the pairs that were found.
"""

import numpy as np

from branchline.routing.compiled.header_writing import Copies, write_onward
from branchline.routing.compiled.prefixes import Flags, Longs, Words
from branchline.routing.deliveries import Names
from branchline.routing.limits import HOPS_MAX
from branchline.routing.overlay.dividing import Divider
from branchline.routing.overlay.doubts import Check
from branchline.routing.overlay.entering import HOME, INEXACT, Entrance
from branchline.routing.overlay.passing import Passed, word
from branchline.routing.overlay.sent import Sent


class Rematching:
    """Where copies from other brokers are matched at one broker."""

    def __init__(self, divider: Divider, names: Names, entrance: Entrance) -> None:
        self._divider = divider
        self._names = names
        self._entrance = entrance

    def route(self, sent: Sent, check: Check) -> Passed:
        """Where the copies go that can be routed so. Changes nothing."""
        position, headers = self._divider.position, sent.headers
        assert position.topology is not None, "whoever is open has one"
        routes = position.routes
        everybody, here_bit = word(routes.everybody), word(1 << routes.numbers[position.name])
        scope = headers.scope & everybody
        local = (scope & here_bit != 0) & self._divider.has_own()
        done = (headers.topology <= position.topology.number) & (headers.hops <= HOPS_MAX)
        interests, scan = check(sent.index.tolist())
        done[[*scan.rejected, *scan.unrowed]] = False

        row, sort, number, _, _ = self._entrance.found(interests, scan, len(sent))
        here = (sort != HOME) & local[row]
        done[row[here & ((sort == INEXACT) | scan.arrays[row])]] = False
        copy_row, hop = self._needed(row[sort == HOME], number[sort == HOME], scope, done)
        behind = np.array([word(homes) for homes in routes.behind.values()], np.uint64)
        topology = np.full(len(copy_row), position.topology.number, np.int64)
        scopes = scope[copy_row] & behind[hop] if len(behind) else scope[:0]
        written = write_onward(
            sent.data, sent.first, headers, Copies(copy_row, scopes, topology, headers.hops[copy_row] + 1)
        )
        done[copy_row[~written.ok]] = False

        owed, on = here & done[row], done[copy_row]
        subscribers = np.int64(max(len(self._names.all), 1))
        pairs = np.unique(row[owed] * subscribers + number[owed])
        cells = written.slices()
        numbers = np.array([self._names.number(each) for each in routes.behind], np.int32)
        gone = np.bitwise_count(headers.scope & ~everybody)
        return Passed(
            sent.index[done],
            sent.index[pairs // subscribers],
            (pairs % subscribers).astype(np.int32),
            sent.index[copy_row[on]],
            numbers[hop[on]],
            [cells[place] for place in np.flatnonzero(on).tolist()],
            retired=int(gone[done].sum()),
            exact_checks=0,
            refuted=0,
            taken=self._entrance.taken(len(sent)),
            # Of a copy that answers for nobody here or elsewhere, the content is not looked at.
            afresh=int((done & (local | (scope & ~here_bit != 0))).sum()),
        )

    def _needed(self, row: Longs, home: Longs, scope: Words, done: Flags) -> tuple[Longs, Longs]:
        """Rows and the hops that they go to, counted in their order; each pair once."""
        position = self._divider.position
        places = {hop: place for place, hop in enumerate(position.routes.behind)}
        hop_of = np.full(len(self._names.all), -1, np.int64)
        bit_of = np.zeros(len(self._names.all), np.uint64)
        for each in np.unique(home).tolist():
            name = self._names.all[each]
            if name in position.addresses:
                hop_of[each], bit_of[each] = places[position.addresses[name]], word(position.homes_of(name))
        needed = done[row] & (hop_of[home] >= 0) & (scope[row] & bit_of[home] != 0)
        hops = np.int64(max(len(places), 1))
        pairs = np.unique(row[needed] * hops + hop_of[home[needed]])
        return pairs // hops, pairs % hops
