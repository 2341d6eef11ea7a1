"""Filters in normal form for people: as SQL writes them, and in words where SQL has none."""

from typing import Any

from branchline.routing.addresses import Address, Block
from branchline.routing.covers import Cover
from branchline.routing.dimensions import NONE, REAL, Axis, addresses, common_prefix, kinds, prefix_range
from branchline.routing.filters import Constraint, Contains, Filter
from branchline.routing.instants import Instant
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, is_point
from branchline.routing.spellings.sql_text import write_literal, write_path
from branchline.routing.values import Kind

_READ_AS = {
    Axis.REVERSED: "reversed",
    Axis.FOLDED: "folded",
    Axis.FOLDED_REVERSED: "folded and reversed",
    Axis.ADDRESS: "address",
}
_KIND_WORDS = {
    Kind.MISSING: "MISSING",
    Kind.NULL: "JSON NULL",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.NUMBER: "NUMBER",
    Kind.TEXT: "TEXT",
    Kind.OBJECT: "OBJECT",
}
_PRESENCE = {
    kinds(Kind.MISSING, Kind.NULL): "IS NULL",
    kinds(Kind.BOOLEAN, Kind.OBJECT): "IS NOT NULL",
    kinds(Kind.NULL, Kind.OBJECT): "IS NOT MISSING",
}


def describe_cover(cover: Cover) -> list[str]:
    """A line for each filter."""
    return [describe_filter(filter_) for filter_ in cover]


def describe_filter(filter_: Filter) -> str:
    """The filter's constraints, joined."""
    return " AND ".join(map(describe_constraint, filter_)) or "TRUE"


def describe_constraint(constraint: Constraint) -> str:
    path = write_path(constraint.path)
    if isinstance(constraint, Contains):
        case = " IGNORE CASE" if constraint.axis is Axis.FOLDED else ""
        return f"{path} CONTAINS {write_literal(constraint.word)}{case}"
    axis, interval = constraint.axis, constraint.interval
    match axis:
        case Axis.PRESENCE:
            return f"{path} {_PRESENCE.get(interval) or _kinds(interval)}"
        case Axis.BOOLEAN:
            return f"{path} = {'FALSE' if interval.low == LOWEST else 'TRUE'}"
        case Axis.TEXT | Axis.FOLDED if is_point(interval):
            return f"{path} = {write_literal(interval.high[1])}{_case(axis)}"
        case Axis.TEXT | Axis.FOLDED if interval == prefix_range(common_prefix(interval)):
            return f"{path} STARTS WITH {write_literal(common_prefix(interval))}{_case(axis)}"
        case Axis.REVERSED | Axis.FOLDED_REVERSED if interval == prefix_range(common_prefix(interval)):
            return f"{path} ENDS WITH {write_literal(common_prefix(interval)[::-1])}{_case(axis)}"
        case Axis.INSTANT | Axis.ADDRESS if interval == (LOWEST, REAL):
            return f"{path} is text but no {'instant' if axis is Axis.INSTANT else 'IP address'}"
        case Axis.ADDRESS if (block := _block(interval)) is not None:
            return f"{path} IN CIDR '{block}'"
    return _ends(f"{_READ_AS[axis]}({path})" if axis in _READ_AS else path, interval)


def _case(axis: Axis) -> str:
    return " IGNORE CASE" if axis in (Axis.FOLDED, Axis.FOLDED_REVERSED) else ""


def _kinds(interval: Interval) -> str:
    low = interval.low[1] if len(interval.low) == 3 else 0
    high = interval.high[1] - 1 if len(interval.high) == 3 else Kind.OBJECT
    names = [_KIND_WORDS[Kind(rank)] for rank in range(low, high + 1)]
    return f"IS {names[0]}" if len(names) == 1 else f"IS ({', '.join(names)})"


def _ends(name: str, interval: Interval) -> str:
    """A range by its ends."""
    low, high = interval
    if is_point(interval):
        return f"{name} = {_value(high[1])}"
    below = None if low in (LOWEST, REAL) else f"{name} {'>' if low[2] else '>='} {_value(low[1])}"
    above = None if high == HIGHEST else f"{name} {'<=' if high[2] else '<'} {_value(high[1])}"
    return " AND ".join(filter(None, (below, above)))


def _value(value: Any) -> str:
    if isinstance(value, Address):
        return str(Block(value.version, value.number, 32 if value.version == 4 else 128)).partition("/")[0]
    if value == NONE:
        return "none"
    return write_literal(Instant(*value) if isinstance(value, tuple) else value)


def _block(interval: Interval) -> Block | None:
    """The block that the range is, if it is one."""
    low = interval.low
    first = Address(4, 0) if low == REAL else low[1] if len(low) == 3 else None
    if not isinstance(first, Address):
        return None
    lengths = range(33 if first.version == 4 else 129)
    blocks = (Block(first.version, first.number, length) for length in lengths)
    return next((block for block in blocks if addresses(block) == interval), None)
