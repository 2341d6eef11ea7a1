"""Patterns with wildcards: any run of code points, and any one. What LIKE, prefixes and wildcards become.

Theory of operation. A pattern is kept cut at every run into pieces that must appear in this order, without
overlap. The first piece must fit at the start of the text and the last at its end; each piece between
is taken at the first place where it fits, which leaves the most text for the rest, so nothing is ever
tried twice. A piece without ANY_ONE is found by `str.find`. A piece with one is found by moving one integer
over the text, whose bit i says that the piece's first i + 1 symbols fit the text that ends here; or, if the
text is long and the piece has few symbols, by asking for each symbol at once where the text has it, all
places together in one array.

Within a piece, ANY_ONE is half of a surrogate pair, which no text that we read can hold. Patterns are
normal: no run follows a run, and of a run and ANY_ONE side by side, ANY_ONE comes first. So two patterns
that differ only in that are equal.

Cost: every code point of the text is looked at about once; with ANY_ONE that is one step on an integer of
as many bits as the piece has symbols, or a comparison of arrays for each symbol, which is a thousand times
less. A pattern and a text of the largest sizes take about a tenth of a second, whatever they hold, and thirty
patterns of a few symbols as much together. The pattern never reaches `re`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

ANY_ONE = "\ud800"
"""In a piece: any one code point."""

_LONG_CHARS = 2_000
"""A text of so many code points is worth an array; a shorter one is gone through as fast."""

_FEW_SYMBOLS = 200
"""Beyond so many symbols, to go through the text once costs less than to compare arrays once for each."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pieces between the runs: one piece for a pattern without a run, else one more than it has runs."""

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, pieces: Iterable[str]) -> "Pattern":
        """The pattern of these pieces, made normal."""
        made = list(pieces)
        for place in range(len(made) - 1, 0, -1):
            if made[place].startswith(ANY_ONE):
                piece = made[place].lstrip(ANY_ONE)
                made[place - 1] += ANY_ONE * (len(made[place]) - len(piece))
                made[place] = piece
        return cls((made[0], *filter(None, made[1:-1]), *made[1:][-1:]))

    def fold(self) -> "Pattern":
        """The pattern for text whose case is folded."""
        return Pattern(tuple(piece.casefold() for piece in self.pieces))

    @property
    def searches(self) -> bool:
        """Whether finding out takes a step for every code point of the text."""
        return any(ANY_ONE in piece for piece in self.pieces[1:-1])

    @property
    def prefix(self) -> str:
        """What every text that fits starts with."""
        return self.pieces[0].partition(ANY_ONE)[0]

    @property
    def suffix(self) -> str:
        """What every text that fits ends with."""
        return self.pieces[-1].rpartition(ANY_ONE)[2]

    @property
    def words(self) -> frozenset[str]:
        """What every text that fits contains, beside its prefix and suffix."""
        inner = [self.pieces[0].partition(ANY_ONE)[2], *self.pieces[1:-1]]
        if len(self.pieces) > 1:
            inner.append(self.pieces[-1].rpartition(ANY_ONE)[0])
        return frozenset(word for piece in inner for word in piece.split(ANY_ONE) if word)


def exactly(text: str) -> Pattern:
    return Pattern((text,))


def starting(text: str) -> Pattern:
    return Pattern((text, ""))


def ending(text: str) -> Pattern:
    return Pattern(("", text))


def containing(text: str) -> Pattern:
    return Pattern(("", text, "") if text else ("", ""))


class BadEscape(ValueError):
    """An escape character escapes nothing that needs it; `offset` is its place in the pattern."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def like_pattern(text: str, escape: str | None = None, *, lenient: bool = False) -> Pattern:
    """SQL's pattern: % is any run, _ any one, and after the escape character both, and it, are themselves.

    Raises BadEscape where the escape character stands before something else; with `lenient`, it is then
    itself.
    """
    if escape is None or escape not in text:
        return Pattern.of(text.replace("_", ANY_ONE).split("%"))
    pieces: list[list[str]] = [[]]
    place = 0
    while place < len(text):
        symbol = text[place]
        if symbol == escape:
            escaped = text[place + 1 : place + 2]
            if escaped and escaped in ("%", "_", escape):
                symbol, place = escaped, place + 1
            elif not lenient:
                raise BadEscape(place)
            pieces[-1].append(symbol)
        elif symbol == "%":
            pieces.append([])
        else:
            pieces[-1].append(ANY_ONE if symbol == "_" else symbol)
        place += 1
    return Pattern.of(map("".join, pieces))


def fits(text: str, pattern: Pattern) -> bool:
    """Whether the whole text fits the pattern."""
    first, *rest = pattern.pieces
    if not rest:
        return len(text) == len(first) and _fits(text, 0, first)
    *middle, last = rest
    start, end = len(first), len(text) - len(last)
    if start > end or not _fits(text, 0, first) or not _fits(text, end, last):
        return False
    for piece in middle:
        found = _find(text, start, end, piece)
        if found is None:
            return False
        start = found + len(piece)
    return True


def _fits(text: str, start: int, piece: str) -> bool:
    """Whether the piece fits the text at this place, where the text has at least as many code points."""
    if ANY_ONE not in piece:
        return text.startswith(piece, start)
    here = text[start : start + len(piece)]
    return all(symbol in (ANY_ONE, character) for symbol, character in zip(piece, here, strict=True))


def _find(text: str, start: int, end: int, piece: str) -> int | None:
    """The first place between start and end at which the piece fits."""
    if ANY_ONE not in piece:
        found = text.find(piece, start, end)
        return None if found < 0 else found
    if end - start >= _LONG_CHARS and len(piece) - piece.count(ANY_ONE) <= _FEW_SYMBOLS:
        return _find_at_once(text, start, end, piece)
    wild = sum(1 << place for place, symbol in enumerate(piece) if symbol == ANY_ONE)
    accepting: dict[str, int] = {}
    for place, symbol in enumerate(piece):
        if symbol != ANY_ONE:
            accepting[symbol] = accepting.get(symbol, wild) | 1 << place
    whole = 1 << (len(piece) - 1)
    fitting = 0
    for place in range(start, end):
        fitting = (fitting << 1 | 1) & accepting.get(text[place], wild)
        if fitting & whole:
            return place + 1 - len(piece)
    return None


def _find_at_once(text: str, start: int, end: int, piece: str) -> int | None:
    """The same, with many places tried together: ever more, so that what is found soon costs little."""
    codes = _codes(text)
    places = _LONG_CHARS
    while start <= end - len(piece):
        stop = min(start + places, end - len(piece) + 1)
        fitting = np.ones(stop - start, dtype=bool)
        for place, symbol in enumerate(piece):
            if symbol != ANY_ONE:
                fitting &= codes[start + place : stop + place] == ord(symbol)
        first = int(fitting.argmax())
        if fitting[first]:
            return start + first
        start, places = stop, 4 * places
    return None


@lru_cache(maxsize=1)
def _codes(text: str) -> Any:
    """The code points of a text; of the last one that was asked for they are kept: a filter asks again."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
