"""Compiling a filter: from its expression to a cover that indexes can use, and what is left to check.

Theory of operation. For each part of the tree there are four regions of single-valued events: where it is
true, where it is false, and where it is not true or not false, each of which includes unknown. Negation and
IS TRUE only exchange them, so walking down with the region that is wanted pushes every negation into the
constraints, whose regions are ranges (`regions.py`). On the way up, regions are intersected and joined as
covers (`covers.py`).

A part whose region is no interval, or whose cover had to be widened, is covered by something larger. Then
the cover is not exact, and the *residual* must be checked as well: the terms of the topmost AND that are
not covered exactly, or the whole expression if it is no AND. So for single-valued events

    cover holds and residual is true  =  the expression is true

For an event with arrays the cover is asked of each constraint on its own, whichever element satisfies it
(`Event.may_match`) or of each choice (`compiled/spans.py`); if it holds, the whole expression is checked,
choice by choice.

A filter whose cover is empty matches no event and is refused, with two of its constraints that exclude each
other. One whose cover is exact and holds for everything is accepted; `Compiled.always` says so.

Cost: linear in the constraints, apart from the products of disjunctions, which COVER_MAX_FILTERS bounds.
Recursion is bounded by FILTER_MAX_DEPTH.
"""

from dataclasses import dataclass
from functools import lru_cache

from branchline.routing.codes import Code, Rejection
from branchline.routing.covers import ALL, NOTHING, Cover, conjoin_covers, disjoin, widen
from branchline.routing.describing import describe_constraint
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import (
    And,
    Anything,
    Between,
    Comparison,
    Constraint,
    Expression,
    Has,
    In,
    IsTrue,
    Matches,
    Not,
    OfKind,
    Or,
    Path,
    chosen_paths,
    constraints,
    has_and,
    named_paths,
)
from branchline.routing.filters import EVERYTHING, Contradiction
from branchline.routing.limits import COVER_MAX_FILTERS
from branchline.routing.regions import Region, axis_of, where_false, where_true, where_unknown
from branchline.routing.spellings import read_filter
from branchline.routing.wants import OF_IS_TRUE, OF_NOT, POSITIVE, Want

WIDENED_WHY = f"its alternatives are more than {COVER_MAX_FILTERS} filters, so the cover was widened"


