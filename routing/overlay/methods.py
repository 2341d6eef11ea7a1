"""The methods that can be exchanged: how events are forwarded and matched, and who is told of a filter.

Each is a small protocol and a table of names, so that a configuration chooses and comparisons run on one
workload. *Forwarding* finds who is interested at a broker, from what travelled with the event: `prefix`
follows the result of the one content match, `rematch` matches at every broker. *Matching* is how content is
matched where `rematch` does it: `tree` against the Routing Tree, `table` by asking every filter.
*Dissemination* says which neighbours hear of a change: `simple` floods, all but the teller.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from branchline.routing.control import Ended, Subscribed
from branchline.routing.covers import Cover
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.forwarding import Forwarder, Found, Wanted
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import UNMATCHED, Prefix, Trees
from branchline.routing.prefix.vocabulary import KEPT_VERSIONS

BATCHES_FROM = 2_000
"""For fewer, asking one by one takes less than to make the arrays. What is delivered is the same."""


@dataclass(frozen=True, slots=True)
class Methods:
    """Which methods a job uses, and how."""

    forwarding: str = "prefix"
    matching: str = "tree"
    dissemination: str = "simple"
    parts: int = 1
    """Parts of the Routing Tree; as many as the Tree Optimizer has."""
    height: int | None = None
    """Levels of the Routing Tree that a content match goes down to; None for all."""
    kept_versions: int = KEPT_VERSIONS
    batches_from: int | None = BATCHES_FROM
    """Events that enter at a broker, or copies that come to it, times subscriptions, from which on they are
    routed as one batch; None for never, which shows what prefix forwarding alone does."""
    paper_delivery: bool = False
    """Deliver to whoever was found, checking nothing: shows what forwarding alone lets through."""


class Interested(Protocol):
    """Who is interested in what."""

    def subscribe(self, cover: Cover, owner: Owner) -> None:
        """The owner is interested in what the cover holds for."""
        ...

    def unsubscribe(self, cover: Cover, owner: Owner) -> None:
        """The owner is no longer interested in this; in the same for another reason it still may be."""
        ...


class Forwarding(Interested, Protocol):
    """How a broker finds who is interested in an event."""

    def stored(self) -> list[bytes] | None:
        """All that it was told of interests, as bytes; None if it cannot be opened again."""
        ...

    def enter(self, event: Event) -> Prefix:
        """What travels with an event from where it enters; unmatched, if nothing does."""
        ...

    def find(self, prefix: Prefix, event: Event, wanted: Wanted | None = None) -> Found:
        """Who of those wanted is interested. The event is looked at only to match it afresh."""
        ...


class Matching(Interested, Protocol):
    """How a broker matches an event's content."""

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        """Who of those wanted is interested."""
        ...


class TreeMatching(Forwarder):
    """Content is matched against the Routing Tree, and its places lead to the owners."""

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        return self.find(self.enter(event), event, wanted)


class TableMatching:
    """Every distinct filter is asked: O(filters) an event, and obviously right."""

    def __init__(self) -> None:
        self._owners: dict[Filter, dict[Owner, int]] = {}

    def subscribe(self, cover: Cover, owner: Owner) -> None:
        for filter_ in cover:
            owners = self._owners.setdefault(filter_, {})
            owners[owner] = owners.get(owner, 0) + 1

    def unsubscribe(self, cover: Cover, owner: Owner) -> None:
        for filter_ in cover:
            owners = self._owners[filter_]
            owners[owner] -= 1
            if not owners[owner]:
                del owners[owner]
                if not owners:
                    del self._owners[filter_]

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        found = Found()
        for filter_, owners in self._owners.items():
            if event.may_match((filter_,)):
                found.certain.update(each for each in owners if wanted is None or each in wanted)
        if event.met_array:
            found.certain, found.doubtful = set(), found.certain
        return found


class Rematch:
    """Nothing travels: the event is matched at every broker."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching

    def stored(self) -> None:
        return None

    def subscribe(self, cover: Cover, owner: Owner) -> None:
        self._matching.subscribe(cover, owner)

    def unsubscribe(self, cover: Cover, owner: Owner) -> None:
        self._matching.unsubscribe(cover, owner)

    def enter(self, event: Event) -> Prefix:
        return UNMATCHED

    def find(self, prefix: Prefix, event: Event, wanted: Wanted | None = None) -> Found:
        found = self._matching.match(event, wanted)
        found.afresh = 1
        return found


class Dissemination(Protocol):
    """Who is told of a change."""

    def tell(
        self, change: Subscribed | Ended, teller: str | None, neighbours: Sequence[str]
    ) -> Iterable[tuple[str, Subscribed | Ended]]:
        """To whom to tell what, now that this was learned from the teller, None for oneself."""
        ...

    def tell_all(self, known: Iterable[Subscribed | Ended]) -> Iterable[Subscribed | Ended]:
        """What to tell a new neighbour, of all that is known."""
        ...


class Simple:
    """All hear of everything: what a broker learns it tells every neighbour but the teller."""

    def tell(
        self, change: Subscribed | Ended, teller: str | None, neighbours: Sequence[str]
    ) -> Iterable[tuple[str, Subscribed | Ended]]:
        return ((neighbour, change) for neighbour in neighbours if neighbour != teller)

    def tell_all(self, known: Iterable[Subscribed | Ended]) -> Iterable[Subscribed | Ended]:
        return known


MATCHING: Mapping[str, Callable[[Trees], Matching]] = {
    "tree": TreeMatching,
    "table": lambda trees: TableMatching(),
}


class MakeForwarding(Protocol):
    """Makes a broker's forwarding; one that goes on from what it had stored, if that is given."""

    def __call__(self, methods: Methods, trees: Trees, stored: Sequence[memoryview] = ()) -> Forwarding: ...


FORWARDING: Mapping[str, MakeForwarding] = {
    "prefix": lambda methods, trees, stored=(): Forwarder(trees, stored),
    "rematch": lambda methods, trees, stored=(): Rematch(MATCHING[methods.matching](trees)),
}

DISSEMINATION: Mapping[str, Callable[[], Dissemination]] = {"simple": Simple}
