"""Filters as the peers write them: event-ruler's patterns and Lucene's queries, from the same `Filter`s.

Not everything can be said there: event-ruler orders no texts, and neither takes two constraints on one
attribute. What cannot be said is refused, so that nobody compares different things.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from branchline.routing.dimensions import Axis, common_prefix, prefix_range
from branchline.routing.filters import Constraint, Contains, Filter
from branchline.routing.intervals import HIGHEST, LOWEST, is_point


class CannotBeSaid(ValueError):
    """A filter that a peer has no words for."""


def write_lines(file: Path, lines: Iterable[bytes]) -> None:
    with file.open("wb") as opened:
        opened.writelines(line + b"\n" for line in lines)


def pattern(filter_: Filter) -> bytes:
    """The filter as an event-ruler pattern."""
    made: dict[str, Any] = {}
    for constraint in filter_:
        *above, name = constraint.path
        level = made
        for each in above:
            level = level.setdefault(each, {})
        if name in level:
            raise CannotBeSaid(f"two constraints on {name}")
        level[name] = [_alternative(constraint)]
    return json.dumps(made).encode()


def _alternative(constraint: Constraint) -> Any:
    kind, what = _said(constraint)
    if kind == "equal":
        return what
    if kind == "contains":
        return {"wildcard": f"*{what}*"}
    if kind != "range":
        return {kind: what}
    low, low_in, high, high_in = what
    if low is not None and low == high:
        return {"numeric": ["=", low]}
    ends: list[Any] = []
    if low is not None:
        ends += [">=" if low_in else ">", low]
    if high is not None:
        ends += ["<=" if high_in else "<", high]
    return {"numeric": ends}


def query(filter_: Filter) -> bytes:
    """The filter as constraints for Lucene's monitor."""
    if len({each.path for each in filter_}) < len(filter_):
        raise CannotBeSaid("two constraints on an attribute")
    return json.dumps([_clause(each) for each in filter_]).encode()


def _clause(constraint: Constraint) -> dict[str, Any]:
    kind, what = _said(constraint)
    clause = {"path": ".".join(constraint.path), "op": kind}
    if kind != "range":
        return clause | {"text": what}
    low, low_in, high, high_in = what
    if not low_in or not high_in:
        raise CannotBeSaid("an end that is left out")
    ends = {"low": low, "high": high}
    return clause | {name: end for name, end in ends.items() if end is not None}


def _said(constraint: Constraint) -> tuple[str, Any]:
    """What a constraint asks for: equal, prefix, suffix or contains a text, or a range of numbers."""
    if isinstance(constraint, Contains):
        if constraint.axis is not Axis.TEXT:
            raise CannotBeSaid(str(constraint))
        return "contains", constraint.word
    low, high = constraint.interval
    if constraint.axis is Axis.NUMBER:
        ends = [None if cut in (LOWEST, HIGHEST) else cut[1] for cut in (low, high)]
        return "range", (ends[0], low == LOWEST or not low[2], ends[1], high == HIGHEST or bool(high[2]))
    if constraint.axis is Axis.TEXT and is_point(constraint.interval):
        return "equal", high[1]
    start = common_prefix(constraint.interval)
    if constraint.axis in (Axis.TEXT, Axis.REVERSED) and prefix_range(start) == constraint.interval:
        return ("prefix", start) if constraint.axis is Axis.TEXT else ("suffix", start[::-1])
    raise CannotBeSaid(str(constraint))