@dataclass(frozen=True, slots=True)
class Left:
    """A part of the filter that is left to check, and why the cover does not say it."""

    part: Expression
    why: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A filter as routing uses it."""

    expression: Expression
    cover: Cover
    residual: Expression | None
    """What must be true beside the cover; None if the cover is exact."""
    left: tuple[Left, ...]
    """The parts that made the cover inexact."""
    paths: frozenset[Path]
    """The attributes whose arrays are chosen from."""

    @property
    def exact(self) -> bool:
        return self.residual is None

    @property
    def always(self) -> bool:
        """Whether the filter matches every event."""
        return self.exact and EVERYTHING in self.cover

    def matches(self, event: Event) -> bool | Rejection:
        """Whether the filter matches the event, or why it was not evaluated."""
        if event.has_array(self.paths):
            return evaluate(self.expression, event.attributes)
        if not event.may_match(self.cover):
            return False
        if self.residual is None:
            return True
        event.residuals += 1
        return evaluate(self.residual, event.attributes)


@lru_cache(maxsize=1024)
def compile_filter(spelling: str, text: str) -> Compiled | Rejection:
    """The filter that the text spells, compiled, or why it is refused.

    The last ones are remembered: a request's filter is checked first and put into the table after.
    """
    expression = read_filter(spelling, text)
    return expression if isinstance(expression, Rejection) else compile_expression(expression)


def compile_expression(expression: Expression) -> Compiled | Rejection:
    """The compiled filter, or a rejection if it matches no event."""
    walk = _Walk(expression)
    terms = expression.terms if isinstance(expression, And) else (expression,)
    regions = [walk.region(term, Want.TRUE) for term in terms]
    both = conjoin_covers([region.cover for region in regions])
    if not both.cover:
        return _unsatisfiable(walk.contradiction if both.contradiction is None else both.contradiction)
    residual = [
        term
        for place, (term, region) in enumerate(zip(terms, regions, strict=True))
        if region.why is not None or place in both.widened
    ]
    left = list(walk.left)
    if both.widened:
        left.append(Left(expression, WIDENED_WHY))
    return Compiled(
        expression,
        both.cover,
        None if not residual else residual[0] if len(residual) == 1 else And(tuple(residual)),
        tuple(left),
        chosen_paths(expression),
    )


_USUAL = frozenset({Comparison, Matches, OfKind, Between})
"""Constraints that need no further look before their regions are asked for: nearly all there are."""


class _Walk:
    """One walk over an expression, with what it found on the way."""

    def __init__(self, expression: Expression) -> None:
        self.left: list[Left] = []
        self.contradiction: Contradiction | None = None
        self._expression = expression

    def region(self, part: Expression, want: Want) -> Region:
        """The region of the part that is wanted."""
        if type(part) in _USUAL:
            return self._constraint(part, want)  # type: ignore[arg-type]
        match part:
            case And(terms) | Or(terms):
                regions = [self.region(term, want) for term in terms]
                return self._together(part, regions, every=isinstance(part, And) is (want in POSITIVE))
            case Not(term):
                return self.region(term, OF_NOT[want])
            case IsTrue(term):
                return self.region(term, OF_IS_TRUE[want])
            case Anything():
                return Region(ALL if want in POSITIVE else NOTHING)
            case In(_, values) if len({axis_of(value) for value in values}) > 1:
                return self.region(by_axis(part), want)
            case constraint:
                return self._constraint(constraint, want)

    def _together(self, part: Expression, regions: list[Region], every: bool) -> Region:
        why = next((region.why for region in regions if region.why is not None), None)
        if every:
            both = conjoin_covers([region.cover for region in regions])
            cover, widened = both.cover, bool(both.widened)
            if not cover:
                self.contradiction = self.contradiction or both.contradiction
        else:
            cover = disjoin(filter_ for region in regions for filter_ in region.cover)
            widened = len(cover) > COVER_MAX_FILTERS
            cover = widen(cover, COVER_MAX_FILTERS)
        if widened:
            self.left.append(Left(part, WIDENED_WHY))
            why = why or WIDENED_WHY
        return Region(cover, why)

    def _constraint(self, constraint: Constraint, want: Want) -> Region:
        alone = isinstance(constraint, Has) and self._alone(constraint)
        if want is Want.TRUE:
            region = where_true(constraint, alone)
        elif want is Want.FALSE:
            region = where_false(constraint)
        else:
            known = where_false(constraint) if want is Want.NOT_TRUE else where_true(constraint, alone)
            unknown = where_unknown(constraint)
            region = Region(disjoin([*known.cover, *unknown.cover]), known.why or unknown.why)
        if region.why is not None:
            self.left.append(Left(constraint, region.why))
        return region

    def _alone(self, constraint: Has) -> bool:
        """Whether nothing that must hold as well speaks of the attribute, or of one that begins as it does.

        Where paths begin alike an array may be, and another of its objects may have what HAS asks for: then
        no single choice satisfies both.
        """
        whole = self._expression
        terms = whole.terms if isinstance(whole, And) else (whole,)
        begins = constraint.path[0]
        speaking = [
            term
            for term in terms
            if any(path[0] == begins for each in constraints(term) for path in named_paths(each))
        ]
        return len(speaking) == 1 and not has_and(speaking[0])


def by_axis(part: In) -> Or:
    """A list of several types as one list for each: what compares with one type is unknown to the others."""
    lists: dict[object, list[object]] = {}
    for value in part.values:
        lists.setdefault(axis_of(value), []).append(value)
    return Or(tuple(In(part.path, tuple(values)) for values in lists.values()))  # type: ignore[arg-type]


def _unsatisfiable(contradiction: Contradiction | None) -> Rejection:
    if contradiction is None:
        reason = "no event can match this filter"
    else:
        one, other = map(describe_constraint, contradiction)
        reason = f"no event can match this filter: {one} and {other} exclude each other"
    return Rejection(Code.FILTER_UNSATISFIABLE, reason, 1, 1)
