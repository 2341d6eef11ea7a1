"""Book auctions: events of ten attributes, and three classes of subscriptions to them.

The paper on pruning measured with such events and subscriptions. It gives the shapes of the classes, and
neither their attributes nor how values are distributed. What is chosen here:

- a title, an author, a publisher, a format, a condition and a language, each of a vocabulary of its own in
  which few are frequent; a price, bids and pages, of which small ones are frequent; and the hours until the
  end;
- what subscribers ask for is distributed as what there is: who looks for a book looks for one that is sold;
- class 1 has 6 predicates, of which two are alternatives; class 2 has 12, with two pairs of alternatives;
  class 3 has 7, with three pairs.

A subscription in *conjunctive* form has the first of each pair of alternatives only.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from random import Random
from typing import TypeAlias

from branchline.routing.expression import And, Comparison, Expression, Or
from branchline.routing.values import JsonValue, Operator


class Form(StrEnum):
    """Whether subscriptions have alternatives."""

    CONJUNCTIVE = "conjunctive"
    BOOLEAN = "boolean"


_WORDS = {"title": 4_000, "author": 800, "publisher": 120, "format": 6, "condition": 5, "language": 8}
"""Of texts: how many there are."""
_NUMBERS = {"price": 200, "bids": 40, "pages": 1_200}
"""Of numbers: the largest. The lower half of them is about as frequent as three quarters of all."""
_HOURS = 240
_SKEW = 2.4


def _value(random: Random, name: str) -> str | int:
    """A value of an attribute, as events have it and subscribers ask for it."""
    if name in _WORDS:
        return f"{name}-{int(_WORDS[name] * random.random() ** _SKEW)}"
    if name in _NUMBERS:
        return int(_NUMBERS[name] * random.random() ** _SKEW)
    return random.randrange(_HOURS)


def events(random: Random) -> Iterator[dict[str, JsonValue]]:
    """Auctions as they come in, without an end."""
    names = (*_WORDS, *_NUMBERS, "hours")
    while True:
        yield {name: _value(random, name) for name in names}


Part: TypeAlias = Comparison | Or


class _Draw:
    """Draws the predicates of one subscription."""

    def __init__(self, random: Random, form: Form) -> None:
        self._random, self._form = random, form

    def equal(self, name: str) -> Comparison:
        return Comparison((name,), Operator.EQ, _value(self._random, name))

    def below(self, name: str) -> Comparison:
        """At most what another would pay, or have: that much and some more."""
        return Comparison((name,), Operator.LE, self._number(name) + 5)

    def above(self, name: str) -> Comparison:
        return Comparison((name,), Operator.GE, self._number(name) // 2)

    def _number(self, name: str) -> int:
        found = _value(self._random, name)
        assert isinstance(found, int)
        return found

    def either(self, one: Comparison, other: Comparison) -> Part:
        """Both as alternatives; only the first in conjunctive form. Both are drawn in any case."""
        return Or((one, other)) if self._form is Form.BOOLEAN and one != other else one


def _first(draw: _Draw) -> tuple[Part, ...]:
    return (
        draw.equal("author"),
        draw.below("price"),
        draw.below("bids"),
        draw.equal("condition"),
        draw.either(draw.equal("format"), draw.equal("format")),
    )


def _second(draw: _Draw) -> tuple[Part, ...]:
    return (
        draw.either(draw.equal("author"), draw.equal("publisher")),
        draw.either(draw.equal("format"), draw.equal("format")),
        draw.equal("language"),
        draw.equal("condition"),
        draw.above("price"),
        draw.below("price"),
        draw.below("bids"),
        draw.above("pages"),
        draw.below("pages"),
        draw.below("hours"),
    )


def _third(draw: _Draw) -> tuple[Part, ...]:
    return (
        draw.either(draw.equal("title"), draw.equal("author")),
        draw.either(draw.equal("format"), draw.equal("condition")),
        draw.either(draw.below("price"), draw.below("bids")),
        draw.equal("language"),
    )


CLASSES: tuple[Callable[[_Draw], tuple[Part, ...]], ...] = (_first, _second, _third)


def subscriptions(random: Random, form: Form) -> Iterator[Expression]:
    """Subscriptions of all classes in turn, without an end. None is a contradiction."""
    while True:
        for parts in CLASSES:
            made = parts(_Draw(random, form))
            if not _is_contradiction(made):
                yield And(made)


def _is_contradiction(parts: tuple[Part, ...]) -> bool:
    """Whether a number would have to be above another that it is below."""
    single = [part for part in parts if isinstance(part, Comparison)]
    lows = {part.path: part.value for part in single if part.operator is Operator.GE}
    highs = {part.path: part.value for part in single if part.operator is Operator.LE}
    return any(path in highs and lows[path] > highs[path] for path in lows)  # type: ignore[operator]
