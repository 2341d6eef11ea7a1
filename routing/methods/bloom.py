"""Bloom filter routing: an event's Bloom filter travels, and others look up whose bits are all set in it.

Theory of operation. Where an event enters, its content is matched as the chosen matching does it. If a copy
goes on, the event's Bloom filter is made once (`bloom/bfposet.py`): it has the bits of every constraint that
the event satisfies, of all that this broker knows. It travels with the copies, as does a digest of those that
may hold for its attributes. A broker that knows the same of them finds by these bits alone who may want the
event, in a bftree or, with `bloom-sbstree`, in an sbstree. `bloom(n)` has Bloom filters of two to the power
of n bits.

Why nothing is lost. A broker finds whoever it would find by matching the content itself. If the digest is
its own, every constraint here that the event can satisfy was known where the Bloom filter was made: if it
satisfies all of a filter's, all their bits are set. If the digest is another one, or the size is, or nothing
is told, because the copy came from another method or its Bloom filter was too long, the content is matched,
which is counted; and the copies that go on from there carry a Bloom filter of that broker's. So brokers may
join, start anew with other methods or hear of filters late: until they know the same, they match.

Whoever is found by bits is in doubt, since bits of other constraints may have set all of them. The last
broker checks; between brokers, a copy for nothing is what it costs.

What is found and written hangs on the interests in force and on nothing else, in no way on those of before.

Cost: where an event enters, the match, and for copies the bfposet; elsewhere the look-up. While brokers know
different constraints on an event's attributes, a match at each that differs from the one before it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from branchline.routing.bloom.bfposet import BfPoset
from branchline.routing.bloom.bftree import BfTree
from branchline.routing.bloom.bits import Shape
from branchline.routing.bloom.sbstree import SbsTree
from branchline.routing.bloom.travelling import UNTOLD, EventBits
from branchline.routing.event import Event
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.protocols import Forwarding, Interest, Matching, Sought
from branchline.routing.methods.words import named
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Prefix, Trees

ENTERED = Prefix((), bloom=UNTOLD)
"""What an event begins with: nothing is known of what it satisfies, and everything is matched."""


class Lookup(Protocol):
    """Owners by the Bloom filters of what they ask for."""

    def add(self, bits: Collection[int], owner: Owner) -> None:
        """The owner asks for what has these bits, ascending, for one reason more."""
        ...

    def remove(self, bits: Collection[int], owner: Owner) -> None:
        """For one reason less."""
        ...

    def find(self, bits: Collection[int]) -> Iterator[Mapping[Owner, int]]:
        """The owners of all Bloom filters that have no other bits than these."""
        ...

    def describe(self) -> str:
        """How large it is, for people."""
        ...


@dataclass(slots=True)
class Matched(Found):
    """Who is interested, and the event if its content was looked at: what travels is then made of it."""

    event: Event | None = None
    made: Prefix | None = None


class BloomForwarding:
    """One broker's constraints and Bloom filters, and its matching for when no bits tell."""

    def __init__(self, matching: Matching, lookup: Lookup, shape: Shape) -> None:
        self._matching = matching
        self.lookup = lookup
        self.poset = BfPoset(shape)

    def stored(self) -> None:
        return None

    def add(self, interest: Interest) -> None:
        self._matching.add(interest)
        for filter_ in interest.compiled.cover:
            self.poset.add(filter_)
            self.lookup.add(self.poset.bits(filter_), interest.owner)

    def remove(self, interest: Interest) -> None:
        self._matching.remove(interest)
        for filter_ in interest.compiled.cover:
            self.lookup.remove(self.poset.bits(filter_), interest.owner)
            self.poset.remove(filter_)

    def enter(self, event: Event) -> Prefix:
        return ENTERED

    def find(self, prefix: Prefix, event: Event, wanted: Sought | None = None) -> Matched:
        """By bits if they tell, else by content."""
        told = prefix.bloom
        if told is not None and self.poset.tells(told):
            return self._look_up(told, wanted)
        matched = self._matching.match(event, wanted)
        found = Matched(matched.certain, matched.doubtful, 1, counts=matched.counts, event=event)
        if told is not None and told.size:
            found.counts["bloom_differed"] = 1
        return found

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        """The Bloom filter as it came, or that of this broker, if it has looked at the content."""
        assert isinstance(found, Matched), "what is asked about was found here"
        if found.event is None:
            return prefix
        if found.made is None:
            told = self.poset.told(found.event)
            found.made = Prefix((), bloom=told)
            found.counts["bloom_made"] = 1
            found.counts["bloom_bits"] = len(told.bits)
        return found.made

    def describe(self) -> str:
        """The size of what is looked up, and the constraints, each further in than one that covers it."""
        return f"{self.lookup.describe()}, {len(self.poset)} constraints:\n{self.poset.describe()}"

    def _look_up(self, told: EventBits, wanted: Sought | None) -> Matched:
        found = Matched()
        known = found.doubtful
        for owners in self.lookup.find(told.bits):
            more = owners.keys() - known
            if wanted is not None:
                more = {owner for owner in more if owner in wanted}
            if more:
                known |= more
                if wanted is not None and wanted.enough(found):
                    break
        found.counts["bloom_led"] = 1
        # Neighbours are counted: which of their homes is found first hangs on the order in which those came.
        hops = {} if wanted is None else wanted.hops
        found.counts["bloom_found"] = len({hops.get(owner, owner) for owner in known})  # type: ignore[call-overload]
        return found


def make(number: int | None, methods: Methods, trees: Trees, stored: Sequence[memoryview]) -> Forwarding:
    """Bloom filters of so many bits, looked up in the structure that the name says."""
    chosen = named(methods.forwarding)
    assert chosen is not None, "a configuration was checked before"
    shape = Shape() if number is None else Shape(number)
    lookup = SbsTree(shape) if chosen.name == "bloom-sbstree" else BfTree(shape)
    return BloomForwarding(make_matching(methods, trees), lookup, shape)
