"""Book auctions: events of ten attributes, and three classes of Boolean subscriptions to them.

The paper on pruning measured with such classes, of which it tells the number of predicates and operators: 6
with 3 AND and 1 OR, 12 with 8 AND and 2 OR, 7 with 3 AND and 3 OR. It says neither which attributes they are
about nor how values are distributed, but that those of subscriptions are random and those of events are as
at auctions. What is chosen here: a *market* has more or fewer titles, authors and publishers. Few of
its words are frequent among events, and so are small prices, bids and numbers of pages. Subscribers ask for
any number, and for words as the market says:

- WIDE, for pruning: titles and authors are many, each as frequent as the next, and any word is asked for as
  often as another, so that most subscriptions match few events;
- NARROW, where subscriptions are to have something in common: words are fewer, and asked for as they are
  sold, since who looks for a book looks for one that there is.

A subscription in *conjunctive* form has the first of each pair of alternatives only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from random import Random

from branchline.routing.boolean.trees import Node, conjunction, disjunction, tree_of
from branchline.routing.expression import And, Comparison, Expression, Or
from branchline.routing.values import JsonValue, Operator


class Form(StrEnum):
    """Whether subscriptions have alternatives."""

    CONJUNCTIVE = "conjunctive"
    BOOLEAN = "boolean"


_FEW = {"format": 6, "condition": 5, "language": 8}
_NUMBERS = {"price": 200, "bids": 40, "pages": 1_200, "hours": 240}
_EQ, _LE, _GE = Operator.EQ, Operator.LE, Operator.GE


@dataclass(frozen=True, slots=True)
class Market:
    """How many of what there is, and what is frequent: the larger a skew, the more so are the first ones."""

    titles: int
    authors: int
    publishers: int
    skew: float
    """Of events."""
    rare_skew: float
    """Of titles and authors among events."""
    asked_skew: float
    """Of words among subscriptions."""

    def sold(self, random: Random) -> dict[str, JsonValue]:
        """An event."""
        made: dict[str, JsonValue] = {}
        for name, count in self._words.items():
            skew = self.rare_skew if name in ("title", "author") else self.skew
            made[name] = _word(random, name, count, skew)
        for name, most in _NUMBERS.items():
            made[name] = int(most * random.random() ** self.skew)
        return made

    def word(self, random: Random, name: str) -> Comparison:
        """One that is asked for."""
        return Comparison((name,), _EQ, _word(random, name, self._words[name], self.asked_skew))

    @property
    def _words(self) -> dict[str, int]:
        return {"title": self.titles, "author": self.authors, "publisher": self.publishers, **_FEW}


WIDE = Market(500_000, 100_000, 400, 2.0, 1.0, 1.0)
NARROW = Market(4_000, 800, 120, 2.4, 2.4, 2.4)
MARKETS: Mapping[str, Market] = {"wide": WIDE, "narrow": NARROW}


def _word(random: Random, name: str, count: int, skew: float) -> str:
    return f"{name} {int(count * random.random() ** skew)}"


def events(random: Random, market: Market) -> Iterator[dict[str, JsonValue]]:
    """Auctions as they come in, without an end."""
    while True:
        yield market.sold(random)


class _Draw:
    """Draws the predicates of one subscription."""

    def __init__(self, random: Random, market: Market, form: Form) -> None:
        self._random, self._market, self._form = random, market, form

    def word(self, name: str) -> Comparison:
        return self._market.word(self._random, name)

    def most(self, name: str) -> Comparison:
        return Comparison((name,), _LE, self._number(name))

    def between(self, name: str) -> tuple[Comparison, Comparison]:
        low, high = sorted(self._number(name) for _ in range(2))
        return Comparison((name,), _GE, low), Comparison((name,), _LE, high)

    def either(self, one: Expression, other: Expression) -> Expression:
        """Both as alternatives; only the first in conjunctive form. Both are drawn in any case."""
        return Or((one, other)) if self._form is Form.BOOLEAN and one != other else one

    def _number(self, name: str) -> int:
        return int(_NUMBERS[name] * self._random.random())


def _first(draw: _Draw) -> Expression:
    """In a language: by an author up to a price, or a title in a condition up to so many bids."""
    by_author = And((draw.word("author"), draw.most("price")))
    by_title = And((draw.word("title"), draw.word("condition"), draw.most("bids")))
    return And((draw.word("language"), draw.either(by_author, by_title)))


def _second(draw: _Draw) -> Expression:
    """By one of two authors, in one of two formats, and much more."""
    return And(
        (
            draw.either(draw.word("author"), draw.word("author")),
            draw.either(draw.word("format"), draw.word("format")),
            draw.word("language"),
            draw.word("condition"),
            *draw.between("price"),
            *draw.between("pages"),
            draw.most("bids"),
            draw.most("hours"),
        )
    )


def _third(draw: _Draw) -> Expression:
    """A title or anything of an author, in a format or condition, cheap or with few bids, in a language."""
    return And(
        (
            draw.either(draw.word("title"), draw.word("author")),
            draw.either(draw.word("format"), draw.word("condition")),
            draw.either(draw.most("price"), draw.most("bids")),
            draw.word("language"),
        )
    )


_CLASSES: Mapping[str, tuple[Callable[[_Draw], Expression], ...]] = {
    "1": (_first,),
    "2": (_second,),
    "3": (_third,),
    "1-3": (_first, _second, _third),
}
CLASSES = tuple(_CLASSES)


def subscriptions(
    random: Random, market: Market, kind: str = "1-3", form: Form = Form.BOOLEAN
) -> Iterator[Expression]:
    """Subscriptions of a class, or of all, without an end. None is a contradiction."""
    while True:
        yield random.choice(_CLASSES[kind])(_Draw(random, market, form))


def tree(subscription: Expression) -> Node:
    """What `tree_of` makes of a subscription; each predicate is made once. No deeper than classes are."""
    match subscription:
        case And(terms):
            return conjunction(map(tree, terms))
        case Or(terms):
            return disjunction(map(tree, terms))
        case predicate:
            return _predicate(predicate)


@lru_cache(maxsize=1_000_000)
def _predicate(predicate: Expression) -> Node:
    return tree_of(predicate).root
