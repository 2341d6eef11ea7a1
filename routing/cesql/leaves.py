"""Single CESQL conditions on one attribute as expressions: where each is true, false, and without an error.

Which casts `=` and IN do depends on the types: `a = 'x'` casts the attribute to text, which is what its
canonical text is, and `a LIKE 'x'` does too. `'x' = a` and `a IN ('x', 'y')` cast the literals to the
attribute's type instead, so they are told apart by the attribute's kind: as text it is compared with the
literals as text, as a Boolean with them as Booleans, and an error where one cannot be cast. A number is
compared with them as integers if it is an integer of CESQL, and if not by its canonical text.
"""

from abc import ABC, abstractmethod
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
from branchline.routing.values import SCALARS, Kind, Literal, Operator, canonical_text, is_finite

NEVER = Not(Anything())
"""True for no event."""


class Leaf(ABC):
    """Where a condition is true and where it is false; elsewhere it is an error.

    Expressions are made when they are asked for: of most conditions, only one ever is.
    """

    __slots__ = ()

    @abstractmethod
    def true(self) -> Expression:
        """True exactly where the condition is."""

    @abstractmethod
    def false(self) -> Expression:
        """True exactly where the condition is false."""

    def defined(self) -> Expression | None:
        """Where it is either, if that is easier to say than each of the two."""
        return None

    def implies(self) -> frozenset[str]:
        """Attributes that are there unless the condition is an error."""
        return frozenset()

    def needs(self) -> frozenset[str] | None:
        """Attributes whose presence is all that it takes to be no error; None if it takes more than that."""
        return None


@dataclass(frozen=True, slots=True)
class Settled(Leaf):
    """A condition that is the same for all events: true, false, or None for an error."""

    value: bool | None

    def true(self) -> Expression:
        return Anything() if self.value is True else NEVER

    def false(self) -> Expression:
        return Anything() if self.value is False else NEVER

    def defined(self) -> Expression | None:
        return None if self.value is None else Anything()

    def needs(self) -> frozenset[str] | None:
        return None if self.value is None else frozenset()


@dataclass(frozen=True, slots=True)
class FormulaLeaf(Leaf):
    """A condition that only a formula can say."""

    condition: Node

    def true(self) -> Expression:
        return Formula(self.condition)

    def false(self) -> Expression:
        return Not(Formula(self.condition))


@dataclass(frozen=True, slots=True)
class _Presence(Leaf):
    """EXISTS."""

    name: str

    def true(self) -> Expression:
        return present(self.name)

    def false(self) -> Expression:
        return Not(present(self.name))

    def defined(self) -> Expression:
        return Anything()

    def needs(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True, slots=True)
class _Fits(Leaf):
    """The canonical text of an attribute fits a pattern: an error only if the attribute is missing."""

    name: str
    pattern: Pattern

    def true(self) -> Expression:
        return Matches((self.name,), self.pattern, Reading.CANONICAL)

    def false(self) -> Expression:
        return Not(self.true())

    def defined(self) -> Expression:
        return present(self.name)

    def implies(self) -> frozenset[str]:
        return frozenset({self.name})

    def needs(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True, slots=True)
class _Equals(Leaf):
    """One of the values, cast to the attribute's type, equals it."""

    name: str
    values: Sequence[Value]

    def true(self) -> Expression:
        path = (self.name,)
        texts = self._texts()
        numbers = _unique([*_casts(self.values, Type.INTEGER)[0], *_oddities(texts)])
        booleans = _casts(self.values, Type.BOOLEAN)[0]
        return any_of(_in(path, some) for some in (texts, numbers, booleans) if some)

    def false(self) -> Expression:
        path = (self.name,)
        texts = self._texts()
        integers, all_integers = _casts(self.values, Type.INTEGER)
        booleans, all_booleans = _casts(self.values, Type.BOOLEAN)
        made = [_not_in(path, texts)]
        if all_integers:
            # No text is both an integer and a number that is none, so there are no oddities.
            made.append(_not_in(path, integers))
        elif oddities := _oddities(texts):
            made.append(all_of((_not_in(path, oddities), any_of(_odd(path)))))
        else:
            made += _odd(path)
        if all_booleans:
            made.append(_not_in(path, booleans))
        return any_of(made)

    def defined(self) -> Expression:
        path, kinds = (self.name,), self._kinds()
        return any_of((OfKind(path, kinds), *(() if Kind.NUMBER in kinds else _odd(path))))

    def implies(self) -> frozenset[str]:
        return frozenset({self.name})

    def needs(self) -> frozenset[str] | None:
        return frozenset({self.name}) if self._kinds() == SCALARS else None

    def _texts(self) -> list[Literal]:
        return _unique(map(to_string, self.values))

    def _kinds(self) -> frozenset[Kind]:
        """Kinds of the attribute to which all the values can be cast."""
        numbers = {Kind.NUMBER} if _casts(self.values, Type.INTEGER)[1] else set()
        booleans = {Kind.BOOLEAN} if _casts(self.values, Type.BOOLEAN)[1] else set()
        return frozenset({Kind.TEXT} | numbers | booleans)


