"""A router's table in two parts: a forest for its clients and a poset for its neighbours.

Theory of operation. In a poset an unsubscription ends all that its filter covers from that source, so a
client that ends one of its subscriptions would lose others. Clients are therefore kept in a plain forest,
where each subscription stands until it ends. The forest's roots are the minimal cover of what clients want,
and they are what the poset knows of all of them, as subscriptions of one source, `HERE`. So a client that
comes or goes concerns the poset only if the roots change, and a forest is quick.

What is to be told to neighbours is kept, and each change gives the difference: a `Letter` for each neighbour,
with what ends and what begins. Whoever obeys it, ends first, knows just what it should. A filter that a new
one covers is not ended: the new one puts an end to it where it arrives.

Cost: beside those of forest and poset, each change that reaches the poset looks at its roots for each
neighbour.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from branchline.routing.filters import Filter, covers
from branchline.routing.posets.forest import Forest
from branchline.routing.posets.graph import Source
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe, told, unsubscribe

HERE: Final = "here"
"""All clients together, as a source of the poset."""


class Letter(NamedTuple):
    """What a neighbour is told after a change."""

    ended: tuple[Filter, ...]
    begun: tuple[Filter, ...]


class Combined:
    """Clients and neighbours of one router, and what each neighbour has been told."""

    def __init__(self, neighbours: Iterable[str]) -> None:
        self.clients = Forest()
        self.others = Poset()
        self._roots: dict[int, Filter] = {}
        """The roots of the forest that the poset has."""
        self._told: dict[str, set[Filter]] = {each: set() for each in neighbours}
        assert HERE not in self._told, "a neighbour needs another name"

    def told(self, neighbour: str) -> frozenset[Filter]:
        """All that the neighbour has been told of and that stands."""
        return frozenset(self._told[neighbour])

    def subscribe_here(self, filter_: Filter, client: Source) -> dict[str, Letter]:
        """A client asks for a filter."""
        self.clients.subscribe(filter_, client)
        return self._after_here()

    def unsubscribe_here(self, filter_: Filter, client: Source) -> dict[str, Letter]:
        """A client no longer asks for just this filter."""
        self.clients.unsubscribe(filter_, client)
        return self._after_here()

    def subscribe(self, filter_: Filter, neighbour: str) -> dict[str, Letter]:
        """A neighbour asks for a filter."""
        return self._after() if subscribe(self.others, filter_, neighbour).changed else {}

    def unsubscribe(self, filter_: Filter, neighbour: str) -> dict[str, Letter]:
        """A neighbour wants nothing any more that the filter covers."""
        return self._after() if unsubscribe(self.others, filter_, neighbour) else {}

    def _after_here(self) -> dict[str, Letter]:
        known, roots = self._roots, self.clients.roots
        if known.keys() == roots:
            return {}
        for number in sorted(known.keys() - roots):
            unsubscribe(self.others, known.pop(number), HERE)
        for number in sorted(roots - known.keys()):
            known[number] = self.clients.entry(number).filter
            subscribe(self.others, known[number], HERE)
        return self._after()

    def _after(self) -> dict[str, Letter]:
        letters = {}
        for neighbour, known in self._told.items():
            wanted = told(self.others, neighbour)
            letter = _difference(known, wanted)
            self._told[neighbour] = wanted
            if letter.ended or letter.begun:
                letters[neighbour] = letter
        return letters

    def describe(self) -> str:
        """Both parts, and how much each neighbour has been told."""
        lines = ["clients:", *_indented(self.clients.describe()), "neighbours:"]
        lines += _indented(self.others.describe())
        return "\n".join([*lines, *(f"{each} is told {len(known)}" for each, known in self._told.items())])


def _difference(known: set[Filter], wanted: set[Filter]) -> Letter:
    begun = wanted - known
    ended = {each for each in known - wanted if not any(covers(other, each) for other in begun)}
    return Letter(tuple(sorted(ended, key=repr)), tuple(sorted(begun, key=repr)))


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
