"""What a broker knows of one part beside its tree, as bytes: the version, numbered filters, what was told.

The tree is stored by itself (`storing.py`). The updates that led to the newest version are kept as they are
told, and decoded only when somebody writes a snapshot; the filters beside the tree are decoded when the first
of them is asked for.

Cost: opening is one pass for the checksum; then a few microseconds for each constraint beside the tree, once.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from branchline.routing.filters import Filter
from branchline.routing.prefix import telling
from branchline.routing.prefix.edges import ALIVE
from branchline.routing.prefix.keyed import Kins, read_filters, read_kins
from branchline.routing.prefix.layout import Facts, Kind, numbers, read, write
from branchline.routing.prefix.updates import Snapshot, Update, Version

_SECTIONS = (
    "version",
    "number",
    "born",
    "died",
    "update_clock",
    "update_at",
    "piece_at",
    "kins",
    "filters",
    "updates",
    "pieces",
)

_STILL = -1


@dataclass(slots=True)
class Numbered:
    """A filter beside the tree, and the clocks between which its number stands for it."""

    filter: Filter
    born: int
    died: int = ALIVE

    def lived(self, clock: int) -> bool:
        return self.born <= clock < self.died


class Kept:
    """An update that is kept, decoded when it is asked for."""

    __slots__ = ("_data", "_update", "clock")

    def __init__(self, clock: int, update: Update | None, data: bytes | memoryview | None = None) -> None:
        self.clock = clock
        self._update = update
        self._data = data

    def update(self) -> Update:
        if self._update is None:
            assert self._data is not None
            told = telling.decode(bytes(self._data))
            assert isinstance(told, Update), "what was encoded is there"
            self._update = told
        return self._update

    def data(self) -> bytes:
        if self._data is None:
            assert self._update is not None
            self._data = telling.encode(self._update)
        return bytes(self._data)


@dataclass(frozen=True, slots=True)
class VocabularyParts:
    """All of a vocabulary but its tree."""

    version: Version
    oldest: int
    digest_beside: int
    numbered: Sequence[tuple[int, Numbered]]
    updates: Sequence[Kept]
    pieces: Sequence[Snapshot]


def pack_vocabulary(parts: VocabularyParts) -> bytes:
    """The bytes of it."""
    kins = Kins()
    filters = b"".join(kins.filter(each.filter) for _, each in parts.numbered)
    updates = [each.data() for each in parts.updates]
    pieces = list(map(telling.encode, parts.pieces))
    died = [_STILL if each.died == ALIVE else each.died for _, each in parts.numbered]
    sections: dict[str, array[int] | bytes] = {
        "version": array("q", [*parts.version, parts.oldest]),
        "number": numbers(number for number, _ in parts.numbered),
        "born": numbers(each.born for _, each in parts.numbered),
        "died": numbers(died),
        "update_clock": numbers(each.clock for each in parts.updates),
        "update_at": _ends(updates),
        "piece_at": _ends(pieces),
        "kins": kins.packed(),
        "filters": filters,
        "updates": b"".join(updates),
        "pieces": b"".join(pieces),
    }
    assert tuple(sections) == _SECTIONS
    return write(Facts(parts.digest_beside, len(parts.numbered), 0), sections, Kind.VOCABULARY)


class StoredVocabulary:
    """A vocabulary, its tree apart, as it was stored."""

    def __init__(self, buffer: memoryview) -> None:
        facts, section = read(buffer, _SECTIONS, Kind.VOCABULARY)
        incarnation, clock, self.oldest = section["version"]
        self.version = Version(incarnation, clock)
        self.digest_beside = facts.digest
        self._section = section

    def updates(self) -> list[Kept]:
        told = _slices(self._section["updates"], self._section["update_at"])
        return [
            Kept(clock, None, data) for clock, data in zip(self._section["update_clock"], told, strict=True)
        ]

    def pieces(self) -> dict[int, Snapshot]:
        """The pieces of a snapshot that is not complete, in the order in which they came."""
        told = map(telling.decode, map(bytes, _slices(self._section["pieces"], self._section["piece_at"])))
        return {each.piece: each for each in told if isinstance(each, Snapshot)}

    def numbered(self) -> Iterator[tuple[int, Numbered]]:
        """The filters that are or were beside the tree."""
        section = self._section
        filters = read_filters(section["filters"], read_kins(section["kins"]))
        rows = zip(section["number"], filters, section["born"], section["died"], strict=True)
        for number, filter_, born, died in rows:
            yield number, Numbered(filter_, born, ALIVE if died == _STILL else died)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return len(self._section["number"]) > 0


def _ends(parts: list[bytes]) -> "array[int]":
    at = 0
    ends = [0]
    for part in parts:
        at += len(part)
        ends.append(at)
    return numbers(ends)


def _slices(data: memoryview, at: memoryview) -> Iterator[memoryview]:
    return (data[at[place] : at[place + 1]] for place in range(len(at) - 1))
