"""Where the filters of a broker stand in each version of one part that it keeps, and for whom.

Theory of operation. An FPT is stamped with the version that it was matched with, and a broker walks the tree
as it was then. So *places* are versioned too: every filter in force, also one that came later, has in every
version that is kept the place that descending gives it in the tree of that version, or its overflow number if
that version has the identical filter beside the tree. Otherwise events would be lost at every update: a
filter waits at the root, an event is stamped, the update moves the filter down, and the event finds it in
neither place.

A place is a node or a number, exact or not, and the clocks between which it holds. An update makes new places
for the filters that are outstanding (they stand higher than they should) and for those whose node it retires
or moves, or whose number it gives or takes; all others stay, and all earlier places stay too.

A filter stands once however many have it; they are counted, so that one who leaves takes nobody along.

Places that hold now and those that have ended stand apart, so that an event of the newest version looks only
at the former.

Places that were stored (`stored_places.py`) are read where they lie. A filter that a change concerns is taken
from there first, with its owners and all its places; from then on it stands here like any other.

Cost: a filter descends once for each version kept when it comes, and once more for each update that concerns
it. Finding is O(places found), forgetting O(places forgotten).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from branchline.routing.describing import describe_filter
from branchline.routing.filters import Filter
from branchline.routing.prefix.stored_places import Owner, PlacesRow, StoredPlaces
from branchline.routing.prefix.tree import ALIVE
from branchline.routing.prefix.vocabulary import Changes, Vocabulary, Where

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.interests import IndexedInterests
    from branchline.routing.compiled.paths import Paths

__all__ = ["Owner", "Places"]


@dataclass(slots=True, eq=False)
class _Stand:
    """A filter's place from one clock to another."""

    filter: Filter
    owners: Counter[Owner]
    """The owners of the filter: its own counter, so that they are found without looking it up."""
    where: Where
    exact: bool
    since: int
    until: int = ALIVE

    def __str__(self) -> str:
        place = f"node {self.where}" if self.where >= 0 else f"number {~self.where}"
        return place if self.exact else f"{place} (approximate)"


