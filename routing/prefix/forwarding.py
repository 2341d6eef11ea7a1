"""What a broker does with the prefix of an event: follow it, and find who is interested.

`find` walks the broker's own places along a prefix, whoever made it, without looking at the event. A part
whose version the broker does not have, or no longer keeps, or that never had what the prefix names, is
matched afresh: slower, never wrong.

An owner that was found is *certain* if one of its filters stands exactly where the walk came by. Otherwise it
is *doubtful*: it stands higher than it should, the FPT was cut by a height limit, too many numbers had
matched, or the event has arrays. Whoever delivers checks the doubtful ones' own filters, and nobody else's.

Cost: of `enter`, the match; of `find`, a look-up for each entry of the prefix and each owner found. It stops
when everybody that is looked for was found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from branchline.routing.covers import Cover
from branchline.routing.event import Event
from branchline.routing.prefix.places import Owner, Places
from branchline.routing.prefix.stored_places import StoredPlaces, pack_places
from branchline.routing.prefix.trees import PartPrefix, Prefix, Trees
from branchline.routing.prefix.updates import part_of

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.interests import Interests
    from branchline.routing.compiled.paths import Paths


@dataclass(slots=True)
class Found:
    """Who is interested in an event."""

    certain: set[Owner] = field(default_factory=set)
    doubtful: set[Owner] = field(default_factory=set)
    afresh: int = 0
    """Parts that had to be matched afresh."""
    older: int = 0
    """Parts that were walked in an older version than the newest."""
    counts: dict[str, int] = field(default_factory=dict)
    """What the method did, by names of its own."""


class Wanted(Protocol):
    """Who is looked for, and when enough of them were found."""

    def __contains__(self, owner: object, /) -> bool: ...

    def enough(self, found: Found, /) -> bool:
        """Whether nothing that is found from here on matters."""
        ...


class Forwarder:
    """One broker's places in the trees."""

    def __init__(self, trees: Trees | None = None, stored: Sequence[memoryview] = ()) -> None:
        """Nobody's places, or those that were stored. May raise UnreadableTree."""
        self.trees = trees or Trees()
        self.places = [
            Places(vocabulary, StoredPlaces(stored[part]) if stored else None)
            for part, vocabulary in enumerate(self.trees.vocabularies)
        ]
        self.trees.listen(lambda part, changes: self.places[part].changed(changes))

    def stored(self) -> list[bytes]:
        """The places as bytes, one for each part."""
        return [pack_places(places.rows(), places.stored) for places in self.places]

    def subscribe(self, cover: Cover, owner: Owner) -> None:
        """The owner is interested in what the cover holds for."""
        for filter_ in cover:
            self.places[part_of(filter_, len(self.places))].add(filter_, owner)

    def unsubscribe(self, cover: Cover, owner: Owner) -> None:
        """The owner is no longer interested in this; in the same for another reason it still may be."""
        for filter_ in cover:
            self.places[part_of(filter_, len(self.places))].remove(filter_, owner)

    def interests(self, paths: "Paths") -> "Sequence[Interests] | None":
        """Who is interested in the events of a batch, part by part, wherever the filters stand."""
        return [places.interests(paths) for places in self.places]

    def taken(self, events: int) -> Mapping[str, int]:
        """Nothing: where an event enters, the same is counted whatever the method."""
        return {}

    def enter(self, event: Event) -> Prefix:
        """The one content match of an event's life."""
        return self.trees.enter(event)

    def find(self, prefix: Prefix, event: Event, wanted: Wanted | None = None) -> Found:
        """Who is interested, of those wanted if that is said. The event is looked at only to match afresh."""
        found = Found()
        for part, vocabulary in enumerate(self.trees.vocabularies):
            told = prefix.parts[part] if part < len(prefix.parts) else None
            nodes = None if told is None else self.trees.follow(part, told)
            arrays = prefix.arrays
            if told is None or nodes is None:
                found.afresh += 1
                told = self.trees.match(part, event)
                nodes = self.trees.follow(part, told)
                assert nodes is not None, "what was matched just now is there"
                arrays = arrays or event.met_array
            found.older += told.version.clock < vocabulary.version.clock
            self._walk(part, told, nodes, arrays, found, wanted)
            if wanted is not None and wanted.enough(found):
                break
        found.doubtful -= found.certain
        return found

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        """The prefix goes on as it came."""
        return prefix

    def _walk(
        self,
        part: int,
        told: PartPrefix,
        nodes: list[tuple[int, int]],
        in_doubt: bool,
        found: Found,
        wanted: Wanted | None,
    ) -> None:
        vocabulary, places = self.trees.vocabularies[part], self.places[part]
        clock = told.version.clock

        def collect(where: int, doubt: bool) -> None:
            for owners, exact in places.interested(where, clock):
                into = found.certain if exact and not doubt else found.doubtful
                into.update(owners if wanted is None else (each for each in owners if each in wanted))

        deepest = max((level for level, _ in told.entries), default=0)
        for node, level in nodes:
            collect(node, in_doubt)
            if told.cut and level == deepest:
                for below in vocabulary.below(node, clock):
                    collect(below, True)
            if wanted is not None and wanted.enough(found):
                return
        for number in told.numbers:
            collect(~number, in_doubt)
        if told.many:
            for number, numbered in vocabulary.numbered.items():
                if numbered.lived(clock):
                    collect(~number, True)
