"""Random filters and events whose names and values are uniform, Gaussian or Pareto distributed.

The paper on prefix forwarding measured with such filters: 2 to 8 constraints in a filter and 2 to 12
attributes in an event, both normally distributed, and values from [-50, 50]. It does not say how many names
there are, which operators come how often, nor the parameters of the distributions. What is chosen here:

- 100 names, of several numbers tried the one that gives FPTs of about the size that the paper shows;
- the six operators equally often, since nothing speaks for one of them. `between` takes two values;
- values with one decimal, so that now and then two constraints are equal, as they would be in life;
- the names of a filter, and of an event, are different ones: two constraints on one name would become one.

Names are numbered, so their alphabet is their number: Gaussian ones are frequent in the middle of it, Pareto
ones at its beginning. The same `Random` gives the same filters whether they are asked for as SQL or as
routing has them. Values are rounded, so that the last digit of somebody's logarithm changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from random import Random
from statistics import NormalDist
from typing import NamedTuple

from branchline.routing.dimensions import Axis
from branchline.routing.filters import Constraint, Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, point
from branchline.routing.values import JsonValue

BOUND = 50.0
BETWEEN = "between"
OPERATORS = ("=", "<", "<=", ">", ">=", BETWEEN)

_NORMAL = NormalDist()
_SPREAD = 6
"""Standard deviations from one end of a Gaussian's range to the other; what lies outside is drawn again."""
_PARETO_SCALE = 10
"""A Pareto variable of shape 1 less 1, over this: more than half of all lie in the lowest tenth."""


class Distribution(StrEnum):
    """How names or values are spread over what there is."""

    UNIFORM = "uniform"
    GAUSSIAN = "gaussian"
    PARETO = "pareto"

    def draw(self, random: Random) -> float:
        """A number from 0 up to 1, but not 1."""
        while True:
            chance = random.random()
            if self is Distribution.UNIFORM:
                return chance
            if self is Distribution.PARETO:
                drawn = (1 / (1 - chance) - 1) / _PARETO_SCALE
            else:
                # The inverse is not defined at 0.
                drawn = 0.5 + _NORMAL.inv_cdf(chance) / _SPREAD if chance else 0.0
            if 0 <= drawn < 1:
                return drawn


class Condition(NamedTuple):
    """An attribute's name, an operator, and its value; for `between` a second one that is not below it."""

    name: str
    operator: str
    value: float
    high: float

    def text(self) -> str:
        """The condition in SQL."""
        if self.operator == BETWEEN:
            return f"{self.name} BETWEEN {self.value} AND {self.high}"
        return f"{self.name} {self.operator} {self.value}"

    def constraint(self) -> Constraint:
        """The condition as routing has it."""
        value = self.value
        match self.operator:
            case "=":
                interval = point(value)
            case "<":
                interval = Interval(LOWEST, before(value))
            case "<=":
                interval = Interval(LOWEST, after(value))
            case ">":
                interval = Interval(after(value), HIGHEST)
            case ">=":
                interval = Interval(before(value), HIGHEST)
            case _:
                interval = Interval(before(value), after(self.high))
        return Range((self.name,), Axis.NUMBER, interval)


@dataclass(frozen=True, slots=True)
class Population:
    """All filters and events that may come, and how often each does."""

    name_distribution: Distribution = Distribution.UNIFORM
    value_distribution: Distribution = Distribution.UNIFORM
    names: int = 100
    constraints: tuple[int, int] = (2, 8)
    """The fewest and the most constraints in a filter; the count is normally distributed between them."""
    attributes: tuple[int, int] = (2, 12)
    """The fewest and the most attributes in an event."""
    decimals: int = 1
    operators: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    """How often each of `OPERATORS` comes, against the others."""

    def filters(self, random: Random) -> Iterator[str]:
        """Filters as SQL texts, without an end; one may come twice."""
        for conditions in self.conditions(random):
            yield " AND ".join(each.text() for each in conditions)

    def routing_filters(self, random: Random) -> Iterator[Filter]:
        """The same filters as routing has them."""
        for conditions in self.conditions(random):
            made = conjoin(each.constraint() for each in conditions)
            assert not isinstance(made, Contradiction), "different names cannot contradict each other"
            yield made

    def events(self, random: Random) -> Iterator[dict[str, JsonValue]]:
        """Events, without an end."""
        while True:
            names = self._names(random, _count(random, *self.attributes))
            yield {name: self._value(random) for name in names}

    def conditions(self, random: Random) -> Iterator[tuple[Condition, ...]]:
        """Filters as their conditions, without an end."""
        weights = list(accumulate(self.operators))
        while True:
            names = self._names(random, _count(random, *self.constraints))
            yield tuple(self._condition(random, name, weights) for name in names)

    def _condition(self, random: Random, name: str, weights: list[float]) -> Condition:
        (operator,) = random.choices(OPERATORS, cum_weights=weights)
        value = self._value(random)
        other = self._value(random) if operator == BETWEEN else value
        return Condition(name, operator, min(value, other), max(value, other))

    def _names(self, random: Random, count: int) -> list[str]:
        """Different names, in the order drawn."""
        digits = len(str(self.names - 1))
        drawn: dict[int, None] = {}
        while len(drawn) < count:
            drawn[int(self.name_distribution.draw(random) * self.names)] = None
        return [f"n{number:0{digits}}" for number in drawn]

    def _value(self, random: Random) -> float:
        drawn = round(BOUND * (2 * self.value_distribution.draw(random) - 1), self.decimals)
        return drawn + 0.0  # never -0.0


def _count(random: Random, fewest: int, most: int) -> int:
    """A normally distributed whole number, both ends included and alike."""
    return fewest + int(Distribution.GAUSSIAN.draw(random) * (most - fewest + 1))
