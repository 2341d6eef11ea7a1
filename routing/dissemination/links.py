"""Links: what a broker and its neighbours on the spanning tree have told each other of filters.

Theory of operation. For each neighbour the broker keeps what is wanted on that side of the link, as that
neighbour has told it; an event goes there if one of these filters matches. And it tells each neighbour a
summary (`summaries.py`) of what is wanted on this side: by its own subscribers, and by all other neighbours.
After every call with control, summaries are compared with what was told last, and the differences are told.
So whatever a change brings about, hidden filters that come to light among it, is told in one step.

A neighbour that has told nothing yet, or has told it of other homes than are behind it by now, counts as one
that wants *everything*, also for whatever is told to others. That costs traffic for a moment and loses
nothing, so nobody has to wait: not a broker that joins, nor one whose links have changed.

Where publishers advertise, advertisements are told in the same way, each once; and of what is wanted, a
neighbour is told only what overlaps an advertisement from its side. What comes from there is nothing else.
A broker that goes by no advertisements tells its neighbours that it may send everything.

*Settling.* A broker owes its neighbour an answer to what it was told: when all that it has told the others by
the end of the same call is settled. The tree has an end in every direction, so there always is one. A
subscription is in force when all is settled that its home had told everybody by the end of the call
(`marks`).

*Inflating.* With this, a neighbour is told only what nothing that it was told before covers, and what is gone
is not taken back: tables grow, until somebody asks (`pulling.py`) and a neighbour is *deflated*, that is told
all differences. Only the everything that stands for somebody unknown is taken back at once.

*Deferring.* Where filters wait before they are placed (`shared.py`), only telling of them waits; and whatever
would leave a gap waits with them. What was told is not taken back, a stream is not begun, a letter is owed no
answer and a subscription is not marked before all filters are placed that waited at the time.

Invariants: what was told to a neighbour stands for all that is wanted on this side, but for what this very
call has changed; facts alone change anything here. Cost: a change is one change of each summary; telling it
is a comparison of two sets for each neighbour that it concerns.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import repeat

from branchline.routing.dissemination.link_facts import (
    Answered,
    Confirmed,
    Deferred,
    Heard,
    LinkFact,
    Owed,
    Sent,
    Spared,
)
from branchline.routing.dissemination.neighbour import ALL, Neighbour
from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.dissemination.summaries import Summary
from branchline.routing.dissemination.telling import NOTHING, Exchange, Marks, Settled, Stream, Told, pieces
from branchline.routing.filters import EVERYTHING, Filter, covers, filter_order, overlaps
from branchline.routing.overlay.position import Position
from branchline.routing.overlay.topology import Topology, tree_routes
from branchline.routing.posets.filed import Filed


@dataclass(slots=True)
class Links:
    """All neighbours of one broker on the tree."""

    position: Position
    summarise: Callable[[], Summary]
    exchange: Callable[[str, Iterable[Filter], Iterable[Filter]], None]
    """Is told what is wanted behind a neighbour no longer, and what from now on."""
    advertising: bool = False
    """Whether a neighbour is told only what overlaps what is advertised on its side."""
    inflating: bool = False
    """Whether what is gone is taken back only from whoever asks."""
    table: SharedTable = field(default_factory=SharedTable)
    """Where filters wait, if any do."""
    counts: Counter[str] = field(default_factory=Counter)
    _links: dict[str, Neighbour] = field(default_factory=dict)
    _own: dict[Filter, int] = field(default_factory=dict)
    _own_adverts: dict[Filter, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many filters were told by neighbours."""
        return sum(len(link.wanted) for link in self._links.values())

    def has_told(self) -> bool:
        """Whether any neighbour was told anything."""
        return any(link.sent is not None for link in self._links.values())

    def wanted(self, name: str) -> Set[Filter]:
        """What is wanted behind a neighbour, as far as is known."""
        return self._links[name].wanted

    # What is wanted

    def own(self, before: Collection[Filter], after: Collection[Filter]) -> None:
        """A subscription here asks for these filters in place of those."""
        _count(self._own, before, after)
        for _, link in self._in_order():
            self._change(link, before, after)

    def own_adverts(self, before: Collection[Filter], after: Collection[Filter]) -> None:
        """A publisher here advertises these in place of those."""
        _count(self._own_adverts, before, after)
        for link in self._links.values():
            _exchange(link.adverts, before, after)
            link.changed = True

    def _change(self, link: Neighbour, before: Iterable[Filter], after: Iterable[Filter]) -> None:
        """Change what is wanted on this side of the link."""
        after = list(after)
        passing = self._passing(link, after)
        self.counts["told_unadvertised"] += len(after) - len(passing)
        self._exchange(link, self._passing(link, before), passing)
        link.changed = True

    def _in_order(self) -> list[tuple[str, Neighbour]]:
        return sorted(self._links.items())

    def _exchange(self, link: Neighbour, before: Iterable[Filter], after: Iterable[Filter]) -> None:
        """Change what a neighbour is to hear of; what waits, in an order that hangs on nothing else."""
        _exchange(link.summary, before, _sorted(after) if self.table.waits else after)

    def _passing(self, link: Neighbour, filters: Iterable[Filter]) -> list[Filter]:
        """Those of the filters that the neighbour is to hear of."""
        if not self.advertising:
            return list(filters)
        return [each for each in filters if any(overlaps(each, advert) for advert in link.advertised)]

    def _adverts(self, link: Neighbour) -> Set[Filter]:
        """What the neighbour is to hear of as advertised: whoever goes by none may send everything."""
        return link.adverts.told() if self.advertising else ALL

    def _wanted_here(self, name: str) -> Iterator[Filter]:
        """All that is wanted on this side of the link with a neighbour, each for every reason."""
        for filter_, reasons in self._own.items():
            yield from repeat(filter_, reasons)
        for other, link in self._in_order():
            if other != name:
                yield from link.wanted

    def _replace(self, name: str, wanted: Set[Filter], advertised: Set[Filter], *, known: bool) -> None:
        """Let this be what is wanted and advertised behind a neighbour."""
        link = self._links[name]
        self._receive(name, Exchange(tuple(wanted), tuple(link.wanted - wanted)), known=known)
        self._hear_adverts(name, Exchange(tuple(advertised), tuple(link.advertised - advertised)))

    def _receive(self, name: str, exchange: Exchange, *, known: bool) -> None:
        """Change what is wanted behind a neighbour."""
        link = self._links[name]
        come, gone = _effective(link.wanted, exchange)
        link.known = known
        self.exchange(name, gone, come)
        for other, each in self._in_order():
            if other != name:
                self._change(each, gone, come)

    def _hear_adverts(self, name: str, exchange: Exchange) -> None:
        """Change what is advertised behind a neighbour, and so what it is to hear of."""
        link = self._links[name]
        wanted = list(self._wanted_here(name)) if self.advertising else []
        before = self._passing(link, wanted)
        said, unsaid = _effective(link.advertised, exchange)
        for other, each in self._links.items():
            if other != name:
                _exchange(each.adverts, unsaid, said)
                each.changed = True
        if self.advertising and (said or unsaid):
            self._exchange(link, before, self._passing(link, wanted))
            link.changed = True

    # Topologies

    def rebase(self, before: Topology | None) -> None:
        """The position has taken another topology, or its first."""
        was, now = self._behind(before), self.position.routes.behind
        old = sum(1 << member.number for member in before.members) if before is not None else 0
        for name in sorted(self._links.keys() - now.keys()):
            self._replace(name, frozenset(), frozenset(), known=True)
            self._links.pop(name).summary.drop()
        for name, homes in sorted(now.items()):
            if name not in self._links:
                self._begin(name)
            elif homes & old & ~was.get(name, 0):
                # Homes that it has told nothing of are behind it now.
                self._replace(name, ALL, ALL, known=False)
        for link in self._links.values():
            link.heard = link.sent = link.coming = None
            link.settled = link.owed_from = 0
            link.owed, link.unowed, link.changed = [], [], True
            link.told, link.spared = (set(), set()), {}
            link.after = self.table.given

    def _behind(self, topology: Topology | None) -> Mapping[str, int]:
        if topology is None or topology.member(self.position.name) is None:
            return {}
        return tree_routes(topology, self.position.name).behind

    def _begin(self, name: str) -> None:
        """There is a neighbour of whom nothing is known yet."""
        link = Neighbour(self.summarise())
        for other in self._links.values():
            # Whoever is unknown wants everything, and may send it.
            self._change(other, (), ALL)
            _exchange(other.adverts, (), ALL)
            _exchange(link.adverts, (), other.advertised)
        self._links[name] = link
        self._exchange(link, (), self._passing(link, self._wanted_here(name)))
        for advert, reasons in self._own_adverts.items():
            _exchange(link.adverts, (), repeat(advert, reasons))
        self.exchange(name, (), ALL)

    # Hearing

    def accepts(self, sender: str, told: Told) -> bool | None:
        """Whether to obey what a neighbour has told; None if something before it is missing."""
        topology, link = self.position.topology, self._links.get(sender)
        if link is None or topology is None or told.stream.topology != topology.order:
            return False
        heard, last = link.heard if link.heard is not None else (None, 0)
        if heard is None or told.stream > heard:
            return True if told.whole and told.number == 1 else None
        if told.stream < heard or told.number <= last:
            return False
        return True if told.number == last + 1 else None

    def confirms(self, sender: str, settled: Settled) -> bool:
        """Whether an answer says anything new."""
        link = self._links.get(sender)
        return (
            link is not None
            and link.sent is not None
            and (settled.stream == link.sent[0] and link.settled < settled.number <= link.sent[1])
        )

    def obey(self, fact: LinkFact) -> None:
        """Make the fact so."""
        match fact:
            case Heard():
                self._hear(self._links[fact.sender], fact)
            case Sent():
                self._send(self._links[fact.to], fact.told)
            case Confirmed():
                self._links[fact.sender].settled = fact.settled.number
            case Owed():
                link = self._links[fact.to]
                link.owed_from = fact.number
                link.unowed = [each for each in link.unowed if each[0] > fact.number]
                link.owed.append(fact)
            case Answered():
                link = self._links[fact.to]
                link.owed_from = max(link.owed_from, fact.number)
                link.owed = [each for each in link.owed if each.number > fact.number]
                link.unowed = [each for each in link.unowed if each[0] > fact.number]
            case Spared():
                spared = self._links[fact.to].spared
                for each in [each for each, ordinal in spared.items() if self.table.is_placed(ordinal)]:
                    del spared[each]
                spared.update(dict.fromkeys(fact.filters, fact.ordinal))
            case Deferred():
                link = self._links[fact.name]
                link.after, link.unowed = fact.after, list(fact.heard)

    def _hear(self, link: Neighbour, fact: Heard) -> None:
        told = fact.told
        if link.heard is None or told.stream != link.heard[0]:
            link.coming, link.owed, link.unowed, link.owed_from = (set(), set()), [], [], 0
        link.heard = told.stream, told.number
        if link.coming is not None:
            link.coming[0].update(told.wanted.added)
            link.coming[1].update(told.advertised.added)
            if told.complete:
                coming, link.coming = link.coming, None
                self._replace(fact.sender, *coming, known=True)
        else:
            self._receive(fact.sender, told.wanted, known=True)
            if any(told.advertised):
                self._hear_adverts(fact.sender, told.advertised)
        link.unowed = [*(each for each in link.unowed if each[1] != self.table.given)]
        link.unowed.append((told.number, self.table.given))

    def _send(self, link: Neighbour, told: Told) -> None:
        if link.sent is None or told.stream != link.sent[0]:
            link.told, link.settled, link.filed = (set(), set()), 0, Filed()
        link.sent = told.stream, told.number
        if self.inflating:
            _refile(link.filed, told.wanted)
        for told_before, exchange in zip(link.told, (told.wanted, told.advertised), strict=True):
            told_before.update(exchange.added)
            told_before.difference_update(exchange.removed)
        for each in told.wanted.removed:
            link.spared.pop(each, None)

    # Telling

    def tell(self, now_ms: int) -> Iterator[Sent | Spared]:
        """What neighbours are to be told now; each is to be obeyed before the next is asked for."""
        for name, link in self._in_order():
            if self.position.topology is not None and self._may_tell(link):
                yield from self._spare(name, link)
                if link.sent is None:
                    yield from self._tell_whole(name, link, now_ms)
                else:
                    yield from self._tell_changes(name, link, link.sent[0])
            self.counts.update(link.summary.counts)
            link.summary.counts.clear()

    def _may_tell(self, link: Neighbour) -> bool:
        """Whether there may be something to tell a neighbour, and it is time."""
        if link.sent is None and not self.table.is_placed(link.after):
            return False
        return link.take_changed() or bool(link.spared)

    def _spare(self, name: str, link: Neighbour) -> Iterator[Spared]:
        """Do not take back what may be stood for by filters that wait."""
        if self.table.waiting and not self.inflating:
            gone = link.told[0] - link.summary.told() - self._kept(link)
            if gone:
                yield Spared(name, _sorted(gone), self.table.given)

    def _kept(self, link: Neighbour) -> set[Filter]:
        """What is not taken back yet."""
        placed = self.table.is_placed
        return {each for each, at in link.spared.items() if each in link.told[0] and not placed(at)}

    def _wanted(self, link: Neighbour) -> Set[Filter]:
        """What the neighbour is to have been told of as wanted."""
        kept = self._kept(link) if link.spared else None
        return link.summary.told() | kept if kept else link.summary.told()

    def tell_anew(self, name: str) -> None:
        """The neighbour has lost what it was told."""
        link = self._links.get(name)
        if link is not None and link.sent is not None:
            link.began_ms = link.sent[0].start_ms
            link.sent, link.changed = None, True

    def deflate(self, name: str) -> None:
        """Take back from the neighbour what it was told and what is gone."""
        link = self._links.get(name)
        if link is not None:
            link.deflating = link.changed = True

    def _tell_whole(self, name: str, link: Neighbour, now_ms: int) -> Iterator[Sent]:
        assert self.position.topology is not None
        link.deflating, link.inflated = False, 0
        stream = Stream(self.position.topology.order, max(now_ms, link.began_ms + 1))
        wanted = pieces(Exchange(_sorted(self._wanted(link))))
        advertised = pieces(Exchange(_sorted(self._adverts(link))))
        letters = [(each, NOTHING) for each in wanted]
        if self.advertising:
            letters += [(NOTHING, each) for each in advertised if any(each)]
        else:
            letters[0] = (wanted[0], advertised[0])
        for number, (each, advert) in enumerate(letters, 1):
            yield Sent(name, Told(stream, number, each, advert, True, number == len(letters)))

    def _tell_changes(self, name: str, link: Neighbour, stream: Stream) -> Iterator[Sent]:
        wanted = self._growth(link) if self.inflating else _difference(link.told[0], self._wanted(link))
        advertised = _difference(link.told[1], self._adverts(link))
        letters = [(each, NOTHING) for each in pieces(wanted)]
        letters += [(NOTHING, each) for each in pieces(advertised)]
        for each, advert in letters:
            if any(each) or any(advert):
                assert link.sent is not None, "the stream has begun"
                yield Sent(name, Told(stream, link.sent[1] + 1, each, advert))

    def _growth(self, link: Neighbour) -> Exchange:
        """What is to be told where tables only grow; all differences, if this one is to shrink."""
        now = link.summary.told()
        before, gone = link.inflated, len(link.told[0] - now)
        if link.deflating:
            link.deflating, link.inflated = False, 0
            self.counts["told_inflated"] += max(0, gone - before)
            self.counts["told_deflated"] += gone
            return _difference(link.told[0], now)
        lifted = EVERYTHING in link.told[0] and EVERYTHING not in now
        link.inflated = gone - lifted
        self.counts["told_inflated"] += max(0, link.inflated - before)
        come = [each for each in now - link.told[0] if not self._is_covered(link, each, lifted=lifted)]
        return Exchange(_sorted(come), (EVERYTHING,) if lifted else ())

    def _is_covered(self, link: Neighbour, filter_: Filter, *, lifted: bool) -> bool:
        """Whether something that was told covers the filter; everything does, unless that is lifted."""
        for wider in link.filed.wider(filter_):
            self.counts["covering_tests"] += 1
            if (wider or not lifted) and covers(wider, filter_):
                return True
        return False

    # Settling

    def marks(self, but: str | None = None) -> Marks:
        """What is not settled yet of all that was told to the neighbours, but for one."""
        return tuple(
            (name, link.sent[1])
            for name, link in sorted(self._links.items())
            if name != but and link.sent is not None and link.settled < link.sent[1]
        )

    def missing(self, marks: Marks) -> list[str]:
        """The neighbours whose answers to these are missing."""
        return [name for name, number in marks if name in self._links and self._misses(name, number)]

    def _misses(self, name: str, number: int) -> bool:
        """Whether the neighbour has yet to answer; a stream that began anew has all that was told before."""
        link = self._links[name]
        return link.settled < (number if link.sent is None else min(number, link.sent[1]))

    def owing(self) -> list[Owed]:
        """The answers that are owed by what was told so far, and is placed."""
        return [
            Owed(name, number, self.marks(but=name))
            for name, link in sorted(self._links.items())
            if link.coming is None and (number := self._heard_and_placed(link)) > link.owed_from
        ]

    def _heard_and_placed(self, link: Neighbour) -> int:
        return max((number for number, at in link.unowed if self.table.is_placed(at)), default=0)

    def answers(self) -> Iterator[tuple[str, Settled]]:
        """The answers that can be given now: of each neighbour, the last."""
        for name, link in self._in_order():
            due = [each.number for each in link.owed if not self.missing(each.marks)]
            if due and link.heard is not None:
                yield name, Settled(link.heard[0], max(due))

    # Facts

    def facts(self) -> Iterator[LinkFact]:
        """Facts that make equal links, once the topology is taken: what a snapshot holds."""
        for name, link in self._in_order():
            yield from self._heard(name, link)
            if link.sent is not None:
                stream, number = link.sent
                yield Sent(name, _table(stream, number, *link.told))
                if link.settled:
                    yield Confirmed(name, Settled(stream, link.settled))
        for name, link in self._in_order():
            yield from link.owed
            if link.owed_from and not link.owed:
                yield Answered(name, link.owed_from)

    def late_facts(self) -> Iterator[LinkFact]:
        """Of a snapshot, what comes when it is known which filters wait."""
        for name, link in self._in_order():
            yield Deferred(name, link.after, tuple(link.unowed))
            kept: dict[int, list[Filter]] = {}
            for each in self._kept(link):
                kept.setdefault(link.spared[each], []).append(each)
            for ordinal, filters in sorted(kept.items()):
                yield Spared(name, _sorted(filters), ordinal)

    def _heard(self, name: str, link: Neighbour) -> Iterator[Heard]:
        stream, number = link.heard if link.heard is not None else (_NO_STREAM, 0)
        if link.known:
            # What stands while a new table is on its way was told before.
            since = (stream, number) if link.coming is None else (_NO_STREAM, 0)
            yield Heard(name, _table(*since, link.wanted, link.advertised))
        if link.coming is not None:
            yield Heard(name, _table(stream, number, *link.coming, complete=False))

    def describe(self) -> str:
        """The links for people."""
        lines = []
        for name, link in self._links.items():
            wants = f"{len(link.wanted):,} filters" if link.known else "everything, as far as is known"
            waits = f", {len(link.owed)} answers owed" if link.owed else ""
            lines.append(f"{name} wants {wants}, was told {len(link.told[0]):,}{waits}")
        return "\n".join(lines)


