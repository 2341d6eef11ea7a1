"""Many events that enter at one broker, routed at once.

Theory of operation. What an event is owed to hangs only on its content, since all that enter have the same
scope. So the batch is scanned once, and the broker's interests (`compiled/interests.py`) give pairs of events
and owners, wherever the owners' filters stand in the Routing Tree: nobody is found in doubt. A subscription
here whose cover is exact is owed the event. One with a residual, or any for an event with arrays, is decided
as it is for a single event (`delivering.py`). Homes elsewhere give the hops that need a copy; only for events
that have one the tree is walked, for the prefix that travels along, if one does.

An owner's *sort* is looked up once, and again when its filter has changed.

Cost: the scan and the match; then passes over the pairs that were found, in arrays. Python touches single
events where a residual or an array has to be decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from branchline.routing.codes import Rejection
from branchline.routing.compiled.interests import Interests
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.walking import Walker
from branchline.routing.control import Identity
from branchline.routing.deliveries import Names
from branchline.routing.methods.protocols import Indexed
from branchline.routing.overlay.admitting import Admitting
from branchline.routing.overlay.copying import Copied, Copying
from branchline.routing.overlay.dividing import Arrival, Divider, Routed
from branchline.routing.overlay.scan import Scan
from branchline.routing.prefix.forwarding import Forwarder, Found
from branchline.routing.prefix.places import Owner
from branchline.routing.values import JsonValue

UNKNOWN, EXACT, INEXACT, HOME = range(4)
"""Sorts of owners: subscriptions here, with a cover that says all or less, and homes elsewhere."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Events whose attributes are there already, as a scan."""

    scanned: Scanned
    rejected: Mapping[int, Rejection]
    unrowed: Sequence[int]
    arrays: NDArray[np.bool_]


def scan_attributes(paths: Paths, attributes: "Sequence[Mapping[str, JsonValue] | Rejection]") -> Attributes:
    """The events with these attributes, or the reason why they have none."""
    rejected = {number: each for number, each in enumerate(attributes) if isinstance(each, Rejection)}
    read = {number: each for number, each in enumerate(attributes) if not isinstance(each, Rejection)}
    rows, numbers = rows_of(paths, list(read.values())), np.fromiter(read, np.int32)
    arrays = np.zeros(len(attributes), np.bool_)
    arrays[numbers] = rows.arrays
    scanned = replace(rows.scanned, event=numbers[rows.scanned.event])
    return Attributes(scanned, rejected, numbers[rows.unrowed].tolist(), arrays)


class Chosen(Sequence[Arrival]):
    """Some of the arrivals, looked up when they are asked for."""

    def __init__(self, arrivals: Sequence[Arrival], indexes: Sequence[int]) -> None:
        self._arrivals, self._indexes = arrivals, indexes

    def __len__(self) -> int:
        return len(self._indexes)

    @overload
    def __getitem__(self, number: int) -> Arrival: ...

    @overload
    def __getitem__(self, number: slice) -> "Chosen": ...

    def __getitem__(self, number: int | slice) -> "Arrival | Chosen":
        if isinstance(number, slice):
            return Chosen(self._arrivals, self._indexes[number])
        return self._arrivals[self._indexes[number]]


@dataclass(slots=True)
class Entered:
    """What became of the events of a batch, by their numbers in it."""

    events: NDArray[np.int64]
    subscribers: NDArray[np.int32]
    """To whom they are owed, side by side."""
    decided: dict[int, Routed] = field(default_factory=dict)
    """What was decided for single events: deliveries that are not above, and what is undecided."""
    copied: Copied = field(default_factory=Copied)
    refuted: int = 0
    exact_checks: int = 0
    refused: Sequence[int] = ()
    """Those that are not let in: no advertisement holds for them."""
    taken: Mapping[str, int] = field(default_factory=dict)
    """What the method counts."""
    unadvertised: int = 0
    """How many there are for which none does, let in or not."""


class Pairs(NamedTuple):
    """Events and owners that are interested in them, side by side."""

    event: NDArray[np.int64]
    sort: NDArray[np.int8]
    number: NDArray[np.int32]
    """The subscriber's number, or the home's, which are numbered together."""
    code: NDArray[np.int32]
    part: NDArray[np.int64]
    """The owner's code in the interests of this part."""

    def kept(self, which: NDArray[np.bool_]) -> "Pairs":
        """Only some of them."""
        event, sort, number, code, part = self
        return Pairs(event[which], sort[which], number[which], code[which], part[which])


