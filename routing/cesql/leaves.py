"""Single CESQL conditions on one attribute as expressions: where each is true, false, and without an error.

Which casts `=` and IN do depends on the types: `a = 'x'` casts the attribute to text, which is what its
canonical text is, and `a LIKE 'x'` does too. `'x' = a` and `a IN ('x', 'y')` cast the literals to the
attribute's type instead, so they are told apart by the attribute's kind: as text it is compared with the
literals as text, as a Boolean with them as Booleans, and an error where one cannot be cast. A number is
compared with them as integers if it is an integer of CESQL, and if not by its canonical text.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from branchline.routing.cesql.casts import INTEGERS, Failure, Type, cast, is_integer, to_string
from branchline.routing.cesql.tree import Among, Compare, Constant, Exists, Identifier, Like, Node, Value
from branchline.routing.expression import (
    And,
    Anything,
    Comparison,
    Expression,
    Formula,
    In,
    Matches,
    Not,
    OfKind,
    Or,
    Path,
    Reading,
)
from branchline.routing.limits import NUMBER_MAX_CHARS
from branchline.routing.patterns import Pattern, containing, exactly
from branchline.routing.values import SCALARS, Kind, Literal, Operator, canonical_text

NEVER = Not(Anything())
"""True for no event."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where a condition is true and where it is false; elsewhere it is an error."""

    true: Expression
    false: Expression
    defined: Expression | None = None
    """Where it is either, if that is easier to say than each of the two."""
    implies: frozenset[str] = frozenset()
    """Attributes that are there unless the condition is an error."""
    needs: frozenset[str] | None = None
    """Attributes whose presence is all that it takes to be no error; None if it takes more than that."""

    @classmethod
    def never_fails(cls, true: Expression, false: Expression) -> "Leaf":
        return cls(true, false, Anything(), needs=frozenset())

    @classmethod
    def of_text(cls, name: str, pattern: Pattern) -> "Leaf":
        """The canonical text of an attribute fits a pattern: an error only if the attribute is missing."""
        true, names = Matches((name,), pattern, Reading.CANONICAL), frozenset({name})
        return cls(true, Not(true), present(name), names, names)

    @classmethod
    def formula(cls, condition: Node) -> "Leaf":
        return cls(Formula(condition), Not(Formula(condition)))

    def negated(self) -> "Leaf":
        return Leaf(self.false, self.true, self.defined, self.implies, self.needs)


def present(name: str) -> Expression:
    """The attribute is there, as CESQL sees it: null and objects are as good as missing."""
    return OfKind((name,), SCALARS)


def read_leaf(condition: Node, fold: Callable[[Node], Node]) -> Leaf | None:
    """The leaf for a Boolean condition; None if only a formula can say it.

    `fold` turns a node that is the same for all events into a constant.
    """
    match condition:
        case Exists(name):
            return Leaf.never_fails(present(name), Not(present(name)))
        case Like(Identifier(name), pattern):
            return Leaf.of_text(name, pattern)
        case Among(Identifier(name), elements):
            values = [node.value for node in map(fold, elements) if isinstance(node, Constant)]
            return _among(name, values) if len(values) == len(elements) else None
        case Compare(left, Operator.EQ | Operator.NE as operator, right):
            equal = _equal(fold(left), fold(right))
            return equal if equal is None or operator is Operator.EQ else equal.negated()
        case _:
            return None


def _equal(left: Node, right: Node) -> Leaf | None:
    match left, right:
        case Identifier(name), Constant(str(text)):
            return Leaf.of_text(name, exactly(text))
        case Constant(value), Identifier(name):
            return _among(name, [value])
        case _:
            # With `a = 5` or `a = TRUE`, many spellings of text are equal: '+5', '005', 'tRuE'.
            return None


def _among(name: str, values: Sequence[Value]) -> Leaf:
    path = (name,)
    texts = [to_string(value) for value in values]
    integers, all_integers = _casts(values, Type.INTEGER)
    booleans, all_booleans = _casts(values, Type.BOOLEAN)
    oddities = [number for text in texts if (number := _oddity(text)) is not None]
    true = any_of(
        _in(path, some) for some in (_unique(texts), _unique([*integers, *oddities]), booleans) if some
    )
    false = [_not_in(path, _unique(texts))]
    kinds = {Kind.TEXT}
    defined: list[Expression] = []
    if all_integers:
        # No text is both an integer and a number that is none, so there are no oddities.
        false.append(_not_in(path, integers))
        kinds.add(Kind.NUMBER)
    else:
        defined = _odd(path)
        odd = any_of(defined)
        false.append(all_of((_not_in(path, _unique(oddities)), odd)) if oddities else odd)
    if all_booleans:
        false.append(_not_in(path, booleans))
        kinds.add(Kind.BOOLEAN)
    needs = frozenset({name}) if kinds == SCALARS else None
    return Leaf(
        true, any_of(false), any_of((OfKind(path, frozenset(kinds)), *defined)), frozenset({name}), needs
    )


def _casts(values: Sequence[Value], kind: Type) -> tuple[list[Literal], bool]:
    """The values cast, up to the first that cannot be, and whether there is none such."""
    made: list[Literal] = []
    for value in values:
        try:
            made.append(cast(value, kind))
        except Failure:
            return _unique(made), False
    return _unique(made), True


def _oddity(text: str) -> int | float | None:
    """The number of which this is the canonical text, if it is not an integer of CESQL."""
    if len(text) > NUMBER_MAX_CHARS:
        return None
    try:
        number = int(text) if text.removeprefix("-").isdecimal() else float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or is_integer(number) or canonical_text(number) != text:
        return None
    return number


def _odd(path: Path) -> list[Expression]:
    """One of these is true exactly if the attribute is a number but not an integer of CESQL."""
    number = OfKind(path, frozenset({Kind.NUMBER}))
    return [
        Comparison(path, Operator.LT, INTEGERS[0]),
        Comparison(path, Operator.GT, INTEGERS[-1]),
        # Only numbers with a fraction have these in their canonical text.
        And((number, Matches(path, containing("."), Reading.CANONICAL))),
        And((number, Matches(path, containing("e"), Reading.CANONICAL))),
    ]


def _in(path: Path, values: Sequence[Literal]) -> Expression:
    return Comparison(path, Operator.EQ, values[0]) if len(values) == 1 else In(path, tuple(values))


def _not_in(path: Path, values: Sequence[Literal]) -> Expression:
    return Comparison(path, Operator.NE, values[0]) if len(values) == 1 else Not(In(path, tuple(values)))


def _unique(values: Iterable[Literal]) -> list[Literal]:
    return list(dict.fromkeys(values))


def all_of(terms: Iterable[Expression]) -> Expression:
    """AND as a reader makes it: flat, of two terms or more, and without those that say nothing."""
    flat = _flat(terms, And)
    flat.pop(Anything(), None)
    if NEVER in flat:
        return NEVER
    return And(tuple(flat)) if len(flat) > 1 else next(iter(flat), Anything())


def any_of(terms: Iterable[Expression]) -> Expression:
    """OR as a reader makes it: flat, of two terms or more, and without those that say nothing."""
    flat = _flat(terms, Or)
    flat.pop(NEVER, None)
    if Anything() in flat:
        return Anything()
    return Or(tuple(flat)) if len(flat) > 1 else next(iter(flat), NEVER)


def _flat(terms: Iterable[Expression], join: type[And] | type[Or]) -> dict[Expression, None]:
    flat: dict[Expression, None] = {}
    for term in terms:
        flat |= dict.fromkeys(term.terms if isinstance(term, join) else (term,))
    return flat