class Places:
    """The places of a broker's filters in one part."""

    def __init__(self, vocabulary: Vocabulary, stored: StoredPlaces | None = None) -> None:
        self._vocabulary = vocabulary
        self._stored = stored
        """What has not been taken from there yet stands as it was stored."""
        self._owners: dict[Filter, Counter[Owner]] = {}
        self._stands: dict[Filter, list[_Stand]] = {}
        self._at: dict[Where, set[_Stand]] = {}
        """The places that hold now."""
        self._past: dict[Where, set[_Stand]] = {}
        """Those that have ended and that a kept version still asks for."""
        self._ended: dict[int, list[_Stand]] = {}
        """The same by the clock of their end."""
        self._outstanding: set[Filter] = set()
        self._interests: IndexedInterests | None = None
        """The same filters for whole batches, once somebody has asked for it."""
        self.touched: set[Where] | None = None
        """Where those who stand now, or their owners, may have changed. Noted once somebody made it a set;
        whoever reads it empties it."""

    def __len__(self) -> int:
        """How many distinct filters stand here."""
        return len(self._owners) + (0 if self._stored is None else self._stored.left())

    def add(self, filter_: Filter, owner: Owner) -> None:
        """Somebody is interested, once more."""
        self._take(filter_)
        owners = self._owners.setdefault(filter_, Counter())
        owners[owner] += 1
        if self._interests is not None:
            if owners[owner] == 1:
                self._interests.joined(filter_, owners, owner)
            else:
                self._interests.again(owner)
        if filter_ not in self._stands:
            self._stands[filter_] = []
            for clock in self._vocabulary.clocks():
                self._stand(filter_, clock)
        self._touch(self._stands[filter_])

    def remove(self, filter_: Filter, owner: Owner) -> None:
        """Somebody is interested once less; who is not interested at all any more is forgotten."""
        self._take(filter_)
        owners = self._owners[filter_]
        owners[owner] -= 1
        if owners[owner]:
            return
        del owners[owner]
        if self._interests is not None:
            self._interests.left(filter_, owners, owner)
        self._touch(self._stands[filter_])
        if not owners:
            del self._owners[filter_]
            self._outstanding.discard(filter_)
            for stand in self._stands.pop(filter_):
                _leave(self._at if stand.until == ALIVE else self._past, stand)

    def changed(self, changes: Changes) -> None:
        """The vocabulary has gone on to a version: give places in it to the filters that it concerns."""
        clocks = self._vocabulary.clocks()
        self._take_concerned(changes, clocks[0])
        if changes.everything:
            for there in self._at.values():
                self._touch(there)
            for known in (self._at, self._past, self._ended, self._outstanding):
                known.clear()
            concerned = set(self._owners)
            self._stands = {filter_: [] for filter_ in concerned}
        else:
            concerned = self._outstanding | (changes.filters & self._owners.keys())
            for node in changes.nodes:
                concerned |= {stand.filter for stand in self._at.get(node, ())}
        for filter_ in concerned:
            self._stand(filter_, clocks[-1])
        self._forget(clocks[0])

    def interests(self, paths: "Paths") -> "IndexedInterests":
        """Who is interested in the events of a batch, wherever the filters stand."""
        from branchline.routing.compiled.interests import IndexedInterests

        if self._interests is None or self._interests.paths is not paths:
            self._interests = IndexedInterests(paths, self._stored)
            for filter_, owners in self._owners.items():
                for owner in owners:
                    self._interests.joined(filter_, owners, owner)
        return self._interests

    def find(self, where: Where, clock: int) -> Iterator[tuple[Filter, bool]]:
        """The filters that stand there at the clock, and whether exactly."""
        for stand in self._standing(where, clock):
            yield stand.filter, stand.exact
        if self._stored is not None:
            for row, exact in self._stored.standing(where, clock):
                yield self._stored.filter(row), exact

    def interested(self, where: Where, clock: int) -> Iterator[tuple[Collection[Owner], bool]]:
        """The owners of each filter that stands there at the clock, and whether it does exactly."""
        for stand in self._at.get(where, ()):
            if stand.since <= clock:
                yield stand.owners, stand.exact
        for stand in self._past.get(where, ()) if clock < self._vocabulary.version.clock else ():
            if stand.since <= clock < stand.until:
                yield stand.owners, stand.exact
        if self._stored is not None:
            for row, exact in self._stored.standing(where, clock):
                yield self._stored.owners(row), exact

    def now(self) -> Iterator[tuple[Where, Collection[Owner], bool]]:
        """Who stands where now, and whether exactly; without those who stand as they were stored."""
        for where, stands in self._at.items():
            for stand in stands:
                yield where, stand.owners, stand.exact

    def owners(self, filter_: Filter) -> Iterator[Owner]:
        self._take(filter_)
        return iter(self._owners[filter_])

    def describe(self) -> str:
        """The filters for people, each with its places now."""
        self._take_all()
        now = self._vocabulary.version.clock
        lines = []
        for filter_, stands in self._stands.items():
            present = [stand for stand in stands if stand.since <= now < stand.until]
            places = [str(stand) for stand in sorted(present, key=attrgetter("where"))]
            lines.append(f"{describe_filter(filter_)}: {', '.join(places)}")
        return "\n".join(sorted(lines))

    def rows(self) -> Iterator[PlacesRow]:
        """What there is to store of each filter."""
        for filter_, owners in self._owners.items():
            stands = [(each.where, each.exact, each.since, each.until) for each in self._stands[filter_]]
            yield filter_, owners, stands

    @property
    def stored(self) -> StoredPlaces | None:
        """What these places have gone on from, for storing."""
        return self._stored

    def _take(self, filter_: Filter) -> None:
        """Take a filter from what was stored, if it is still there."""
        row = None if self._stored is None or filter_ in self._owners else self._stored.find(filter_)
        if row is not None:
            self._take_row(row, filter_)

    def _take_row(self, row: int, filter_: Filter | None = None) -> None:
        assert self._stored is not None
        filter_ = self._stored.filter(row) if filter_ is None else filter_
        owners, stands = self._stored.take(row)
        self._owners[filter_] = Counter(owners)
        if self._interests is not None:
            self._interests.took(row)
            for owner in owners:
                self._interests.joined(filter_, self._owners[filter_], owner)
        self._stands[filter_] = [_Stand(filter_, self._owners[filter_], *stand) for stand in stands]
        for stand in self._stands[filter_]:
            if stand.until == ALIVE:
                self._at.setdefault(stand.where, set()).add(stand)
                if not stand.exact:
                    self._outstanding.add(filter_)
            else:
                self._past.setdefault(stand.where, set()).add(stand)
                self._ended.setdefault(stand.until, []).append(stand)

    def _take_all(self) -> None:
        for row in [] if self._stored is None else self._stored.rows():
            self._take_row(row)

    def _take_concerned(self, changes: Changes, oldest: int) -> None:
        """Take what a version of the vocabulary concerns, and what it makes forget."""
        if self._stored is None:
            return
        if changes.everything:
            self._take_all()
            self._stored = None
            return
        for filter_ in changes.filters:
            self._take(filter_)
        for row in self._stored.concerned(changes.nodes, oldest):
            self._take_row(row)

    def _stand(self, filter_: Filter, clock: int) -> None:
        """Give the filter its places from this clock on, which is the highest that it has any in."""
        wanted = dict(self._vocabulary.places(filter_, clock))
        stands = self._stands[filter_]
        for stand in stands:
            if stand.until == ALIVE:
                if wanted.get(stand.where) is stand.exact:
                    del wanted[stand.where]
                else:
                    self._end(stand, clock)
        for where, exact in wanted.items():
            stand = _Stand(filter_, self._owners[filter_], where, exact, clock)
            stands.append(stand)
            self._at.setdefault(where, set()).add(stand)
        self._touch(stands)
        if all(stand.exact for stand in stands if stand.until == ALIVE):
            self._outstanding.discard(filter_)
        else:
            self._outstanding.add(filter_)

    def _standing(self, where: Where, clock: int) -> Iterator[_Stand]:
        for stand in self._at.get(where, ()):
            if stand.since <= clock:
                yield stand
        for stand in self._past.get(where, ()) if clock < self._vocabulary.version.clock else ():
            if stand.since <= clock < stand.until:
                yield stand

    def _touch(self, stands: Iterable[_Stand]) -> None:
        if self.touched is not None:
            self.touched.update(stand.where for stand in stands if stand.until == ALIVE)

    def _end(self, stand: _Stand, clock: int) -> None:
        self._touch((stand,))
        _leave(self._at, stand)
        stand.until = clock
        self._past.setdefault(stand.where, set()).add(stand)
        self._ended.setdefault(clock, []).append(stand)

    def _forget(self, oldest: int) -> None:
        """Drop the places that no version that is kept can ask for."""
        for clock in [clock for clock in self._ended if clock <= oldest]:
            for stand in self._ended.pop(clock):
                # The filter may have gone since, with all its places, and come again.
                if stand in self._past.get(stand.where, ()):
                    _leave(self._past, stand)
                    self._stands[stand.filter].remove(stand)


def _leave(places: dict[Where, set[_Stand]], stand: _Stand) -> None:
    there = places[stand.where]
    there.remove(stand)
    if not there:
        del places[stand.where]
