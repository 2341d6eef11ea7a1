"""Filters in normal form as a subscriber would write them, in SQL."""

from branchline.routing.dimensions import Axis, common_prefix, prefix_range
from branchline.routing.filters import Constraint, Contains, Filter
from branchline.routing.intervals import HIGHEST, LOWEST, Cut, is_point


def sql_text(filter_: Filter) -> str:
    """A predicate whose cover is the filter; texts are plain or reversed, and have no quotes."""
    return " AND ".join(map(_term, filter_))


def _term(constraint: Constraint) -> str:
    name = ".".join(constraint.path)
    if isinstance(constraint, Contains):
        return f"{name} LIKE '%{constraint.word}%'"
    low, high = constraint.interval
    if is_point(constraint.interval):
        return f"{name} = {_literal(high)}"
    if constraint.axis is Axis.NUMBER and len(low) == len(high) == 3 and not low[2] and high[2]:
        return f"{name} BETWEEN {_literal(low)} AND {_literal(high)}"
    if constraint.axis is not Axis.NUMBER:
        start = common_prefix(constraint.interval)
        if start and prefix_range(start) == constraint.interval:
            plain = constraint.axis is Axis.TEXT
            return f"{name} LIKE '{start}%'" if plain else f"{name} LIKE '%{start[::-1]}'"
    terms = []
    if low != LOWEST:
        terms.append(f"{name} {'>' if low[2] else '>='} {_literal(low)}")
    if high != HIGHEST:
        terms.append(f"{name} {'<=' if high[2] else '<'} {_literal(high)}")
    return " AND ".join(terms)


def _literal(cut: Cut) -> str:
    return f"'{cut[1]}'" if isinstance(cut[1], str) else str(cut[1])