@dataclass(frozen=True, slots=True)
class _Negated(Leaf):
    """NOT, above a single condition."""

    leaf: Leaf

    def true(self) -> Expression:
        return self.leaf.false()

    def false(self) -> Expression:
        return self.leaf.true()

    def defined(self) -> Expression | None:
        return self.leaf.defined()

    def implies(self) -> frozenset[str]:
        return self.leaf.implies()

    def needs(self) -> frozenset[str] | None:
        return self.leaf.needs()


def present(name: str) -> Expression:
    """The attribute is there, as CESQL sees it: null and objects are as good as missing."""
    return OfKind((name,), SCALARS)


def read_leaf(condition: Node, fold: Callable[[Node], Node]) -> Leaf | None:
    """The leaf for a Boolean condition; None if only a formula can say it.

    `fold` turns a node that is the same for all events into a constant.
    """
    match condition:
        case Exists(name):
            return _Presence(name)
        case Like(Identifier(name), pattern):
            return _Fits(name, pattern)
        case Among(Identifier(name), elements):
            values = [node.value for node in map(fold, elements) if isinstance(node, Constant)]
            return _Equals(name, values) if len(values) == len(elements) else None
        case Compare(left, Operator.EQ | Operator.NE as operator, right):
            equal = _equal(fold(left), fold(right))
            return equal if equal is None or operator is Operator.EQ else _Negated(equal)
        case _:
            return None


def _equal(left: Node, right: Node) -> Leaf | None:
    match left, right:
        case Identifier(name), Constant(str(text)):
            return _Fits(name, exactly(text))
        case Constant(value), Identifier(name):
            return _Equals(name, [value])
        case _:
            # With `a = 5` or `a = TRUE`, many spellings of text are equal: '+5', '005', 'tRuE'.
            return None


def _casts(values: Sequence[Value], kind: Type) -> tuple[list[Literal], bool]:
    """The values cast, up to the first that cannot be, and whether there is none such."""
    made: list[Literal] = []
    for value in values:
        try:
            made.append(cast(value, kind))
        except Failure:
            return _unique(made), False
    return _unique(made), True


def _oddities(texts: Iterable[Literal]) -> list[Literal]:
    return [number for text in texts if (number := _oddity(str(text))) is not None]


def _oddity(text: str) -> int | float | None:
    """The number of which this is the canonical text, if it is not an integer of CESQL."""
    if len(text) > NUMBER_MAX_CHARS:
        return None
    try:
        number = int(text) if text.removeprefix("-").isdecimal() else float(text)
    except ValueError:
        return None
    if not is_finite(number) or is_integer(number) or canonical_text(number) != text:
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
    flat = []
    for term in _flat(terms, And):
        if _is_never(term):
            return NEVER
        if type(term) is not Anything:
            flat.append(term)
    return And(tuple(flat)) if len(flat) > 1 else flat[0] if flat else Anything()


def any_of(terms: Iterable[Expression]) -> Expression:
    """OR as a reader makes it: flat, of two terms or more, and without those that say nothing."""
    flat = []
    for term in _flat(terms, Or):
        if type(term) is Anything:
            return term
        if not _is_never(term):
            flat.append(term)
    return Or(tuple(flat)) if len(flat) > 1 else flat[0] if flat else NEVER


def _is_never(term: Expression) -> bool:
    return type(term) is Not and type(term.term) is Anything


def _flat(terms: Iterable[Expression], join: type[And] | type[Or]) -> list[Expression]:
    """The terms, each once, with those of a term that is a join of the same kind in its place."""
    flat: list[Expression] = []
    for term in terms:
        if type(term) is join:
            flat += term.terms
        else:
            flat.append(term)
    # To hash an expression takes a walk over all of it, and mostly a glance at the terms tells them apart.
    if len(set(map(_glance, flat))) == len(flat):
        return flat
    return list(dict.fromkeys(flat))


def _glance(term: Expression) -> tuple[type, Path | None]:
    """What terms that are equal have in common: their type and the path of their first constraint."""
    first = term
    while True:
        match first:
            case Matches() | In() | Comparison() | OfKind():
                return type(term), first.path
            case Not(below):
                first = below
            case And(terms) | Or(terms):
                first = terms[0]
            case _:
                return type(term), None
