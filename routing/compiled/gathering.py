"""Filters as they come, flattened: what is done once for each filter, when it is added.

A constraint becomes three numbers: its kin (path, axis, and whether it is a word), and a *code* for each of
its two cuts: twice the number of the value plus the side, or LOW, or HIGH. Values are numbered as they
come, numbers and texts apart; what lies on the axes of presence and Booleans is its own number. So a
rebuild sorts values and maps numbers, and never looks at a filter again.

Instants and addresses become texts that are in the same order as they are (`key_of`), and so need nothing of
their own anywhere behind this.

Cost: a microsecond or two for each constraint. Of filters that are flattened together, a constraint that is
one object in several of them costs that once, and half a microsecond each time, where most of the time goes
into fetching what a constraint is made of from all over memory.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.memory import Bytes, Ints
from branchline.routing.compiled.texts import Longs
from branchline.routing.dimensions import NONE, Axis, text_position
from branchline.routing.expression import Path
from branchline.routing.filters import Filter
from branchline.routing.prefix.siblings import Kin

LOW, HIGH = -1, -2
"""The codes of the cuts before all values and after them."""

DIRECT, NUMBERS, TEXTS, WORDS = range(4)
"""The families of kin, by how their values are kept."""

KINDS, BOOLEANS = 6, 2
"""The values on the axes of presence and Booleans."""

MEMO_ENTRIES = 16_384
"""Texts whose positions are remembered, and how long such a text may be: some megabytes at most."""
MEMO_MAX_BYTES = 128

_EPOCH = 1 << 62
_AXES = len(Axis)


def family(kin: Kin) -> int:
    """How the values of the kin are kept."""
    if kin[2]:
        return WORDS
    if kin[1] in (Axis.PRESENCE, Axis.BOOLEAN):
        return DIRECT
    return NUMBERS if kin[1] is Axis.NUMBER else TEXTS


def key_of(axis: Axis, position: Any) -> bytes:
    """A position on an axis of texts, instants or addresses, as bytes in the same order."""
    if position == NONE:
        return b""
    if axis is Axis.INSTANT:
        return int.to_bytes(position.seconds + _EPOCH, 8, "big") + bytes(position.fraction, "ascii")
    if axis is Axis.ADDRESS:
        return bytes([position.version]) + int.to_bytes(position.number, 16, "big")
    return bytes(position, "utf-8", "surrogatepass")


def late_key(axis: Axis, text: bytes) -> bytes:
    """Where an event's text lies on the axis, as bytes in the order of positions."""
    return _remembered(axis, text) if len(text) <= MEMO_MAX_BYTES else _read(axis, text)


def _read(axis: Axis, text: bytes) -> bytes:
    return key_of(axis, text_position(axis, str(text, "utf-8", "surrogatepass")))


_remembered = lru_cache(MEMO_ENTRIES)(_read)


@dataclass(frozen=True, slots=True)
class Parts:
    """Flattened filters whose values are not yet in order; several can be laid together."""

    kins: list[Kin]
    number_kin: Ints
    near: NDArray[np.float64]
    """Each number, or the double that is nearest to it."""
    wide: dict[int, int]
    """The numbers that are no double."""
    text_kin: Ints
    at: Longs
    blob: Bytes
    first: Longs
    """Each filter's first constraint; one more at the end."""
    kin: Ints
    low: Ints
    high: Ints

    def kept(self, which: NDArray[np.bool_]) -> "Parts":
        """Some of the filters; the values of all."""
        counts = np.diff(self.first)
        chosen = np.repeat(which, counts)
        first = np.concatenate([[0], np.cumsum(counts[which])])
        columns = self.kin[chosen], self.low[chosen], self.high[chosen]
        return replace(self, first=first, kin=columns[0], low=columns[1], high=columns[2])


