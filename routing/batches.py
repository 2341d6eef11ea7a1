"""The events of a call that are routed together: those that enter at a broker, and copies that come to one.

All brokers of a shard share what the loops need: the paths that filters name, the Routing Tree compiled for
walking, and the names of its places. It is made when a batch first needs it; so a shard that has only small
batches loads no compiled loop. What is not worth a batch, or cannot be routed as one, is left to whoever
asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from branchline.routing.deliveries import Names
from branchline.routing.overlay.broker import Broker
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.trees import Trees

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.interests import Interests
    from branchline.routing.compiled.names import Names as TreeNames
    from branchline.routing.compiled.paths import Paths
    from branchline.routing.compiled.walking import Walker
    from branchline.routing.overlay.entering import Entered, Entrance
    from branchline.routing.overlay.passing import Passage, Passed
    from branchline.routing.overlay.rematching import Rematching
    from branchline.routing.overlay.scan import Scan
    from branchline.routing.shard import EventBatch

PATHS_KEPT = 50_000
"""Paths that filters have named since they were last numbered anew. None is ever taken back by itself, and
whoever subscribes and leaves again may name others every time."""


class Batches:
    """Routes the events of a shard's brokers as batches, where that is worth it."""

    def __init__(
        self, brokers: Mapping[str, Broker], trees: Trees, names: Names, batches_from: int | None
    ) -> None:
        self._brokers, self._trees, self._names = brokers, trees, names
        self._batches_from = batches_from
        self.paths: Paths | None = None
        self._paths_kept = PATHS_KEPT
        self._walker: Walker | None = None
        self._tree_names: Sequence[TreeNames] = ()
        self._entrances: dict[str, Entrance] = {}
        self._passages: dict[str, Passage] = {}

    def begin(self) -> None:
        """A call begins: now paths may be numbered anew."""
        if self.paths is not None and len(self.paths) > self._paths_kept:
            # Whatever hangs on their numbers sees that they are others, and is made again.
            self.paths, self._walker, self._paths_kept = None, None, 0

    def end(self) -> None:
        """A call ends: what was numbered anew is what filters name now."""
        if self._paths_kept == 0:
            self._paths_kept = max(PATHS_KEPT, 2 * len(self.paths or ()))

    def entering(self, events: "EventBatch") -> "Iterator[tuple[str, Sequence[int], Scan, Entered]]":
        """Brokers, the indexes of what enters there, how it was scanned, and what became of it."""
        for name, indexes in events.entering_at().items() if self._batches_from is not None else ():
            asked = self._interests(name) if self._is_worth_it(name, len(indexes)) else None
            if asked is None:
                continue
            from branchline.routing.overlay.entering import Chosen

            entrance, paths, interests = asked
            walker = self._walk(paths) if entrance.leads_on else None
            # Only now: all of these have added the paths that they ask about.
            scan = events.scanned(paths, indexes)
            entered = entrance.route(interests, scan, Chosen(events.arrivals, indexes), walker)
            yield name, indexes, scan, entered

    def passed(self, events: "EventBatch") -> "Iterator[tuple[str, Passed]]":
        """Brokers, and what became of the copies that have come there from others."""
        for sent in events.sent_to() if self._batches_from is not None and self._leads_on() else ():
            passage = self._passage(sent.at) if self._is_worth_it(sent.at, len(sent)) else None
            if passage is not None:
                yield sent.at, passage.route(sent, partial(self._scan, sent.at, events))

    def _leads_on(self) -> bool:
        """Whether any broker has neighbours, from which copies could come."""
        return any(broker.position.neighbours for broker in self._brokers.values())

    def _is_worth_it(self, name: str, events: int) -> bool:
        """Whether so many events at a broker are routed as one batch."""
        least = self._batches_from
        return least is not None and events * len(self._brokers[name]) >= least

    def _interests(self, name: str) -> "tuple[Entrance, Paths, Sequence[Interests]] | None":
        """Where events enter at a broker, and its interests; None if they cannot be routed as batches."""
        from branchline.routing.compiled.paths import Paths
        from branchline.routing.overlay.entering import Entrance

        if self.paths is None:
            self.paths = Paths()
        entrance = self._entrances.get(name)
        if entrance is None:
            entrance = self._entrances[name] = Entrance(self._brokers[name].divider, self._names)
        interests = entrance.interests(self.paths)
        return None if interests is None else (entrance, self.paths, interests)

    def _walk(self, paths: "Paths") -> "Walker":
        """The Routing Tree as it is now."""
        from branchline.routing.compiled.walking import Walker

        if self._walker is None:
            self._walker = Walker(self._trees, paths)
        self._walker.catch_up()
        return self._walker

    def _passage(self, name: str) -> "Passage | Rematching | None":
        """Where copies come by at a broker; None if they cannot be routed as batches now, or never."""
        divider = self._brokers[name].divider
        if not isinstance(divider.forwarding, Forwarder):
            return self._rematching(name)
        if not divider.is_open():
            return None
        if name not in self._passages:
            from branchline.routing.compiled.names import Names as TreeNames
            from branchline.routing.overlay.passing import Passage

            if not self._tree_names:
                parts = range(len(self._trees.vocabularies))
                self._tree_names = [TreeNames(self._trees, part) for part in parts]
            self._passages[name] = Passage(divider, self._names, self._tree_names)
        return self._passages[name]

    def _rematching(self, name: str) -> "Rematching | None":
        """Where copies are matched at a broker, as events that enter there are, if those can be."""
        asked = self._interests(name)
        if asked is None:
            return None
        from branchline.routing.overlay.rematching import Rematching

        return Rematching(self._brokers[name].divider, self._names, asked[0])

    def _scan(
        self, name: str, events: "EventBatch", indexes: Sequence[int]
    ) -> "tuple[Sequence[Interests], Scan]":
        """Copies at a broker scanned from their bytes, and the broker's interests."""
        asked = self._interests(name)
        assert asked is not None, "where copies come by, events may enter"
        _, paths, interests = asked
        return interests, events.scanned(paths, indexes)
