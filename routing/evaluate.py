"""The naive evaluator: one filter, one event, straight from the definition. Every index must agree with it.

Theory of operation. A filter's value on an event without arrays is true, false or unknown (None), by
SQL's logic: a constraint on a missing attribute, or on one of another type, is unknown; NOT unknown is
unknown; AND is false if one term is false, OR is true if one is true. The filter matches if it is true.

An event with arrays stands for all the single-valued events made by choosing one element of each array,
and the filter matches if it is true for one of them. So a choice is made once for all of a filter's
paths: `items.sku = 'a' AND items.qty > 5` speaks of one item. Only arrays that the filter's paths go
through or end at are chosen from. An array within an array is chosen from again, and an empty array
gives one choice, which is missing. Because each choice is an event of its own, every identity of the
logic holds with arrays too: NOT (p AND q) is NOT p OR NOT q. HAS and EVERY speak of all values at their
path at once, whatever is chosen.

The evaluator first takes the event for one without arrays and looks up every constraint's path. Meeting
an array, it starts again: it lays the paths together into a tree of names, counts the choices, refuses
if they are too many, or too much work for a filter of so many constraints, and else evaluates one choice
after the other (`choices.py`).

Invariant: no term is ever skipped, though its value could not change the result. If one were, whether
an event is refused for its many choices would hang on the order of the terms.

Cost: a lookup and a comparison per constraint, times the number of choices, at most MAX_STEPS; what grows
with a text once per constraint and text, what looks at all values at once only once (`Known`). Recursion over
a filter is bounded by FILTER_MAX_DEPTH and recursion over an event by EVENT_MAX_DEPTH: both were checked when
they were read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from branchline.routing.addresses import read_address
from branchline.routing.cesql.evaluate import truth as cesql_truth
from branchline.routing.choices import count_choices, each_choice, too_many_choices, too_many_steps
from branchline.routing.codes import Rejection
from branchline.routing.expression import (
    And,
    Anything,
    Between,
    CompareFields,
    Comparison,
    Every,
    Expression,
    Formula,
    Has,
    In,
    InBlock,
    IsTrue,
    Matches,
    Not,
    OfKind,
    Or,
    Path,
    Reading,
    SingleConstraint,
    chosen_paths,
)
from branchline.routing.limits import MAX_CHOICES
from branchline.routing.patterns import fits
from branchline.routing.values import (
    MISSING,
    SCALARS,
    Found,
    JsonValue,
    Literal,
    Operator,
    Truth,
    canonical_text,
    compare,
    kind,
)

Attributes: TypeAlias = Mapping[str, JsonValue]


@dataclass(slots=True)
class Known:
    """What is the same in every choice of one event, so that it is worked out once: what a constraint says of
    a text, which may be long, and what HAS and EVERY say of all values.

    Both are known by identity: the expression and the event stay for as long as this does.
    """

    texts: dict[tuple[int, int], Truth] = field(default_factory=dict)
    wholes: dict[int, Truth] = field(default_factory=dict)


class ArrayMet(Exception):
    """A path goes through an array or ends at one, so the event is not single-valued."""


def evaluate(expression: Expression, attributes: Attributes) -> bool | Rejection:
    """Whether the filter matches the event, or why it was not evaluated."""
    try:
        return truth(expression, attributes, attributes) is True
    except ArrayMet:
        pass
    paths = chosen_paths(expression)
    count = count_choices(paths, attributes)
    if count > MAX_CHOICES:
        return too_many_choices(count)
    dear = too_many_steps(expression, count, attributes)
    if dear is not None:
        return dear
    known = Known()
    return any(
        truth(expression, choice, attributes, known) is True for choice in each_choice(paths, attributes)
    )


def truth(
    expression: Expression, chosen: Mapping[str, Found], event: Attributes, known: Known | None = None
) -> Truth:
    """The expression's value for one choice of the event. Recursion is bounded by FILTER_MAX_DEPTH."""
    match expression:
        case And(terms):
            return _all([truth(term, chosen, event, known) for term in terms])
        case Or(terms):
            return _any([truth(term, chosen, event, known) for term in terms])
        case Not(term):
            return _not(truth(term, chosen, event, known))
        case IsTrue(term):
            return truth(term, chosen, event, known) is True
        case Anything():
            return True
        case Formula(root):
            return cesql_truth(root, lambda name: lookup((name,), chosen))
        case CompareFields(path, operator, other):
            return _compare_fields(lookup(path, chosen), operator, lookup(other, chosen))
        case Has() | Every():
            if known is None:
                return _of_all(expression, event)
            if id(expression) not in known.wholes:
                known.wholes[id(expression)] = _of_all(expression, event)
            return known.wholes[id(expression)]
        case constraint:
            value = lookup(constraint.path, chosen)
            if known is None or type(value) is not str:
                return holds(constraint, value)
            both = id(constraint), id(value)
            if both not in known.texts:
                known.texts[both] = holds(constraint, value)
            return known.texts[both]


def _of_all(constraint: Has | Every, event: Attributes) -> Truth:
    """What a constraint says that looks at all values at once."""
    if isinstance(constraint, Has):
        return _has(list(everything(constraint.path, event)), constraint.value)
    single = constraint.constraint
    return _all([holds(single, value) for value in everything(single.path, event)])


def holds(constraint: SingleConstraint, value: Found) -> Truth:
    """The constraint's value for one value of its attribute."""
    match constraint:
        case Comparison(_, operator, literal):
            return compare(value, operator, literal)
        case Between(_, low, high):
            return _all([compare(value, Operator.GE, low), compare(value, Operator.LE, high)])
        case In(_, literals):
            return _any([compare(value, Operator.EQ, literal) for literal in literals])
        case Matches(_, pattern, reading):
            text = read_as(reading, value)
            return None if text is None else fits(text, pattern)
        case InBlock(_, block):
            address = read_address(value) if isinstance(value, str) else None
            return None if address is None else block.first <= address <= block.last
        case OfKind(_, kinds):
            return kind(value) in kinds


def read_as(reading: Reading, value: Found) -> str | None:
    """The text that a pattern is laid against, None if the value has none."""
    if reading is Reading.CANONICAL:
        return canonical_text(value)
    if not isinstance(value, str):
        return None
    return value.casefold() if reading is Reading.FOLDED else value


def lookup(path: Path, attributes: Mapping[str, Found]) -> Found:
    """The attribute's value in a single-valued event."""
    value: Found = attributes.get(path[0], MISSING)
    for name in path[1:]:
        if isinstance(value, dict):
            value = value.get(name, MISSING)
        elif isinstance(value, list):
            raise ArrayMet
        else:
            return MISSING
    if isinstance(value, list):
        raise ArrayMet
    return value


def everything(path: Path, attributes: Attributes) -> Iterator[Found]:
    """All values at the path, in all elements of all arrays on the way, and MISSING where one has none."""
    pending: list[tuple[Found, Path]] = [(attributes.get(path[0], MISSING), path[1:])]
    while pending:
        value, rest = pending.pop()
        if isinstance(value, list):
            pending += [(element, rest) for element in reversed(value)]
        elif not rest:
            yield value
        elif isinstance(value, dict):
            pending.append((value.get(rest[0], MISSING), rest[1:]))
        else:
            yield MISSING


def _has(values: list[Found], literal: Literal) -> Truth:
    if any(compare(value, Operator.EQ, literal) for value in values):
        return True
    return None if values and all(value is None or value is MISSING for value in values) else False


def _compare_fields(one: Found, operator: Operator, other: Found) -> Truth:
    return compare(one, operator, other) if kind(other) in SCALARS else None  # type: ignore[arg-type]


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
