"""A broker's knowledge of one part of the tree: what it has been told, and the last few versions of it.

An update fits if it follows the newest version, in the same life of the optimizer, with the digests before
and after that it says. One that does not is refused, and so is every later one until a whole snapshot comes;
until then the broker matches events of versions that it does not have afresh. A snapshot of a later version
replaces the tree, and all earlier versions are gone with it.

A vocabulary that was stored is opened where it lies: its tree, and, once they are asked for, the filters
beside it (`stored_vocabulary.py`).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import xor
from typing import TypeAlias

from branchline.routing.describing import describe_filter
from branchline.routing.filters import Filter
from branchline.routing.prefix.inserting import descend
from branchline.routing.prefix.possible import can_hang
from branchline.routing.prefix.stored_vocabulary import (
    Kept,
    Numbered,
    StoredVocabulary,
    VocabularyParts,
    pack_vocabulary,
)
from branchline.routing.prefix.storing import load, pack
from branchline.routing.prefix.tree import ALIVE, Edge, Tree, View, describe_tree, edge_hash
from branchline.routing.prefix.updates import (
    NO_VERSION,
    Snapshot,
    Update,
    Version,
    digest_of_numbered,
    in_pieces,
)
from branchline.routing.prefix.views import edges_at

Where: TypeAlias = int
"""A node, or the complement of an overflow number, so that one dictionary finds both."""

KEPT_VERSIONS = 4
"""Versions in which events may still be on their way."""


class Fit(Enum):
    """What became of an update or a snapshot."""

    APPLIED = "applied"
    OLD = "not above what is known"
    GAP = "the one before it is missing"
    FOREIGN = "it changes another tree, or makes another one, than it says"
    INCOMPLETE = "further pieces are to come"


@dataclass(frozen=True, slots=True)
class Changes:
    """What an update has done to places: the nodes that left an edge, and the filters that got a number or
    lost one. With `everything`, nothing of before is left.
    """

    nodes: frozenset[int] = frozenset()
    filters: frozenset[Filter] = frozenset()
    everything: bool = False


class Vocabulary:
    """The tree of one part, the filters beside it, and the versions that can be asked for."""

    def __init__(self, part: int, keep: int = KEPT_VERSIONS) -> None:
        self.part = part
        self.version = NO_VERSION
        self.tree = Tree()
        self._numbered: dict[int, Numbered] = {}
        self._stored: StoredVocabulary | None = None
        """Where the filters beside the tree lie until one is asked for."""
        self._keep = keep
        self._oldest = 0
        self._numbers: dict[Filter, list[int]] = {}
        self._ended: dict[int, list[int]] = {}
        """The overflow numbers that only earlier versions have, by the clock of their end."""
        self._digest_beside = 0
        self._views: dict[int, View] = {}
        self._pieces: dict[int, Snapshot] = {}
        self._updates: list[Kept] = []
        """Those that led from the oldest version that is kept to the newest."""
        self._standing: dict[int, dict[Filter, dict[Where, bool]]] = {}

    @classmethod
    def opened(cls, part: int, keep: int, tree: memoryview, rest: memoryview) -> "Vocabulary":
        """One that was stored, read from the buffers for as long as it lives. May raise UnreadableTree."""
        stored = StoredVocabulary(rest)
        made = cls(part, keep)
        made.version, made._oldest, made.tree = stored.version, stored.oldest, load(tree)
        made._digest_beside = stored.digest_beside
        made._updates, made._pieces = stored.updates(), stored.pieces()
        made._stored = stored if stored else None
        return made

    def stored(self) -> tuple[bytes, bytes]:
        """The tree and all the rest, as bytes."""
        parts = VocabularyParts(
            self.version,
            self._oldest,
            self._digest_beside,
            list(self.numbered.items()),
            self._updates,
            list(self._pieces.values()),
        )
        return pack(self.tree), pack_vocabulary(parts)

    @property
    def numbered(self) -> dict[int, Numbered]:
        """The filters that are or were beside the tree, in a version that is kept, by their numbers."""
        if self._stored is not None:
            stored, self._stored = self._stored, None
            for number, each in stored.numbered():
                self._numbered[number] = each
                self._numbers.setdefault(each.filter, []).append(number)
                if each.died != ALIVE:
                    self._ended.setdefault(each.died, []).append(number)
        return self._numbered

    def clocks(self) -> range:
        """The clocks of the versions that can be asked for, of this life of the optimizer."""
        return range(self._oldest, self.version.clock + 1)

    def knows(self, version: Version) -> bool:
        """Whether an event that was matched with this version can be walked."""
        return version.incarnation == self.version.incarnation and version.clock in self.clocks()

    def view(self, clock: int) -> Tree | View:
        """The tree as it was at a clock that can be asked for."""
        if clock == self.version.clock:
            return self.tree
        if clock not in self._views:
            self._views[clock] = self.tree.at(clock)
        return self._views[clock]

    def below(self, node: int, clock: int) -> Iterator[int]:
        """The nodes that were below a node at a clock that can be asked for."""
        view = self.view(clock)
        pending = [node]
        while pending:
            edges = [edge for siblings in view.children(pending.pop()).values() for edge in siblings]
            pending += [self.tree.child(edge) for edge in edges]
            yield from (self.tree.child(edge) for edge in edges)

    def number_of(self, filter_: Filter, clock: int) -> int | None:
        """The number that the filter had beside the tree at a clock, None if it had none."""
        numbered = self.numbered
        for number in self._numbers.get(filter_, ()):
            if numbered[number].lived(clock):
                return number
        return None

    def places(self, filter_: Filter, clock: int) -> dict[Where, bool]:
        """Where the filter stands in the tree as it was at a clock, and whether exactly there.

        Brokers that share a vocabulary ask for the same, so it is remembered for as long as the version is.
        """
        known = self._standing.setdefault(clock, {})
        if filter_ not in known:
            known[filter_] = self._place(filter_, clock)
        return known[filter_]

    def _place(self, filter_: Filter, clock: int) -> dict[Where, bool]:
        number = self.number_of(filter_, clock)
        if number is not None:
            return {~number: True}
        stops = descend(self.tree, self.view(clock), filter_)
        assert stops is not None, "descending is not bounded here"
        found: dict[Where, bool] = {}
        for stop in stops:
            # Two pieces may stop at one node: it is exact there only if all of them end there.
            found[stop.node] = not stop.left and found.get(stop.node, True)
        return found

    def told(self) -> list[Update | Snapshot]:
        """What leads an empty vocabulary to this one: the oldest version that is kept, and all after it."""
        told: list[Update | Snapshot] = []
        if self._oldest or (self.version != NO_VERSION and not self._updates):
            clock = self._oldest
            version = Version(self.version.incarnation, clock)
            edges = edges_at(self.tree, clock)
            numbered = [(n, each.filter) for n, each in self.numbered.items() if each.lived(clock)]
            digest = reduce(xor, map(edge_hash, edges), digest_of_numbered(numbered))
            told += in_pieces(self.part, version, digest, edges, numbered, max(len(edges), 1) + len(numbered))
        return [*told, *(kept.update() for kept in self._updates), *self._pieces.values()]

    def apply(self, update: Update) -> tuple[Fit, Changes]:
        """Go on to the next version, if the update is that."""
        before, version = self.version, update.version
        if version <= before:
            return Fit.OLD, Changes()
        if version != (before.incarnation, before.clock + 1) and not (
            before == NO_VERSION and version.clock == 1
        ):
            return Fit.GAP, Changes()
        if update.digest_before != self.digest or _repeats(update):
            return Fit.FOREIGN, Changes()
        gone = self._dying(update)
        if gone is None or self._digest_with(update, gone) != update.digest:
            return Fit.FOREIGN, Changes()
        if any(number in self.numbered for number, _ in update.numbered):
            return Fit.FOREIGN, Changes()
        if not can_hang(self.tree, update.born, gone):
            return Fit.FOREIGN, Changes()
        moved = [self.tree.child(edge) for edge in gone]
        for node in moved:
            self.tree.detach(node, version.clock)
        self._hang(update.born, version.clock)
        renamed = self._renumber(update, version.clock)
        self.version = version
        self._updates.append(Kept(version.clock, update))
        self._forget(max(self._oldest, version.clock - self._keep + 1))
        return Fit.APPLIED, Changes(frozenset(moved), frozenset(renamed))

    def load(self, piece: Snapshot) -> tuple[Fit, Changes]:
        """Take a piece of a snapshot, and the whole once it is complete."""
        if piece.version <= self.version:
            return Fit.OLD, Changes()
        if piece.piece not in range(piece.pieces):
            return Fit.FOREIGN, Changes()
        if any(_whole(other) != _whole(piece) for other in self._pieces.values()):
            self._pieces = {}
        self._pieces[piece.piece] = piece
        if len(self._pieces) < piece.pieces:
            return Fit.INCOMPLETE, Changes()
        pieces = [self._pieces[place] for place in range(piece.pieces)]
        self._pieces = {}
        edges = tuple(edge for each in pieces for edge in each.edges)
        numbered = [every for each in pieces for every in each.numbered]
        if reduce(xor, map(edge_hash, edges), digest_of_numbered(numbered)) != piece.digest:
            return Fit.FOREIGN, Changes()
        fresh = Vocabulary(self.part, self._keep)
        if not can_hang(fresh.tree, edges, ()) or len({number for number, _ in numbered}) < len(numbered):
            return Fit.FOREIGN, Changes()
        if len({edge[:2] for edge in edges}) < len(edges):
            return Fit.FOREIGN, Changes()
        clock = piece.version.clock
        fresh._hang(edges, clock)
        fresh._number(numbered, clock)
        self.version, self.tree, self._oldest, self._views = piece.version, fresh.tree, clock, {}
        self._numbered, self._numbers, self._ended = fresh._numbered, fresh._numbers, {}
        self._stored = None
        self._digest_beside = fresh._digest_beside
        self._updates, self._standing = [], {}
        return Fit.APPLIED, Changes(everything=True)

    @property
    def digest(self) -> int:
        """Of the newest version."""
        return self.tree.digest ^ self._digest_beside

    def describe(self) -> str:
        """The newest version for people."""
        incarnation, clock = self.version
        kept = f"{self._oldest} to {clock}" if self._oldest < clock else str(clock)
        lines = [f"part {self.part} at {incarnation}/{clock}, versions kept: {kept}"]
        lines += describe_tree(self.tree, self.tree)
        lines += [f"  #{number} {describe_filter(each)}" for number, each in sorted(self._beside())]
        return "\n".join(lines)

    def _beside(self) -> list[tuple[int, Filter]]:
        return [(number, each.filter) for number, each in self.numbered.items() if each.died == ALIVE]

    def _dying(self, update: Update) -> list[int] | None:
        """The edges that the update ends, None if one of them does not live."""
        clock = self.version.clock
        found = [self.tree.find(parent, number, clock) for parent, number in update.died]
        beside = all(n in self.numbered and self.numbered[n].lived(clock) for n in update.unnumbered)
        return [edge for edge in found if edge is not None] if beside and None not in found else None

    def _digest_with(self, update: Update, gone: list[int]) -> int:
        """The digest that the update would lead to."""
        born = (
            edge if edge.constraint is not None else edge._replace(constraint=self.tree.known(edge.child))
            for edge in update.born
        )
        changed = [*(edge_hash(self.tree.edge(edge)) for edge in gone), *map(edge_hash, born)]
        ended = [(number, self.numbered[number].filter) for number in update.unnumbered]
        return reduce(xor, changed, self.digest) ^ digest_of_numbered([*ended, *update.numbered])

    def _hang(self, edges: tuple[Edge, ...], clock: int) -> None:
        # All nodes first: an edge may be told before the one above it.
        for edge in edges:
            if edge.constraint is not None:
                self.tree.new_node(edge.constraint, edge.child)
        for edge in edges:
            self.tree.attach(edge.parent, edge.child, clock, edge.number)

    def _number(self, numbered: Collection[tuple[int, Filter]], clock: int) -> None:
        self._digest_beside ^= digest_of_numbered(numbered)
        known = self.numbered
        for number, each in numbered:
            known[number] = Numbered(each, clock)
            self._numbers.setdefault(each, []).append(number)

    def _renumber(self, update: Update, clock: int) -> list[Filter]:
        """Give and take overflow numbers; the filters that it is about."""
        gone = [(number, self.numbered[number].filter) for number in update.unnumbered]
        self._digest_beside ^= digest_of_numbered(gone)
        for number, _ in gone:
            self.numbered[number].died = clock
            self._ended.setdefault(clock, []).append(number)
        self._number(update.numbered, clock)
        return [each for _, each in (*gone, *update.numbered)]

    def _forget(self, oldest: int) -> None:
        self._oldest = oldest
        self.tree.forget(oldest)
        self._views = {clock: view for clock, view in self._views.items() if clock >= oldest}
        self._standing = {clock: known for clock, known in self._standing.items() if clock >= oldest}
        self._updates = [kept for kept in self._updates if kept.clock > oldest]
        numbered = self.numbered
        for clock in [clock for clock in self._ended if clock <= oldest]:
            for number in self._ended.pop(clock):
                filter_ = numbered.pop(number).filter
                self._numbers[filter_].remove(number)
                if not self._numbers[filter_]:
                    del self._numbers[filter_]


def _whole(piece: Snapshot) -> tuple[Version, int, int]:
    """The snapshot that a piece is of."""
    return piece.version, piece.digest, piece.pieces


def _repeats(update: Update) -> bool:
    """Whether something is told twice: digests are sums in which two of a kind leave nothing."""
    things = (
        update.died,
        update.unnumbered,
        [edge[:2] for edge in update.born],
        [edge.child for edge in update.born],
        [number for number, _ in update.numbered],
    )
    return any(len(set(each)) < len(each) for each in things)
