"""Book auctions: events of ten attributes, and three classes of Boolean subscriptions to them.

The paper on pruning measured with such classes, of which it tells the number of predicates and operators: 6
with 3 AND and 1 OR, 12 with 8 AND and 2 OR, 7 with 3 AND and 3 OR. It says neither which attributes they are
about nor how values are distributed, but that those of subscriptions are random and those of events are as
at auctions. What is chosen here: titles and authors are many, each as frequent as the next, so that most
subscriptions match few events; of publishers, formats, conditions and languages few are frequent among
events, and so are small prices, bids and numbers of pages. Subscribers ask for each value equally often.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from random import Random

from branchline.routing.boolean.trees import Node, conjunction, disjunction, tree_of
from branchline.routing.expression import Comparison
from branchline.routing.values import JsonValue, Operator

_MANY = {"title": 500_000, "author": 100_000}
_WORDS = {"publisher": 400, "format": 6, "condition": 5, "language": 8}
_NUMBERS = {"price": 200, "bids": 40, "pages": 1_200, "hours": 240}
_SKEW = 2.0
"""Of events: the larger, the more frequent are the first words and small numbers."""

_EQ, _LE, _GE = Operator.EQ, Operator.LE, Operator.GE


def _value(random: Random, name: str, skew: float = 1.0) -> str | int:
    """A value of an attribute, each as frequent as the next, or the first ones more."""
    if name in _MANY:
        return f"{name} {random.randrange(_MANY[name])}"
    drawn = random.random() ** skew
    if name in _WORDS:
        return f"{name} {int(_WORDS[name] * drawn)}"
    return int(_NUMBERS[name] * drawn)


def events(random: Random) -> Iterator[dict[str, JsonValue]]:
    """Auctions as they come in, without an end."""
    names = (*_MANY, *_WORDS, *_NUMBERS)
    while True:
        yield {name: _value(random, name, _SKEW) for name in names}


@lru_cache(maxsize=1_000_000)
def _predicate(name: str, operator: Operator, value: str | int) -> Node:
    return tree_of(Comparison((name,), operator, value)).root


def _asked(random: Random, name: str, operator: Operator = _EQ) -> Node:
    return _predicate(name, operator, _value(random, name))


def _first(random: Random) -> Node:
    """In a language: by an author up to a price, or a title in a condition up to so many bids."""
    by_author = conjunction([_asked(random, "author"), _asked(random, "price", _LE)])
    by_title = conjunction(
        [_asked(random, "title"), _asked(random, "condition"), _asked(random, "bids", _LE)]
    )
    return conjunction([_asked(random, "language"), disjunction([by_author, by_title])])


def _second(random: Random) -> Node:
    """By one of two authors, in one of two formats, and much more."""
    ranges = []
    for name in ("price", "pages"):
        ends = sorted(int(_value(random, name)) for _ in range(2))
        ranges += [_predicate(name, _GE, ends[0]), _predicate(name, _LE, ends[1])]
    return conjunction(
        [
            disjunction([_asked(random, "author"), _asked(random, "author")]),
            disjunction([_asked(random, "format"), _asked(random, "format")]),
            _asked(random, "language"),
            _asked(random, "condition"),
            *ranges,
            _asked(random, "bids", _LE),
            _asked(random, "hours", _LE),
        ]
    )


def _third(random: Random) -> Node:
    """A title or anything of an author, in a format or condition, cheap or with few bids, in a language."""
    return conjunction(
        [
            disjunction([_asked(random, "title"), _asked(random, "author")]),
            disjunction([_asked(random, "format"), _asked(random, "condition")]),
            disjunction([_asked(random, "price", _LE), _asked(random, "bids", _LE)]),
            _asked(random, "language"),
        ]
    )


_CLASSES: Mapping[str, tuple[Callable[[Random], Node], ...]] = {
    "1": (_first,),
    "2": (_second,),
    "3": (_third,),
    "1-3": (_first, _second, _third),
}
CLASSES = tuple(_CLASSES)


def subscriptions(random: Random, kind: str) -> Iterator[Node]:
    """Subscriptions of a class, or of all, without an end."""
    while True:
        yield random.choice(_CLASSES[kind])(random)
