"""The parts of the Routing Tree as one shard knows them: a content match gives the prefix that travels.

All brokers that a shard serves share this; each holds only its own places in it (`forwarding.py`). `enter`
matches an event's content against all parts, which is the only content match in its life, and gives the
*prefix*: for each part the version it was matched with, the FPT, and the numbers of the filters beside the
tree. `follow` leads along a part's prefix, whoever made it, without looking at the event.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from branchline.routing.bloom.travelling import EventBits
from branchline.routing.describing import describe_constraint, describe_filter
from branchline.routing.event import Event
from branchline.routing.prefix.beside import Beside
from branchline.routing.prefix.edges import ALIVE, ROOT
from branchline.routing.prefix.keys import Keys
from branchline.routing.prefix.matching import Entries, follow, match
from branchline.routing.prefix.updates import Snapshot, Update, Version
from branchline.routing.prefix.vocabulary import KEPT_VERSIONS, Changes, Fit, Vocabulary

NUMBERS_MAX = 256
"""Overflow numbers that travel with an event; beyond, all filters beside the tree are in doubt."""

FOLLOWED_REMEMBERED = 100
"""Prefixes of which it is remembered where they lead."""


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
    keys: Keys | None = None
    """Where keys of subscriptions travel: these, and there are no parts."""
    bloom: EventBits | None = None
    """Where the event's Bloom filter travels: this, and there is nothing else."""

    @property
    def matched(self) -> bool:
        """Whether anybody has matched the event's content."""
        return bool(self.parts) or self.keys is not None or self.bloom is not None


UNMATCHED = Prefix(())
"""Travels with an event whose content nobody has matched yet."""


class Trees:
    """The parts, and who is to hear of their changes."""

    def __init__(
        self,
        parts: int = 1,
        height: int | None = None,
        keep: int = KEPT_VERSIONS,
        stored: Sequence[memoryview] = (),
    ) -> None:
        """Empty trees, or those that were stored. May raise UnreadableTree."""
        self._height = height
        self.vocabularies = [
            Vocabulary.opened(part, keep, *stored[2 * part : 2 * part + 2])
            if stored
            else Vocabulary(part, keep)
            for part in range(parts)
        ]
        self._beside: list[Beside | None] = [None if stored else Beside() for _ in range(parts)]
        """None where the filters beside a stored tree have not been asked for yet."""
        self._listeners: list[Callable[[int, Changes], None]] = []
        self._followed: dict[tuple[int, PartPrefix], list[tuple[int, int]] | None] = {}
        """Where prefixes led, for the other brokers that share these trees and that an event passes next."""

    @property
    def height(self) -> int | None:
        """The level below which nothing is matched, None if there is none."""
        return self._height

    def stored(self) -> list[bytes]:
        """The parts as bytes, two for each."""
        return [data for vocabulary in self.vocabularies for data in vocabulary.stored()]

    def listen(self, listener: Callable[[int, Changes], None]) -> None:
        """From now on, call this when a part has changed."""
        self._listeners.append(listener)

    def apply(self, told: Update | Snapshot) -> Fit:
        """Go on to what the Tree Optimizer tells, if it fits."""
        if told.part not in range(len(self.vocabularies)):
            return Fit.FOREIGN
        vocabulary = self.vocabularies[told.part]
        fit, changes = vocabulary.apply(told) if isinstance(told, Update) else vocabulary.load(told)
        if fit is Fit.APPLIED:
            self._followed.clear()
            self._file(told.part, told, changes)
            for listener in self._listeners:
                listener(told.part, changes)
        return fit

    def told(self) -> Iterable[Update | Snapshot]:
        """What makes equal trees of empty ones, with all versions that are kept."""
        for vocabulary in self.vocabularies:
            yield from vocabulary.told()

    def beside(self) -> list[int]:
        """How many filters each part has beside its tree; of a stored one, in all versions that are kept."""
        return [
            len(vocabulary.numbered if filed is None else filed)
            for vocabulary, filed in zip(self.vocabularies, self._beside, strict=True)
        ]

    def enter(self, event: Event) -> Prefix:
        """The one content match of an event's life."""
        made = [self.match(part, event) for part in range(len(self.vocabularies))]
        return Prefix(tuple(made), event.met_array)

    def match(self, part: int, event: Event) -> PartPrefix:
        """Match the event's content against the newest version of one part."""
        vocabulary = self.vocabularies[part]
        entries, cut = match(vocabulary.tree, event, self._height)
        numbers = self._filed(part).match(event)
        many = len(numbers) > NUMBERS_MAX
        return PartPrefix(vocabulary.version, entries, () if many else tuple(numbers), cut, many)

    def follow(self, part: int, told: PartPrefix) -> list[tuple[int, int]] | None:
        """The nodes that the prefix leads to; None if its version is unknown, or never had what it names."""
        if (part, told) not in self._followed:
            if len(self._followed) >= FOLLOWED_REMEMBERED:
                self._followed.clear()
            self._followed[part, told] = self._follow(part, told)
        return self._followed[part, told]

    def _follow(self, part: int, told: PartPrefix) -> list[tuple[int, int]] | None:
        vocabulary, clock = self.vocabularies[part], told.version.clock
        if not vocabulary.knows(told.version):
            return None
        numbered = vocabulary.numbered
        if not all(number in numbered and numbered[number].lived(clock) for number in told.numbers):
            return None
        return follow(vocabulary.tree, told.entries, clock)

    def describe(self, prefix: Prefix) -> Iterator[str]:
        """The nodes that a prefix leads to, each with those above it, and the filters beside the tree."""
        for part, told in enumerate(prefix.parts[: len(self.vocabularies)]):
            vocabulary, nodes = self.vocabularies[part], self.follow(part, told)
            version = f"{told.version.incarnation}/{told.version.clock}"
            if nodes is None:
                yield f"part {part} at {version}: a version that is not kept here"
                continue
            path: list[str] = []
            for place, (node, level) in enumerate(nodes):
                del path[max(level - 1, 0) :]
                if node != ROOT:
                    path.append(describe_constraint(vocabulary.tree.constraint(node)))
                is_end = place + 1 == len(nodes) or nodes[place + 1][1] <= level
                if is_end:
                    yield f"part {part} at {version}: {' > '.join(path) or 'the root'}"
            for number in told.numbers:
                filter_ = describe_filter(vocabulary.numbered[number].filter)
                yield f"part {part} at {version}: number {number}, {filter_}"
            if told.many:
                yield f"part {part} at {version}: more than {NUMBERS_MAX} numbers"

    def _filed(self, part: int) -> Beside:
        found = self._beside[part]
        if found is None:
            found = self._beside[part] = Beside()
            for number, each in self.vocabularies[part].numbered.items():
                if each.died == ALIVE:
                    found.add(number, each.filter)
        return found

    def _file(self, part: int, told: Update | Snapshot, changes: Changes) -> None:
        """Keep the index of the filters beside the tree as of the newest version."""
        if changes.everything:
            self._beside[part] = None
            self._filed(part)
        elif (beside := self._beside[part]) is not None:
            assert isinstance(told, Update)
            for number in told.unnumbered:
                beside.remove(number)
            for number, filter_ in told.numbered:
                beside.add(number, filter_)