class Entrance:
    """Where events enter at one broker."""

    def __init__(self, divider: Divider, names: Names) -> None:
        self._divider = divider
        self._names = names
        self._copying = Copying(divider, names)
        self._owners: list[_Owners] = []
        self._admitting: Admitting | None = None

    def interests(self, paths: Paths) -> "Sequence[Interests] | None":
        """Those of the broker, for batches; None if events cannot be routed so now, or never."""
        forwarding = self._divider.forwarding
        if not isinstance(forwarding, Indexed) or not self._divider.is_open():
            return None
        admission = self._divider.admission
        if admission is not None and (self._admitting is None or not self._admitting.is_fresh(paths)):
            self._admitting = Admitting(admission, paths)
        return forwarding.interests(paths)

    @property
    def leads_on(self) -> bool:
        """Whether there are other homes, for which events must be walked along the tree."""
        return bool(self._divider.position.addresses) and isinstance(self._divider.forwarding, Forwarder)

    def route(
        self, interests: Sequence[Interests], scan: Scan, arrivals: Sequence[Arrival], walker: Walker | None
    ) -> Entered:
        """Where the events go that have rows. Changes nothing."""
        events = len(arrivals)
        pairs = self.found(interests, scan, events)
        taken = self.taken(events)
        outside = self._outside(scan, arrivals)
        refused = outside if outside is not None and self._is_required() else None
        if refused is not None:
            pairs = pairs.kept(~refused[pairs.event])
        event, sort, number, code, part = pairs
        here, away = sort != HOME, sort == HOME
        special = np.zeros(events, np.bool_)
        special[event[here & ((sort == INEXACT) | scan.arrays[event])]] = True
        plain = here & ~special[event]
        subscribers = np.int64(max(len(self._names.all), 1))
        owed = np.unique(event[plain] * subscribers + number[plain])
        entered = Entered(owed // subscribers, (owed % subscribers).astype(np.int32), taken=taken)
        if outside is not None:
            entered.unadvertised = int(outside.sum())
        if refused is not None:
            entered.refused = np.flatnonzero(refused).tolist()
        self._decide(interests, arrivals, scan, (event, code, part), here & special[event], entered)
        entered.copied = self._copying.copies(arrivals, scan, walker, event[away], number[away])
        return entered

    def _outside(self, scan: Scan, arrivals: Sequence[Arrival]) -> NDArray[np.bool_] | None:
        """Of each event whether no advertisement holds for it; None where that does not matter."""
        return None if self._admitting is None else self._admitting.outside(scan, arrivals)

    def _is_required(self) -> bool:
        return self._admitting is not None and self._admitting.admission.required

    def found(self, interests: Sequence[Interests], scan: Scan, events: int) -> "Pairs":
        """Who is interested in which of so many events."""
        if [owners.interests for owners in self._owners] != list(interests):
            self._owners = [_Owners(each, self._divider, self._names) for each in interests]
        found = [
            owners.sorted(part, *owners.interests.match(scan.scanned, events))
            for part, owners in enumerate(self._owners)
        ]
        return Pairs(*(np.concatenate([each[column] for each in found]) for column in range(5)))

    def taken(self, events: int) -> Mapping[str, int]:
        """What the method counts of finding it."""
        forwarding = self._divider.forwarding
        return forwarding.taken(events) if isinstance(forwarding, Indexed) else {}

    def _decide(
        self,
        interests: Sequence[Interests],
        arrivals: Sequence[Arrival],
        scan: Scan,
        pairs: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
        which: NDArray[np.bool_],
        entered: Entered,
    ) -> None:
        """Decide for whoever was found of single events."""
        found: dict[int, set[Owner]] = {}
        for event, code, part in zip(*(each[which].tolist() for each in pairs), strict=True):
            found.setdefault(event, set()).add(interests[part].owner(code))
        for event, owners in sorted(found.items()):
            doubtful = bool(scan.arrays[event])
            those = Found(set(), owners) if doubtful else Found(owners)
            routed = entered.decided[event] = self._divider.decide(arrivals[event], those)
            entered.refuted += routed.refuted
            entered.exact_checks += routed.exact_checks


class _Owners:
    """The sorts of the owners of one part's interests, by their codes."""

    def __init__(self, interests: Interests, divider: Divider, names: Names) -> None:
        self.interests = interests
        self._divider = divider
        self._names = names
        self._sort = np.zeros(0, np.int8)
        self._number = np.zeros(0, np.int32)
        """The subscriber's number, or the home's, which are numbered together."""

    def sorted(self, part: int, event: NDArray[np.int64], code: NDArray[np.int32]) -> "Pairs":
        """The pairs with the owners' sorts and numbers."""
        if self.interests.codes > len(self._sort):
            size = 2 * self.interests.codes
            self._sort = np.concatenate([self._sort, np.zeros(size - len(self._sort), np.int8)])
            self._number = np.concatenate([self._number, np.zeros(size - len(self._number), np.int32)])
        for each in self.interests.renewed():
            self._sort[each] = UNKNOWN
        unknown = np.unique(code[self._sort[code] == UNKNOWN])
        for each in unknown.tolist():
            self._sort[each], self._number[each] = self._look_up(self.interests.owner(each))
        return Pairs(event, self._sort[code], self._number[code], code, np.full(len(code), part))

    def _look_up(self, owner: Owner) -> tuple[int, int]:
        if isinstance(owner, Identity):
            sort = EXACT if self._divider.is_exact(owner) else INEXACT
            return sort, self._names.number(owner.subscriber)
        assert isinstance(owner, str), "an owner is a home or a subscription"
        return HOME, self._names.number(owner)
