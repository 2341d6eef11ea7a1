"""The naive evaluator: one filter, one event, straight from the definition. Every index must agree with it.

Theory of operation. A filter's value on an event without arrays is true, false or unknown (None), by
SQL's logic: a constraint on a missing attribute, or on one of another type, is unknown; NOT unknown is
unknown; AND is false if one term is false, OR is true if one is true. The filter matches if it is true.

An event with arrays stands for all the single-valued events made by choosing one element of each array,
and the filter matches if it is true for one of them. So a choice is made once for all of a filter's
paths: `items.sku = 'a' AND items.qty > 5` speaks of one item. Only arrays that the filter's paths go
through or end at are chosen from. An array within an array is chosen from again, and an empty array
gives one choice, which is missing. Because each choice is an event of its own, every identity of the
logic holds with arrays too: NOT (p AND q) is NOT p OR NOT q.

The evaluator first takes the event for one without arrays and looks up every constraint's path. Meeting
an array, it starts again: it lays the paths together into a tree of names, counts the choices, refuses
if they are too many, and else evaluates one choice after the other.

Invariant: no term is ever skipped, though its value could not change the result. If one were, whether
an event is refused for its many choices would hang on the order of the terms.

Cost: a lookup and a comparison per constraint, times the number of choices; LIKE, whose cost grows with
the value, once per pattern and text. Counting visits each value under the filter's paths once, however
many choices there are. Recursion over a filter is bounded by FILTER_MAX_DEPTH and recursion over an event
by EVENT_MAX_DEPTH: both were checked when they were read.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import TypeAlias

from branchline.routing.codes import Code, Rejection
from branchline.routing.expression import (
    And,
    Anything,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Path,
    paths,
)
from branchline.routing.like import like
from branchline.routing.limits import MAX_CHOICES
from branchline.routing.values import JsonValue, Truth, compare

Attributes: TypeAlias = Mapping[str, JsonValue]

_Names: TypeAlias = "dict[str, _Names]"
"""The filter's paths laid together: each name leads to the names that follow it."""


class _ArrayMet(Exception):
    """A path goes through an array or ends at one, so the event is not single-valued."""


def evaluate(expression: Expression, attributes: Attributes) -> bool | Rejection:
    """Whether the filter matches the event, or why it was not evaluated."""
    try:
        return _truth(expression, attributes, like) is True
    except _ArrayMet:
        pass
    names = _together(paths(expression))
    count = _count_members(names, attributes)
    if count > MAX_CHOICES:
        return Rejection(
            Code.TOO_MANY_CHOICES,
            f"the arrays that the filter names allow {count} choices; the limit is {MAX_CHOICES}",
        )
    # A long text beside arrays is the same in every choice; without this, LIKE would go over it each time.
    once = cache(like)
    return any(_truth(expression, choice, once) is True for choice in _member_choices(names, attributes))


def _truth(expression: Expression, attributes: Attributes, like: Callable[[str, str], bool]) -> Truth:
    """The expression's value on a single-valued event. Recursion is bounded by FILTER_MAX_DEPTH."""
    match expression:
        case Comparison(path, operator, literal):
            return compare(_lookup(path, attributes), operator, literal)
        case And(terms):
            return _all([_truth(term, attributes, like) for term in terms])
        case Or(terms):
            return _any([_truth(term, attributes, like) for term in terms])
        case Not(term):
            return _not(_truth(term, attributes, like))
        case Between(path, low, high):
            value = _lookup(path, attributes)
            return _all([compare(value, Operator.GE, low), compare(value, Operator.LE, high)])
        case In(path, literals):
            value = _lookup(path, attributes)
            return _any([compare(value, Operator.EQ, literal) for literal in literals])
        case Like(path, pattern):
            value = _lookup(path, attributes)
            return like(value, pattern) if isinstance(value, str) else None
        case IsNull(path):
            return _lookup(path, attributes) is None
        case Anything():
            return True


def _all(truths: list[Truth]) -> Truth:
    if False in truths:
        return False
    return None if None in truths else True


def _any(truths: list[Truth]) -> Truth:
    if True in truths:
        return True
    return None if None in truths else False


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _lookup(path: Path, attributes: Attributes) -> JsonValue:
    """The attribute's value, None if it is missing: no constraint tells that from null."""
    value = attributes.get(path[0])
    for name in path[1:]:
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list):
            raise _ArrayMet
        else:
            return None
    if isinstance(value, list):
        raise _ArrayMet
    return value


def _together(paths: Iterable[Path]) -> _Names:
    names: _Names = {}
    for path in paths:
        at = names
        for name in path:
            at = at.setdefault(name, {})
    return names


def _count(names: _Names, value: JsonValue) -> int:
    """How many choices the value allows. Recursion is bounded by EVENT_MAX_DEPTH."""
    if isinstance(value, list):
        return sum(_count(names, element) for element in value) or 1
    if isinstance(value, dict):
        return _count_members(names, value)
    return 1


def _count_members(names: _Names, members: Attributes) -> int:
    return math.prod(_count(below, members[name]) for name, below in names.items() if name in members)


def _choices(names: _Names, value: JsonValue) -> Iterator[JsonValue]:
    """The value without arrays, once for every choice. Recursion is bounded by EVENT_MAX_DEPTH."""
    if isinstance(value, list):
        for element in value:
            yield from _choices(names, element)
        if not value:
            yield None
    elif isinstance(value, dict):
        yield from _member_choices(names, value)
    else:
        yield value


def _member_choices(names: _Names, members: Attributes) -> Iterator[dict[str, JsonValue]]:
    """An object's named members, once for every choice; what the filter does not name is left out."""
    named = [name for name in names if name in members]
    for chosen in product(*(_choices(names[name], members[name]) for name in named)):
        yield dict(zip(named, chosen, strict=True))
