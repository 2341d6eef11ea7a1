"""What a broker does with an event: match it once where it enters, and follow the result everywhere.

`enter` matches the event's content against the broker's own tree and gives the *prefix* that travels with it:
for each part the version it was matched with, the FPT, and the numbers of the filters beside the tree. `find`
walks the broker's own places along a prefix, whoever made it, and finds who is interested, without looking at
the event. A part whose version the broker does not have, or no longer keeps, or that never had what the
prefix names, is matched afresh: slower, never wrong.

An owner that was found is *certain* if one of its filters stands exactly where the walk came by. Otherwise it
is *doubtful*: it stands higher than it should, the FPT was cut by a height limit, too many numbers had
matched, or the event has arrays. Whoever delivers checks the doubtful ones' own filters, and nobody else's.

Cost: of `enter`, the match; of `find`, a look-up for each entry of the prefix and each owner found. It stops
when everybody that is looked for was found.
"""

from collections.abc import Set
from dataclasses import dataclass, field

from branchline.routing.covers import Cover
from branchline.routing.event import Event
from branchline.routing.prefix.beside import Beside
from branchline.routing.prefix.matching import Entries, follow, match
from branchline.routing.prefix.places import Owner, Places
from branchline.routing.prefix.updates import Snapshot, Update, Version, part_of
from branchline.routing.prefix.vocabulary import KEPT_VERSIONS, Changes, Fit, Vocabulary

NUMBERS_MAX = 256
"""Overflow numbers that travel with an event; beyond, all filters beside the tree are in doubt."""


@dataclass(frozen=True, slots=True)
class PartPrefix:
    """What a match found in one part."""

    version: Version
    entries: Entries
    numbers: tuple[int, ...] = ()
    cut: bool = False
    """A height limit kept the match from going on."""
    many: bool = False
    """More numbers had matched than travel."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What travels with an event: the result of its one content match."""

    parts: tuple[PartPrefix, ...]
    arrays: bool = False
    """The event has an array of which a constraint chose: everything found is in doubt."""


@dataclass(slots=True)
class Found:
    """Who is interested in an event."""

    certain: set[Owner] = field(default_factory=set)
    doubtful: set[Owner] = field(default_factory=set)
    afresh: int = 0
    """Parts that had to be matched afresh."""


class Forwarder:
    """The parts of the tree, as one broker knows them, and who is interested in what."""

    def __init__(self, parts: int = 1, height: int | None = None, keep: int = KEPT_VERSIONS) -> None:
        self._height = height
        self.vocabularies = [Vocabulary(part, keep) for part in range(parts)]
        self.places = [Places(vocabulary) for vocabulary in self.vocabularies]
        self._beside = [Beside() for _ in range(parts)]

    def subscribe(self, cover: Cover, owner: Owner) -> None:
        """The owner is interested in what the cover holds for."""
        for filter_ in cover:
            self.places[part_of(filter_, len(self.places))].add(filter_, owner)

    def unsubscribe(self, cover: Cover, owner: Owner) -> None:
        """The owner is no longer interested in this; in the same for another reason it still may be."""
        for filter_ in cover:
            self.places[part_of(filter_, len(self.places))].remove(filter_, owner)

    def apply(self, told: Update | Snapshot) -> Fit:
        """Go on to what the Tree Optimizer tells, if it fits."""
        if told.part not in range(len(self.vocabularies)):
            return Fit.FOREIGN
        vocabulary = self.vocabularies[told.part]
        fit, changes = vocabulary.apply(told) if isinstance(told, Update) else vocabulary.load(told)
        if fit is Fit.APPLIED:
            self._file(told.part, told, changes)
            self.places[told.part].changed(changes)
        return fit

    def enter(self, event: Event) -> Prefix:
        """The one content match of an event's life."""
        made = [self._match(part, event) for part in range(len(self.vocabularies))]
        return Prefix(tuple(made), event.met_array)

    def find(self, prefix: Prefix, event: Event, wanted: Set[Owner] | None = None) -> Found:
        """Who is interested, of those wanted if that is said. The event is looked at only to match afresh."""
        found = Found()
        for part in range(len(self.vocabularies)):
            told = prefix.parts[part] if part < len(prefix.parts) else None
            nodes = None if told is None else self._follow(part, told)
            if told is None or nodes is None:
                found.afresh += 1
                told = self._match(part, event)
                nodes = self._follow(part, told)
                assert nodes is not None, "what was matched just now is there"
            self._walk(part, told, nodes, prefix.arrays or event.met_array, found, wanted)
            if wanted is not None and wanted <= found.certain:
                break
        found.doubtful -= found.certain
        return found

    def _match(self, part: int, event: Event) -> PartPrefix:
        vocabulary = self.vocabularies[part]
        entries, cut = match(vocabulary.tree, event, self._height)
        numbers = self._beside[part].match(event)
        many = len(numbers) > NUMBERS_MAX
        return PartPrefix(vocabulary.version, entries, () if many else tuple(numbers), cut, many)

    def _follow(self, part: int, told: PartPrefix) -> list[tuple[int, int]] | None:
        """The nodes that the prefix leads to; None if its version is unknown, or never had what it names."""
        vocabulary, clock = self.vocabularies[part], told.version.clock
        if not vocabulary.knows(told.version):
            return None
        numbered = vocabulary.numbered
        if not all(number in numbered and numbered[number].lived(clock) for number in told.numbers):
            return None
        return follow(vocabulary.tree, told.entries, clock)

    def _walk(
        self,
        part: int,
        told: PartPrefix,
        nodes: list[tuple[int, int]],
        in_doubt: bool,
        found: Found,
        wanted: Set[Owner] | None,
    ) -> None:
        vocabulary, places = self.vocabularies[part], self.places[part]
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
            if wanted is not None and wanted <= found.certain:
                return
        for number in told.numbers:
            collect(~number, in_doubt)
        if told.many:
            for number, numbered in vocabulary.numbered.items():
                if numbered.lived(clock):
                    collect(~number, True)

    def _file(self, part: int, told: Update | Snapshot, changes: Changes) -> None:
        """Keep the index of the filters beside the tree as of the newest version."""
        if changes.everything:
            self._beside[part] = Beside()
            numbered = [(n, each.filter) for n, each in self.vocabularies[part].numbered.items()]
        else:
            assert isinstance(told, Update)
            for number in told.unnumbered:
                self._beside[part].remove(number)
            numbered = list(told.numbered)
        for number, filter_ in numbered:
            self._beside[part].add(number, filter_)