class Gathering:
    """Filters, flattened as they are added."""

    def __init__(self, open_path: Callable[[Path], object] | None = None) -> None:
        self._open_path = open_path
        """What is told of paths that come for the first time."""
        self._kins: list[Kin] = []
        self._of_path: dict[Path, list[tuple[dict[Any, int], int] | None]] = {}
        """For each path, by axis, then by axis for words: the codes of its values, and the number of the
        kin.
        """
        self._number_kin, self._near = array("i"), array("d")
        self._wide: dict[int, int] = {}
        self._text_kin, self._at, self._blob = array("i"), array("q", [0]), bytearray()
        self._first = array("q", [0])
        self._kin, self._low, self._high = array("i"), array("i"), array("i")
        columns = (self._kin, self._low, self._high, self._first)
        self._puts: tuple[Callable[[int], None], ...] = tuple(column.append for column in columns)

    def __len__(self) -> int:
        return len(self._first) - 1

    def add(self, filter_: Filter) -> None:
        """Append the filter."""
        # This is done for each of millions of constraints: what can be looked up once, is.
        of_path = self._of_path
        put_kin, put_low, put_high, put_first = self._puts
        constraints: Any = filter_  # a word is told from an interval below
        for path, axis, what in constraints:
            try:
                kins = of_path[path]
            except KeyError:
                kins = of_path[path] = [None] * (2 * _AXES)
                if self._open_path is not None:
                    self._open_path(path)
            if type(what) is str:
                codes, kin = kins[axis + _AXES] or self._open(path, axis, True)
                code = codes.get(what)
                put_kin(kin)
                put_low(LOW)
                put_high(self._number(axis, kin, codes, what) if code is None else code)
                continue
            codes, kin = kins[axis] or self._open(path, axis, False)
            low, high = what
            put_kin(kin)
            if len(low) == 3:
                _, value, side = low
                code = codes.get(value)
                if code is None:
                    code = self._number(axis, kin, codes, value)
                put_low(code + side)
                if len(high) == 3:
                    _, other, side = high
                    if other is not value:
                        code = codes.get(other)
                        if code is None:
                            code = self._number(axis, kin, codes, other)
                    put_high(code + side)
                else:
                    put_high(HIGH)
            else:
                put_low(LOW)
                if len(high) == 3:
                    _, value, side = high
                    code = codes.get(value)
                    if code is None:
                        code = self._number(axis, kin, codes, value)
                    put_high(code + side)
                else:
                    put_high(HIGH)
        put_first(self._first[-1] + len(filter_))

    def _open(self, path: Path, axis: Axis, is_word: bool) -> tuple[dict[Any, int], int]:
        """The codes of a kin that has none yet, and its number."""
        codes: dict[Any, int] = {}
        if axis is Axis.PRESENCE or axis is Axis.BOOLEAN:
            codes = {value: 2 * value for value in range(KINDS if axis is Axis.PRESENCE else BOOLEANS)}
        made = codes, len(self._kins)
        self._of_path[path][axis + _AXES if is_word else axis] = made
        self._kins.append((path, axis, is_word))
        return made

    def _number(self, axis: Axis, kin: int, codes: dict[Any, int], value: Any) -> int:
        """The code of a value that has none yet."""
        if axis is Axis.NUMBER:
            number = len(self._near)
            if type(value) is float:
                near = value + 0.0
            else:
                near = nearest(value)
                if near != value:
                    self._wide[number] = int(value)
            self._number_kin.append(kin)
            self._near.append(near)
        else:
            number = len(self._text_kin)
            self._blob += key_of(axis, value)
            self._at.append(len(self._blob))
            self._text_kin.append(kin)
        codes[value] = 2 * number
        return 2 * number

    def parts(self) -> Parts:
        """All that was added."""
        return Parts(
            self._kins.copy(),
            np.array(self._number_kin, np.int32),
            np.array(self._near, np.float64),
            dict(self._wide),
            np.array(self._text_kin, np.int32),
            np.array(self._at, np.int64),
            np.frombuffer(bytes(self._blob), np.uint8),
            np.array(self._first, np.int64),
            np.array(self._kin, np.int32),
            np.array(self._low, np.int32),
            np.array(self._high, np.int32),
        )


def nearest(number: int | float) -> float:
    """The double nearest to the number; 0 has no sign."""
    try:
        return float(number) + 0.0
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def gathered(filters: Iterable[Filter]) -> Parts:
    """The filters, flattened, as `Gathering` would if they were added one by one."""
    several = list(filters)
    constraints = list(chain.from_iterable(several))
    ids = np.fromiter(map(id, constraints), np.int64, len(constraints))
    _, at, which = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(at)
    made = Gathering()
    # Each object once, in the order in which they came: all are one long filter.
    made.add(tuple(map(constraints.__getitem__, at[order].tolist())))
    parts = made.parts()
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    place = place[which]
    first = np.zeros(len(several) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, several), np.int64, len(several)), out=first[1:])
    return replace(parts, first=first, kin=parts.kin[place], low=parts.low[place], high=parts.high[place])


def laid_together(several: Sequence[Parts]) -> Parts:
    """The filters of all parts, one behind the other; equal values of different parts stay apart."""
    if len(several) == 1:
        return several[0]
    kins: dict[Kin, int] = {}
    maps = [
        np.array([kins.setdefault(kin, len(kins)) for kin in part.kins], np.int32).reshape(-1)
        for part in several
    ]
    numbers = np.cumsum([0, *(part.near.size for part in several)])
    texts = np.cumsum([0, *(part.text_kin.size for part in several)])
    families = [np.array([family(kin) for kin in part.kins], np.int64) for part in several]
    low: list[NDArray[np.int64]] = []
    high: list[NDArray[np.int64]] = []
    for place, part in enumerate(several):
        # How far the numbers of a constraint's values move depends on where they are kept.
        moved = np.array([0, numbers[place], texts[place], texts[place]])[families[place]][part.kin] * 2
        for codes, out in ((part.low, low), (part.high, high)):
            out.append(np.where(codes < 0, codes, codes + moved))
    sizes = np.cumsum([0, *(part.kin.size for part in several)])
    lengths = np.cumsum([0, *(part.at[-1] for part in several)])
    return Parts(
        list(kins),
        np.concatenate([each[part.number_kin] for each, part in zip(maps, several, strict=True)]),
        np.concatenate([part.near for part in several]),
        {
            number + int(base): value
            for base, part in zip(numbers, several, strict=False)
            for number, value in part.wide.items()
        },
        np.concatenate([each[part.text_kin] for each, part in zip(maps, several, strict=True)]),
        np.concatenate([[0], *(part.at[1:] + base for base, part in zip(lengths, several, strict=False))]),
        np.concatenate([part.blob[: part.at[-1]] for part in several]),
        np.concatenate([[0], *(part.first[1:] + base for base, part in zip(sizes, several, strict=False))]),
        np.concatenate([each[part.kin] for each, part in zip(maps, several, strict=True)]),
        np.concatenate(low).astype(np.int32),
        np.concatenate(high).astype(np.int32),
    )
