"""What a CESQL expression evaluates to: a value, and an error if there was one.

Evaluation fails fast: the first error ends it, and the value is then the zero of the expression's type.
AND and OR stop at the term that settles them, and IN at the element that is equal, so an error behind it
is never met. An operator casts its operands to its own types; `=` and `<>`, which any types have, cast
the left operand to the type of the right one, and IN its elements to the type of the left one.

Recursion is bounded by FILTER_MAX_DEPTH + CESQL_MAX_DEPTH.
"""

from collections.abc import Callable
from dataclasses import dataclass

from branchline.routing.cesql.casts import (
    INTEGERS,
    ErrorKind,
    Failure,
    Type,
    cast,
    from_event,
    to_boolean,
    to_integer,
    to_string,
    type_of,
    zero,
)
from branchline.routing.cesql.functions import resolve
from branchline.routing.cesql.tree import (
    All,
    Among,
    Any,
    Arithmetic,
    Calculate,
    Call,
    Compare,
    Constant,
    Exists,
    Identifier,
    Like,
    Negate,
    Node,
    Not,
    Value,
    Xor,
    identifiers,
)
from branchline.routing.patterns import fits
from branchline.routing.values import SCALARS, Found, Operator, Truth, compare, kind

__all__ = ["ErrorKind", "Lookup", "Result", "evaluate", "returns", "truth"]

Lookup = Callable[[str], Found]
"""Finds an attribute by its name."""


@dataclass(frozen=True, slots=True)
class Result:
    """A value, and the error that made it what it is."""

    value: Value
    error: ErrorKind | None = None


def evaluate(root: Node, lookup: Lookup) -> Result:
    """The expression's value for one event, and the first error."""
    try:
        return Result(_value(root, lookup))
    except Failure as failure:
        if failure.source is root and failure.value is not None:
            return Result(failure.value, failure.kind)
        return Result(zero(returns(root)), failure.kind)


def truth(root: Node, lookup: Lookup) -> Truth:
    """The expression as a condition: its Boolean value, unknown if there was an error or it has none."""
    # All attributes are looked up first: an array must be met wherever it stands, also behind what AND skips.
    found = {name: lookup(name) for name in identifiers(root)}
    try:
        value = _value(root, found.__getitem__)
    except Failure:
        return None
    return value if isinstance(value, bool) else None


def returns(node: Node) -> Type | None:
    """The type of the node's value; None if that depends on the event."""
    match node:
        case Constant(value):
            return type_of(value)
        case Identifier():
            return None
        case Negate() | Calculate():
            return Type.INTEGER
        case Call(name, arguments):
            function = resolve(name, len(arguments))
            return None if function is None else function.returns
        case _:
            return Type.BOOLEAN


def _value(node: Node, lookup: Lookup) -> Value:
    match node:
        case Constant(value):
            return value
        case Identifier(name):
            return from_event(lookup(name))
        case Exists(name):
            found = lookup(name)
            return not isinstance(found, list) and kind(found) in SCALARS
        case Compare(left, operator, right):
            return _compare(_value(left, lookup), operator, _value(right, lookup))
        case Like(term, pattern):
            return fits(to_string(_value(term, lookup)), pattern)
        case Among(left, elements):
            value = _value(left, lookup)
            return any(cast(_value(element, lookup), type_of(value)) == value for element in elements)
        case Not(term):
            return not _holds(term, lookup)
        case All(terms):
            return all(_holds(term, lookup) for term in terms)
        case Any(terms):
            return any(_holds(term, lookup) for term in terms)
        case Xor(terms):
            return sum([_holds(term, lookup) for term in terms]) % 2 == 1
        case Negate(term):
            return _integer(-to_integer(_value(term, lookup)))
        case Calculate(left, operator, right):
            one, other = _value(left, lookup), _value(right, lookup)
            return _calculate(to_integer(one), operator, to_integer(other))
        case Call():
            return _call(node, lookup)


def _holds(term: Node, lookup: Lookup) -> bool:
    return to_boolean(_value(term, lookup))


def _compare(left: Value, operator: Operator, right: Value) -> bool:
    if operator in (Operator.EQ, Operator.NE):
        return (cast(left, type_of(right)) == right) is (operator is Operator.EQ)
    return compare(to_integer(left), operator, to_integer(right)) is True


def _integer(number: int) -> int:
    if number not in INTEGERS:
        raise Failure(ErrorKind.MATH)
    return number


def _calculate(left: int, operator: Arithmetic, right: int) -> int:
    match operator:
        case Arithmetic.TIMES:
            return _integer(left * right)
        case Arithmetic.PLUS:
            return _integer(left + right)
        case Arithmetic.MINUS:
            return _integer(left - right)
    if right == 0:
        raise Failure(ErrorKind.MATH)
    # Towards zero; Python's own division goes down.
    quotient = abs(left) // abs(right) * (1 if (left < 0) is (right < 0) else -1)
    return _integer(quotient) if operator is Arithmetic.DIVIDED else left - quotient * right


def _call(node: Call, lookup: Lookup) -> Value:
    function = resolve(node.name, len(node.arguments))
    if function is None:
        raise Failure(ErrorKind.MISSING_FUNCTION)
    values = []
    for place, argument in enumerate(node.arguments):
        parameter = function.parameter(place)
        value = _value(argument, lookup)
        values.append(value if parameter is None else cast(value, parameter))
    try:
        return function.run(*values)
    except Failure as failure:
        failure.source = node
        raise
