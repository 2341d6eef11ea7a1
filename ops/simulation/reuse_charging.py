"""Indexes side by side in one network: what they find is known beforehand, and what a match takes is charged.

All events that come to a broker are matched together (`reuse_indexes.py`). What an index finds is compared
with what the ranges say; from then on that is what brokers are told, and of each index what a match took is
charged. So one run through the network gives the figures of all indexes.

They are over all homes, as a broker of ours has it; or *by link*: a broker has one for each neighbour, of
what is behind it, and asks those alone that it must. An index of nearly all subscriptions would take about
what that of all takes, and is charged that.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from time import process_time_ns

import numpy as np

from branchline.ops.simulation.reuse_indexes import MAKERS, Index, Maker
from branchline.ops.simulation.reuse_kits import ELSEWHERE, HERE, Costs, Kit, LiveKit, Standing, Watch
from branchline.ops.simulation.reuse_world import World
from branchline.routing.event import Event
from branchline.routing.methods.protocols import Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner

BY_LINK = ", by link"
NEARLY_ALL = 0.8
"""Of all subscriptions, from which on an index is charged as the one of all."""


class ChargedKit:
    """Indexes over all homes and by link, that have matched all events beforehand."""

    def __init__(self, world: World, matchings: Sequence[str]) -> None:
        self.world, self.matchings = world, matchings
        self.numbers = {id(event): number for number, event in enumerate(world.events)}
        by_link = [each.endswith(BY_LINK) for each in matchings]
        self._whole, self._by_link = [not each for each in by_link], by_link
        names = [each.removesuffix(BY_LINK) for each in matchings]
        prices = {each: _Prices(world, MAKERS[each](world.events)) for each in dict.fromkeys(names)}
        self._prices = [prices[each] for each in names]
        visits = world.visits()
        self.all = self._costs(self._whole, _Prices.every, None, [*range(len(world.events))])
        """Of all that matches, in an index of all homes."""
        self.own: dict[str, Costs] = {}
        self.hop: dict[tuple[str, str | None], Costs] = {}
        """Of the hops that an event goes on to, by where it comes from; in an index of all homes."""
        self.behind: dict[tuple[str, str], tuple[Costs, Costs]] = {}
        """By link: of all that matches behind it, and of whether anything does."""
        for (name, before), events in visits.items():
            self.hop[name, before] = self._costs(self._whole, _Prices.hops, name, before, events)
        for name in sorted({name for name, _ in visits}):
            events = sorted(each for place, some in visits.items() if place[0] == name for each in some)
            self.own[name] = self._costs(None, _Prices.every, frozenset({name}), events)
            for hop in world.topology.neighbours(name):
                asked = sorted(set(events) - set(visits.get((name, hop), ())))
                if asked:
                    self.behind[name, hop] = self._link(world.behind(name, hop), asked)

    def _link(self, homes: frozenset[str], events: list[int]) -> tuple[Costs, Costs]:
        return (
            self._costs(self._by_link, _Prices.every, homes, events),
            self._costs(self._by_link, _Prices.any, homes, events),
        )

    def _costs(self, which: Sequence[bool] | None, price: Callable[..., int], *asked: object) -> Costs:
        """What it costs with each index that is asked; nothing with the others."""
        chosen = which or [True] * len(self._prices)
        # Over all homes and by link an index is the same, and asked once.
        costs = {each: price(each, *asked) for each in dict.fromkeys(compress(self._prices, chosen))}
        return np.array(
            [costs[each] if is_asked else 0 for each, is_asked in zip(self._prices, chosen, strict=True)]
        )

    def here(self, name: str, watch: Watch) -> Matching:
        return _Here(self, name, watch)

    def elsewhere(self, name: str, watch: Watch) -> Matching:
        return _Elsewhere(self, name, watch)

    def hops(self, name: str, watch: Watch) -> Matching:
        return _Hops(self, name, watch)


class _Prices:
    """What matches take with one kind of index; what they find is what the ranges say."""

    def __init__(self, world: World, maker: Maker) -> None:
        self._world, self._maker = world, maker
        self._filters = [compiled.cover[0] for compiled in world.compiled]
        self._all = maker.index(self._filters)
        self._last: tuple[frozenset[str] | None, tuple[Index, Sequence[int]]]
        self._last = None, (self._all, range(len(self._filters)))
        self._every_of_all = self.every(None, [*range(len(world.events))])

    def every(self, homes: frozenset[str] | None, events: list[int]) -> int:
        """Of a match that finds all subscriptions of these homes, or of all."""
        index, numbers = self._index(homes)
        if index is self._all and homes is not None:
            return self._every_of_all
        charged = index.every(events)
        are = set(numbers)
        expected = [are.intersection(self._world.wanted[event]) for event in events]
        assert [{numbers[each] for each in found} for found in charged.found] == expected
        return charged.ns

    def any(self, homes: frozenset[str], events: list[int]) -> int:
        """Of a match that finds whether there is one of these homes."""
        index, numbers = self._index(homes)
        here = self._world.homes
        charged = index.groups(events, [int(here[each] in homes) for each in numbers], frozenset({0}))
        expected = [not homes.isdisjoint(self._world.asking[event]) for event in events]
        assert [bool(found) for found in charged.found] == expected
        return charged.ns

    def hops(self, name: str, before: str | None, events: list[int]) -> int:
        """Of a match that finds the neighbours that an event goes on to, of one that comes from another."""
        world, hops = self._world, self._world.positions[name].routes.hops
        places = {each: place for place, each in enumerate(world.topology.neighbours(name))}
        of = {home: places[hops[home]] if home != name else -1 for home in world.names}
        group = [of[home] for home in world.homes]
        closed = frozenset({-1} if before is None else {-1, places[before]})
        charged = self._all.groups(events, group, closed)
        expected = [{of[home] for home in world.asking[event]} - closed for event in events]
        assert list(map(set, charged.found)) == expected
        return charged.ns

    def _index(self, homes: frozenset[str] | None) -> tuple[Index, Sequence[int]]:
        """An index of what these homes ask for, and which subscriptions it is of."""
        if homes == self._last[0]:
            return self._last[1]
        count = len(self._filters)
        chosen = [number for number, home in enumerate(self._world.homes) if homes is None or home in homes]
        made: tuple[Index, Sequence[int]] = (self._all, range(count))
        if len(chosen) <= NEARLY_ALL * count:
            made = self._maker.index([self._filters[each] for each in chosen]), chosen
        self._last = homes, made
        return made


class _Told(Standing):
    """A matching of one broker that is told what there is to find, while nobody's time passes."""

    def __init__(self, kit: ChargedKit, name: str, watch: Watch) -> None:
        self._kit, self._name, self._watch, self._world = kit, name, watch, kit.world
        self._hops = kit.world.positions[name].routes.hops

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        started_ns = process_time_ns()
        found = Found(set(self._found(self._kit.numbers[id(event.attributes)], wanted)))
        self._watch.aside += process_time_ns() - started_ns
        return found

    def _found(self, event: int, wanted: Wanted | None) -> Iterable[Owner]:
        raise NotImplementedError


