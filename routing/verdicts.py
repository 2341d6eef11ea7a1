"""Why a filter does not match an event: the constraints that failed, and the values that they met.

Theory of operation. The tree is walked down with the truth that is wanted of each part, as in compiling:
of the whole it is true, NOT and IS TRUE exchange it, and at the leaves it is a constraint's. An AND that
should be true failed because of its failed terms. An OR that should be true failed because of all of its
terms: each could have saved it. So there is no failure exactly where the filter is true.

Of an event with arrays the choice that comes closest is explained: the first with the fewest failures.

Cost: that of the evaluator without arrays, and that of a filter which is true for no choice with them.
Recursion is bounded by FILTER_MAX_DEPTH.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.choices import count_choices, each_choice, too_many_choices, too_many_steps
from branchline.routing.codes import Rejection
from branchline.routing.evaluate import ArrayMet, Attributes, Known, everything, holds, lookup, truth
from branchline.routing.event import Event
from branchline.routing.expression import (
    And,
    Anything,
    Constraint,
    Every,
    Expression,
    Has,
    IsTrue,
    Not,
    Or,
    Path,
    chosen_paths,
    named_paths,
)
from branchline.routing.limits import MAX_CHOICES
from branchline.routing.values import MISSING, Found, JsonValue, Operator, Truth, compare
from branchline.routing.wants import OF_IS_TRUE, OF_NOT, POSITIVE, Want

Values: TypeAlias = tuple[tuple[Path, Found], ...]
"""Attributes and what the event has there."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A constraint that is not as it should be: not true or, if it is wanted so, not false."""

    constraint: Constraint | Anything
    wanted: bool
    truth: Truth
    """The value of what was wanted: false, or None for unknown."""
    found: Values

    @property
    def condition(self) -> Expression:
        """What was wanted, as a filter of its own."""
        return self.constraint if self.wanted else Not(self.constraint)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The failures of one choice. There are none if the filter matches."""

    failures: tuple[Failure, ...]
    choices: int = 1
    """How many choices the event's arrays allow; 1 without arrays."""
    chosen: Values = ()
    """What the choice has where the filter meets arrays."""


def why_not(expression: Expression, attributes: Attributes) -> WhyNot | Rejection:
    """Because of which constraints the filter does not match the event, or why it was not evaluated."""
    try:
        return WhyNot(_Walk(attributes, attributes).failures(expression))
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
    fewest: int | None = None
    closest: Mapping[str, Found] = {}
    for choice in each_choice(paths, attributes):
        failed = len(_Walk(choice, attributes, known, tells=False).failures(expression))
        if fewest is None or failed < fewest:
            fewest, closest = failed, choice
        if not fewest:
            break
    failures = _Walk(closest, attributes, known).failures(expression)
    event = Event(attributes)
    through_arrays = sorted(path for path in paths if event.has_array([path]))
    return WhyNot(failures, count, tuple((path, lookup(path, closest)) for path in through_arrays))


_SATISFIES: dict[Want, tuple[Truth, ...]] = {
    Want.TRUE: (True,),
    Want.FALSE: (False,),
    Want.NOT_TRUE: (False, None),
    Want.NOT_FALSE: (True, None),
}


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk over an expression for one choice of an event."""

    chosen: Mapping[str, Found]
    event: Attributes
    known: Known | None = None
    tells: bool = True
    """Whether failures are told with what was found: only those of the closest choice are asked for."""

    def failures(self, expression: Expression) -> tuple[Failure, ...]:
        # A constraint that the filter says twice has failed once.
        failed = {(each.constraint, each.wanted): each for each in self._of(expression, Want.TRUE)}
        return tuple(failed.values())

    def _of(self, part: Expression, want: Want) -> list[Failure]:
        match part:
            case And(terms) | Or(terms):
                # No term is skipped, so that an array is met wherever it stands.
                each = [self._of(term, want) for term in terms]
                every = isinstance(part, And) is (want in POSITIVE)
                return [failure for term in each for failure in term] if every or all(each) else []
            case Not(term):
                return self._of(term, OF_NOT[want])
            case IsTrue(term):
                return self._of(term, OF_IS_TRUE[want])
            case constraint:
                return self._constraint(constraint, want)

    def _constraint(self, constraint: Constraint | Anything, want: Want) -> list[Failure]:
        value = truth(constraint, self.chosen, self.event, self.known)
        if value in _SATISFIES[want]:
            return []
        wanted = want in POSITIVE
        found: Values = ()
        if self.tells and not isinstance(constraint, Anything):
            found = tuple(self._found(constraint, value))
        return [Failure(constraint, wanted, None if value is None else False, found)]

    def _found(self, constraint: Constraint, value: Truth) -> Iterator[tuple[Path, Found]]:
        match constraint:
            case Has(path, literal) if value is True:
                values = everything(path, self.event)
                yield path, next(each for each in values if compare(each, Operator.EQ, literal))
            case Has(path, _):
                yield path, _together(list(everything(path, self.event)))
            case Every(single):
                all_values = list(everything(single.path, self.event))
                alike = [each for each in all_values if holds(single, each) is value]
                yield single.path, _together(all_values) if value is True else alike[0]
            case _:
                for path in named_paths(constraint):
                    yield path, lookup(path, self.chosen)


def _together(values: list[Found]) -> Found:
    """All values at a path as one: an array, unless there is only one or none at all."""
    present: list[JsonValue] = [value for value in values if value is not MISSING]
    if not present:
        return [] if not values else MISSING
    return present[0] if len(values) == 1 else present
