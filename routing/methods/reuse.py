"""Lookup reuse: keys of the subscriptions that matched travel with the event, and others look them up.

Theory of operation. Where an event enters, its content is matched against all subscriptions. The copy to a
neighbour carries the keys of those that matched behind it (`key_table.py`). With `always-reuse` these are
all; with `partial-reuse(n)` at most n, and a list that leaves any out is not *complete*.

A broker that gets a list looks its keys up. If the list is complete, and its keys stand here for what they
stood for where it was written, they say all: nothing is matched. Otherwise a neighbour to whom a key leads
needs a copy in any case; what is matched is the content for those to whom no key leads, and for all
subscriptions here. Which is what happens where an event enters: there is a list without keys.

Why nothing is lost. Whoever is owed an event has had its subscription known to all brokers before the event
was published; but filters that are replaced are others at one broker than at the next for a while. What is
owed throughout matches both. If the broker before has the old filter and this one the new, or the other way
round, the key that came is not what this one's table has: so the digest differs, and content is matched
here. If the digests are the same, both have the same filters for all that was named. What was not named
had not matched at the broker before, or was not known there: so it is not owed, whatever this broker knows.

Two subscriptions with the same key only add: copies go to both, and of subscriptions here that share a key
each is in doubt, which the last broker settles.

Which keys travel hangs on what is known and on nothing else: if there are too many, one of each home, then
a second one of each, the lowest first. So as many further links as can be are led by a key.

Cost: where a list says all, a look-up for each key; elsewhere that, and the matchings. Subscriptions here and
those elsewhere are matched apart, since a list that is not complete asks for the former alone, mostly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods.key_table import KeyTable
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.protocols import Forwarding, Interest, Matching, Sought
from branchline.routing.methods.words import named
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.keys import NO_KEYS, Keys
from branchline.routing.prefix.trees import Prefix, Trees

KEYS_PER_HOP = 80
"""Keys that go to one neighbour with partial-reuse, unless a number is given."""

ENTERED = Prefix((), keys=NO_KEYS)
"""What an event begins with: nothing is known of what it matches, and everything is matched."""


@dataclass(slots=True)
class Listed(Found):
    """Who is interested, with the keys that lead there."""

    lists: dict[str, dict[int, bool]] = field(default_factory=dict)
    """For each neighbour the keys that lead to it, and whether what they stand for matches for certain."""
    whole: set[str] | None = field(default_factory=set)
    """Neighbours behind whom nothing else matches; None for all of them."""

    def lead(self, to: str, key: int, certain: bool) -> None:
        """A key leads to a neighbour."""
        keys = self.lists.get(to)
        if keys is None:
            keys = self.lists[to] = {}
        keys[key] = certain and keys.get(key, True)


class Reuse:
    """One broker's keys, and its matchings for what no key tells."""

    def __init__(
        self,
        here: Matching,
        elsewhere: Matching,
        limit: int | None = None,
        *,
        completes: bool = True,
        table: KeyTable | None = None,
    ) -> None:
        """Lists of at most so many keys; without `completes`, none of them is ever called complete."""
        self.here, self.elsewhere = here, elsewhere
        self._limit, self._completes = limit, completes
        self.table = KeyTable() if table is None else table

    def stored(self) -> None:
        return None

    def add(self, interest: Interest) -> None:
        self.table.add(interest)
        self._matching(interest).add(Interest(interest.identity, interest.compiled, interest.identity))

    def remove(self, interest: Interest) -> None:
        self.table.remove(interest)
        self._matching(interest).remove(Interest(interest.identity, interest.compiled, interest.identity))

    def _matching(self, interest: Interest) -> Matching:
        return self.elsewhere if isinstance(interest.owner, str) else self.here

    def enter(self, event: Event) -> Prefix:
        return ENTERED

    def find(self, prefix: Prefix, event: Event, wanted: Sought | None = None) -> Listed:
        """By keys as far as they tell, then by content."""
        found = Listed()
        keys = NO_KEYS if prefix.keys is None else prefix.keys
        if self._look_up(keys, prefix.arrays, found, wanted) and keys.complete:
            found.whole = None
            found.counts["lists_complete"] = 1
        else:
            self._match(event, found, wanted)
        found.doubtful -= found.certain
        return found

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        """The keys that lead there; all of them, if there are not too many."""
        assert isinstance(found, Listed), "what is asked about was found here"
        keys = found.lists.get(to, {})
        chosen = keys if self._limit is None or len(keys) <= self._limit else self._chosen(keys, self._limit)
        is_all = len(chosen) == len(keys) and self._completes and (found.whole is None or to in found.whole)
        certain: list[int] = []
        doubtful: list[int] = []
        for key in sorted(chosen):
            (certain if keys[key] else doubtful).append(key)
        found.counts["keys_sent"] = found.counts.get("keys_sent", 0) + len(chosen)
        digest = self.table.digest(chosen) if is_all else None
        return Prefix((), keys=Keys(tuple(certain), tuple(doubtful), digest))

    def _look_up(self, keys: Keys, in_doubt: bool, found: Listed, wanted: Sought | None) -> bool:
        """Where the keys lead; whether they mean here what they meant where they were written.

        Only then do they tell of subscriptions here.
        """
        digest = unknown = used = 0
        certain_here: list[Identity] = []
        doubtful_here: list[Identity] = []
        look, hops = self.table.find, None if wanted is None else wanted.hops
        for listed, certain in ((keys.certain, not in_doubt), (keys.doubtful, False)):
            for key in listed:
                entry = look(key)
                if entry is None:
                    unknown += 1
                    continue
                digest ^= entry.check
                sure = certain and len(entry.known) == 1
                for known in entry.known:
                    owner = known.owner
                    if isinstance(owner, str):
                        to = owner if hops is None else hops.get(owner)
                        if to is None:
                            continue
                        (found.certain if sure else found.doubtful).add(owner)
                        found.lead(to, key, certain)
                    elif wanted is not None and owner not in wanted:
                        continue
                    else:
                        (certain_here if sure else doubtful_here).append(known.identity)
                    used += 1
        agrees = not unknown and digest == keys.digest
        if agrees:
            found.certain.update(certain_here)
            found.doubtful.update(doubtful_here)
        found.counts["keys_used"] = used
        found.counts["keys_unknown"] = unknown
        return agrees

    def _match(self, event: Event, found: Listed, wanted: Sought | None) -> None:
        """Match the content for all subscriptions here, and for neighbours to whom no key leads."""
        if wanted is None or wanted.local:
            found.afresh = 1
            here = self.here.match(event, wanted)
            found.certain |= here.certain
            found.doubtful |= here.doubtful
            _count(found, here)
        led = found.lists.keys()
        if wanted is not None and led >= set(wanted.hops.values()):
            return
        found.afresh = 1
        asked = _Elsewhere(self.table, wanted, frozenset(led))
        matched = self.elsewhere.match(event, asked)
        _count(found, matched)
        for owners, into, certain in (
            (matched.certain, found.certain, True),
            (matched.doubtful - matched.certain, found.doubtful, False),
        ):
            for identity in owners:
                assert isinstance(identity, Identity), "subscriptions elsewhere are matched one by one"
                key, owner = self.table.current(identity)
                assert isinstance(owner, str)
                into.add(owner)
                found.lead(owner if wanted is None else wanted.hops[owner], key, certain)
        found.whole = set(found.lists) - asked.led

    def _chosen(self, keys: Iterable[int], most: int) -> list[int]:
        """So many of the keys, of as many homes as can be."""
        by_home: dict[str, list[int]] = {}
        for key in sorted(keys):
            entry = self.table.find(key)
            assert entry is not None, "only what is known is sent on"
            by_home.setdefault(min(each.identity.home for each in entry.known), []).append(key)
        ranked = sorted((rank, key) for listed in by_home.values() for rank, key in enumerate(listed))
        return [key for _, key in ranked[:most]]


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """All subscriptions elsewhere behind neighbours to whom no key leads; there is never enough of them."""

    table: KeyTable
    wanted: Sought | None
    led: frozenset[str]

    def __contains__(self, identity: object) -> bool:
        assert isinstance(identity, Identity)
        owner = self.table.current(identity)[1]
        if self.wanted is None:
            return isinstance(owner, str) and owner not in self.led
        to = self.wanted.hops.get(owner) if isinstance(owner, str) else None
        return to is not None and to not in self.led

    def enough(self, found: Found) -> bool:
        return False


def _count(found: Listed, matched: Found) -> None:
    """What a matching did is told with what was found."""
    for name, count in matched.counts.items():
        found.counts[name] = found.counts.get(name, 0) + count


def make(number: int | None, methods: Methods, trees: Trees, stored: Sequence[memoryview]) -> Forwarding:
    """Lookup reuse with all keys or with some, by whatever method is chosen for matching."""
    chosen = named(methods.forwarding)
    assert chosen is not None, "a configuration was checked before"
    limit = None if chosen.name == "always-reuse" else KEYS_PER_HOP if number is None else number
    # Where not everybody is told of everything, nobody can name all.
    completes = not methods.on_tree
    return Reuse(make_matching(methods, trees), make_matching(methods, trees), limit, completes=completes)