class _Here(_Told):
    def _found(self, event: int, wanted: Wanted | None) -> Iterable[Owner]:
        self._watch.charge(HERE, self._kit.own[self._name])
        identities = self._world.identities
        return [identities[each] for each in self._world.asking[event].get(self._name, ())]


class _Elsewhere(_Told):
    """All subscriptions behind links that no key leads to."""

    def _found(self, event: int, wanted: Wanted | None) -> Iterable[Owner]:
        hops = {*wanted.wanted.hops.values()} - wanted.led  # type: ignore[union-attr]
        costs = [self._kit.behind[self._name, hop][0] for hop in hops]
        self._watch.charge(ELSEWHERE, sum(costs, self._kit.all))
        asking, identities = self._world.asking[event], self._world.identities
        homes = [home for home in asking if self._hops.get(home) in hops]
        return [identities[each] for home in homes for each in asking[home]]


class _Hops(_Told):
    """Neighbours behind whom a subscription matches."""

    def _found(self, event: int, wanted: Wanted | None) -> Iterable[Owner]:
        hops = {*wanted.hops.values()}  # type: ignore[union-attr]
        before = next((each for each in self._hops.values() if each not in hops), None)
        costs = [self._kit.behind[self._name, hop][1] for hop in hops]
        self._watch.charge(ELSEWHERE, sum(costs, self._kit.hop[self._name, before]))
        return hops.intersection(map(self._hops.get, self._world.asking[event]))


def make_kits(world: World, matchings: Sequence[str]) -> list[Kit]:
    """Kits that have these matchings: one for all of `MAKERS`, by link or not, and one for each other."""
    charged = [each for each in matchings if each.removesuffix(BY_LINK) in MAKERS]
    kits: list[Kit] = [ChargedKit(world, charged)] if charged else []
    return kits + [LiveKit(world, each) for each in matchings if each not in charged]