_NO_STREAM = Stream((0, 0), 0)
"""Of what was told before the last topology, and still stands."""


def _table(
    stream: Stream, number: int, wanted: Set[Filter], advertised: Set[Filter], *, complete: bool = True
) -> Told:
    """A table as if it had been told at once, under this number."""
    tables = Exchange(_sorted(wanted)), Exchange(_sorted(advertised))
    return Told(stream, number, *tables, whole=True, complete=complete)


def _refile(filed: Filed, exchange: Exchange) -> None:
    for each in exchange.added:
        filed.add(each)
    for each in exchange.removed:
        filed.remove(each)


def _exchange(summary: Summary, before: Iterable[Filter], after: Iterable[Filter]) -> None:
    for each in after:
        summary.add(each)
    for each in before:
        summary.remove(each)


def _count(counted: dict[Filter, int], before: Iterable[Filter], after: Iterable[Filter]) -> None:
    for each in after:
        counted[each] = counted.get(each, 0) + 1
    for each in before:
        counted[each] -= 1
        if not counted[each]:
            del counted[each]


def _effective(filters: set[Filter], exchange: Exchange) -> tuple[list[Filter], list[Filter]]:
    """Change the set; what has come to it indeed, and what has gone."""
    come = [each for each in exchange.added if each not in filters]
    filters.update(come)
    gone = [each for each in exchange.removed if each in filters]
    filters.difference_update(gone)
    return come, gone


def _difference(before: Set[Filter], after: Set[Filter]) -> Exchange:
    return Exchange(_sorted(after - before), _sorted(before - after))


def _sorted(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    return tuple(sorted(filters, key=filter_order))
