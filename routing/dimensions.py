"""The ordered dimensions of an attribute, and where a value lies on each.

An attribute has nine axes. Each value has a position on the axis `presence`, which is its kind; a number
has one on `number`, a Boolean on `boolean`, and text has one on each of the six others, which read the
same text in different ways: as it is, backwards (so that a suffix is a prefix), with its case folded,
folded and backwards, as an instant, and as an IP address. Text that is no instant, or no address, lies at
the very start of that axis, at `NONE`, before everything that is one. So on every axis of text the whole
axis means "any text", and what does not satisfy a range is again one or two ranges.

A dimension is an attribute's path and one of its axes. Dimensions have a fixed order, which filters and
trees are sorted by.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from branchline.routing.addresses import Address, Block, read_address
from branchline.routing.expression import Path
from branchline.routing.instants import read_instant
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, text_before
from branchline.routing.values import Found, Kind, kind


class Axis(IntEnum):
    """The ways in which an attribute's values are ordered."""

    PRESENCE = 0
    BOOLEAN = 1
    NUMBER = 2
    TEXT = 3
    REVERSED = 4
    FOLDED = 5
    FOLDED_REVERSED = 6
    INSTANT = 7
    ADDRESS = 8


class Dimension(NamedTuple):
    path: Path
    axis: Axis


NONE: tuple[()] = ()
"""The position, on the axes of instants and addresses, of text that is neither."""

KIND_OF_AXIS: tuple[Kind | None, ...] = (None, Kind.BOOLEAN, Kind.NUMBER, *[Kind.TEXT] * 6)
"""The kind that every value with a position on the axis is of; any kind for presence."""

_READ_TEXT: dict[Axis, Callable[[str], Any]] = {
    Axis.TEXT: lambda text: text,
    Axis.REVERSED: lambda text: text[::-1],
    Axis.FOLDED: str.casefold,
    Axis.FOLDED_REVERSED: lambda text: text.casefold()[::-1],
    Axis.INSTANT: lambda text: read_instant(text) or NONE,
    Axis.ADDRESS: lambda text: read_address(text) or NONE,
}


def position(axis: Axis, value: Found) -> Any:
    """Where a single value lies on the axis, None if it has no position there."""
    found = kind(value)
    if axis is Axis.PRESENCE:
        return int(found)
    if found is not KIND_OF_AXIS[axis]:
        return None
    if found is Kind.TEXT:
        return _READ_TEXT[axis](value)  # type: ignore[arg-type]
    # Only what is long must be made alike: of shorter numbers, all that are equal have the same hash.
    if type(value) is int and not -LONG < value < LONG:
        return number_value(value)
    return value


def text_position(axis: Axis, text: str) -> Any:
    """Where a text lies on one of the axes of text."""
    return _READ_TEXT[axis](text)


REAL = after(NONE)
"""The cut after which all instants, or all addresses, lie."""


LONG = 10**21
"""From here on an integer that is no float is kept as a `Long`."""


class Long(int):
    """A long integer, with a hash that nobody can aim at.

    Python's hash of an integer is the integer modulo 2^61 - 1, so all its multiples have one and the same: as
    keys of a dictionary, a few thousand of them cost seconds. Fewer than a thousand are shorter than this,
    and floats have too few digits to be chosen so.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self.to_bytes((self.bit_length() + 8) // 8, "little", signed=True))


def number_value(value: int | float) -> int | float:
    """One value for all that are equal: an integer if it is one and short, else a float if it is one."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < LONG else value
    if abs(value) < LONG:
        return value
    try:
        near = float(value)
    except OverflowError:
        return Long(value)
    return near if near == value else Long(value)


def ranks(lowest: int, highest: int, last: int) -> Interval:
    """An interval of whole numbers on an axis that has only 0 … last, in its one normal form."""
    return Interval(
        LOWEST if lowest == 0 else before(lowest), HIGHEST if highest == last else before(highest + 1)
    )


def kinds(lowest: Kind, highest: Kind) -> Interval:
    """These kinds and all between them, on the axis of presence."""
    return ranks(int(lowest), int(highest), int(Kind.OBJECT))


def kind_ranges(wanted: frozenset[Kind]) -> list[Interval]:
    """The kinds as ranges on the axis of presence, in order."""
    made: list[tuple[Kind, Kind]] = []
    for each in sorted(wanted):
        if made and made[-1][1] == each - 1:
            made[-1] = (made[-1][0], each)
        else:
            made.append((each, each))
    return [kinds(lowest, highest) for lowest, highest in made]


def prefix_range(prefix: str) -> Interval:
    """All texts that start with the prefix."""
    end = prefix.rstrip("\U0010ffff")
    if not end:
        return Interval(text_before(prefix), HIGHEST)
    code = ord(end[-1]) + 1
    # No text has a surrogate, so what follows the last code point before them is the first behind them.
    successor = "\ue000" if code == 0xD800 else chr(code)
    return Interval(text_before(prefix), before(end[:-1] + successor))


def addresses(block: Block) -> Interval:
    """The addresses of a block. They have a next one, so a block ends before the first that is not in it."""
    first, last = block.first, block.last
    low = REAL if first == _FIRST_ADDRESS else before(first)
    if last.number + 1 < 2 ** (32 if last.version == 4 else 128):
        return Interval(low, before(Address(last.version, last.number + 1)))
    return Interval(low, before(_FIRST_OF_6) if last.version == 4 else HIGHEST)


_FIRST_ADDRESS = Address(4, 0)
_FIRST_OF_6 = Address(6, 0)


def common_prefix(interval: Interval) -> str:
    """A prefix that all texts of the interval share, the longest but in odd cases."""
    low, high = interval
    if len(low) != 3 or len(high) != 3:
        return ""
    start: str = low[1] + "\0" if low[2] else low[1]
    shared = shared_length(start, high[1])
    # The end of a range of prefixes differs from its start in the prefix's last character.
    longer = start[: shared + 1]
    return longer if prefix_range(longer)[1] >= high else start[:shared]


def shared_length(one: str, other: str) -> int:
    """How many code points the two texts share at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


KIND_INTERVALS = {kind: kinds(kind, kind) for kind in Kind}
"""Each kind alone, on the axis of presence."""
