"""The history checker: whether what subscribers read is what they were owed.

Theory of operation. Each subscription is a *chain* of versions in the order in which they were written: a
subscription or replacement is a version with a filter, an end is one that matches nothing. A refused
request is no version. A lease that may be over is one that may or may not have been obeyed; a renewal that
is acknowledged later takes it out again. The checker sees the whole history, so it looks ahead: also to
find which of several writes of a request was the one that counts, and what an expiry came before.

Of an event, published at p and surely handled by the first `Settled` after it, the history does not say when
it was handled, nor which version each broker had then. But there are bounds:

- i, the last version that was acknowledged as in force before p: every broker has it or a later one;
- h, the last version that was acknowledged at all before p: the home has it or a later one;
- n, the first version written after the event was surely handled: nobody had that one or a later one.

A broker on the way may have any version of [i, n), and all of them must let the event pass for it to be sure
to arrive: so it is *owed* if i exists and all of them match. The home decides last, by a version of [h, n):
so it is *allowed* if one of those matches. What is neither owed nor forbidden is optional. A subscriber has
what any of its subscriptions gives it.

That is: an event is owed if the version in force wants it and nothing that could have ended or replaced that
version wants it not; a replacement that wants it too leaves no gap. That a later version was accepted takes
nothing from [i, n): the home has forgotten the one in force, but others may still go by it.

A filter may be undecided on an event. If no version of [i, n) is false and not all are true, then something
is owed, a delivery or a dead letter. A dead letter is allowed if a version of [h, n) is undecided; it never
stands in for a delivery that another filter of the subscriber surely wants.

Matching is the naive evaluator's, so that no cover, tree or index can hide its own mistake.

Cost: for each event a bisection and an evaluation for each subscription that is in force when it is
published, and for each that a read event could have come from. A filter is evaluated once for each
combination of values that it meets.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator
from typing import Literal, TypeAlias, assert_never

from branchline.routing.codes import Rejection
from branchline.routing.control import Identity
from branchline.routing.history import (
    Acked,
    Entry,
    Finding,
    Kind,
    Lapsing,
    Published,
    Read,
    Settled,
    Steady,
    Undecided,
    Unsteady,
    Verdict,
    Wrote,
)
from branchline.routing.versions import NOTHING, Chain, Event, Version, filter_of

Repeats: TypeAlias = Literal["marked", "allowed", "none"]
"""Which repeats are excused: those marked as such, all (at least once), or none (exactly once)."""


def check(history: Iterable[Entry], repeats: Repeats = "marked") -> Verdict:
    """What is wrong with the history. It is taken to be over: all of its events are judged."""
    seen = _Seen()
    for position, entry in enumerate(history):
        seen.take(position, entry)
    return _Check(seen, repeats).verdict()


_Pair: TypeAlias = tuple[str, Hashable]
"""A subscriber and an event."""

_Proof: TypeAlias = tuple[Chain, int]
"""A subscription and its version in force."""


class _Seen:
    """A history taken apart, entry by entry."""

    def __init__(self) -> None:
        self.chains: dict[Identity, Chain] = {}
        self.events: dict[Hashable, Event] = {}
        self.reads: dict[_Pair, list[int]] = {}
        self.unmarked: dict[_Pair, list[int]] = {}
        """The reads that nobody calls a repeat."""
        self.first_reads: list[tuple[_Pair, int, int | None]] = []
        """With the place and the steady period of each."""
        self.undecided: dict[_Pair, list[int]] = {}
        self.settled: list[int] = []
        self.length = 0
        self.strays = 0
        self._periods = 0
        self._period: int | None = 0

    def take(self, position: int, entry: Entry) -> None:
        self.length = position + 1
        match entry:
            case Read():
                self._read(position, entry)
            case Published():
                self._published(position, entry)
            case Acked(identity, status, request):
                chain = self.chains.get(identity)
                self.strays += chain is None or not chain.acked(position, status, request)
            case Wrote(identity, spelling, text, request):
                filter_ = NOTHING if text is None else filter_of(spelling, text)
                self._chain(identity).write(position, request, text, filter_)
            case Lapsing(identity):
                self._chain(identity).lapse(position)
            case Undecided(subscriber, event):
                self.undecided.setdefault((subscriber, event), []).append(position)
            case Settled():
                self.settled.append(position)
            case Unsteady():
                self._period = None
            case Steady():
                if self._period is None:
                    self._periods += 1
                    self._period = self._periods
            case _:
                assert_never(entry)

    def _chain(self, identity: Identity) -> Chain:
        chain = self.chains.get(identity)
        if chain is None:
            chain = self.chains[identity] = Chain(identity)
        return chain

    def _published(self, position: int, entry: Published) -> None:
        if entry.event in self.events:
            raise ValueError(f"event {entry.event!r} is published twice: at {position} again")
        # Of JSON values repr is such a text: it tells 1 from 1.0 and from true, which == does not.
        self.events[entry.event] = Event(
            entry.event,
            position,
            entry.attributes,
            {name: repr(value) for name, value in entry.attributes.items()},
            entry.stream,
            entry.acknowledged,
            self._period,
        )

    def _read(self, position: int, entry: Read) -> None:
        pair = entry.subscriber, entry.event
        if pair not in self.reads:
            self.first_reads.append((pair, position, self._period))
        self.reads.setdefault(pair, []).append(position)
        if not entry.repeat:
            self.unmarked.setdefault(pair, []).append(position)


class _Check:
    """The rules, one by one, on a history that is over."""

    def __init__(self, seen: _Seen, repeats: Repeats) -> None:
        self._seen = seen
        self._repeats = repeats
        self._chains: dict[str, list[Chain]] = {}
        for chain in seen.chains.values():
            chain.close()
            self._chains.setdefault(chain.identity.subscriber, []).append(chain)
        for event in seen.events.values():
            index = bisect_right(seen.settled, event.position)
            event.settled = seen.settled[index] if index < len(seen.settled) else seen.length
        self._owed: dict[_Pair, _Proof] = {}
        """What must have been delivered."""
        self._told: dict[_Pair, _Proof] = {}
        """What must have been delivered or become a dead letter."""
        self._optional = self._ordered = 0

    def verdict(self) -> Verdict:
        self._find_owed()
        seen = self._seen
        misrouted = tuple(self._misrouted())
        return Verdict(
            tuple(self._lost()),
            misrouted,
            tuple(self._duplicated()),
            tuple(self._out_of_order({(finding.subscriber, finding.event) for finding in misrouted})),
            tuple(self._stuck()),
            len(seen.events),
            sum(len(chain.requests) for chain in seen.chains.values()),
            sum(map(len, seen.reads.values())),
            len(self._owed.keys() | self._told.keys()),
            self._optional,
            self._ordered,
            seen.strays,
        )

    def _find_owed(self) -> None:
        events = [event for event in self._seen.events.values() if event.acknowledged]
        positions = [event.position for event in events]
        for chain in self._seen.chains.values():
            since = chain.in_force_since()
            if since is None:
                continue
            for event in events[bisect_right(positions, since) :]:
                first = chain.in_force(event.position)
                assert first is not None, "one came into force before this event"
                surely = chain.surely(first, event)
                if surely is not False:
                    owed = self._owed if surely is True else self._told
                    owed.setdefault((chain.identity.subscriber, event.name), (chain, first))

    def _lost(self) -> Iterator[Finding]:
        for pair, proof in self._owed.items():
            if pair not in self._seen.reads:
                letters = self._seen.undecided.get(pair)
                instead = "" if letters is None else f"; a dead letter calls it undecided (#{letters[0]})"
                yield self._missing(pair, proof, f"was never read by it{instead}", letters or [])
        for pair, proof in self._told.items():
            if pair not in self._owed and pair not in self._seen.reads and pair not in self._seen.undecided:
                yield self._missing(pair, proof, "became neither a delivery nor a dead letter", [])

    def _missing(self, pair: _Pair, proof: _Proof, what: str, letters: list[int]) -> Finding:
        chain, first = proof
        event = self._seen.events[pair[1]]
        versions = chain.versions[first : chain.written(event.settled)]
        in_force = versions[0].in_force
        assert in_force is not None, "only what was in force is owed"
        also = "".join(f", and so does {version.describe()}" for version in versions[1:])
        return Finding(
            Kind.LOST,
            pair[0],
            tuple(sorted([in_force, event.position, *letters, *(version.place for version in versions)])),
            f"{pair[0]} was owed event {event.name!r} (#{event.position}), which {what}: {chain.identity} "
            f"asks for it by {versions[0].describe()}, in force since #{in_force}{also}",
            event.name,
            chain.identity,
        )

    def _misrouted(self) -> Iterator[Finding]:
        for pair, positions in self._seen.reads.items():
            if pair not in self._owed:
                yield from self._unwanted(pair, positions, "was read by")
        for pair, positions in self._seen.undecided.items():
            yield from self._unwanted(pair, positions, "was called undecided for", undecided=True)

    def _unwanted(
        self, pair: _Pair, positions: list[int], what: str, undecided: bool = False
    ) -> Iterator[Finding]:
        """What is wrong with an outcome that was first seen at the first position, if anything is."""
        subscriber, name = pair
        event = self._seen.events.get(name)
        chains = self._chains.get(subscriber, [])
        if event is None:
            sentence = f"event {name!r} {what} {subscriber} (#{positions[0]}), and nobody published it"
            yield Finding(Kind.MISROUTED, subscriber, tuple(positions), sentence, name)
            return

        def fits(version: Version) -> bool:
            wants = version.filter.wants(event)
            return wants is True if not undecided else isinstance(wants, Rejection)

        if any(fits(version) for chain in chains for version in chain.possible(event, positions[0])):
            self._optional += pair not in self._told and pair not in self._owed
            return
        proof = {event.position, *positions}
        why = "no filter that it ever had explains that"
        for chain in chains:
            for index, version in enumerate(chain.versions):
                if fits(version):
                    why, where = _too_late_or_over(chain, index, event)
                    proof |= where
        sentence = f"event {name!r} (#{event.position}) {what} {subscriber} (#{positions[0]}): {why}"
        yield Finding(Kind.MISROUTED, subscriber, tuple(sorted(proof)), sentence, name)

    def _duplicated(self) -> Iterator[Finding]:
        if self._repeats == "allowed":
            return
        reads = self._seen.reads if self._repeats == "none" else self._seen.unmarked
        for (subscriber, event), positions in reads.items():
            if len(positions) > 1:
                places = ", ".join(f"#{position}" for position in positions)
                sentence = f"event {event!r} was read {len(positions)} times by {subscriber}: {places}"
                yield Finding(Kind.DUPLICATED, subscriber, tuple(positions), sentence, event)

    def _out_of_order(self, misrouted: set[_Pair]) -> Iterator[Finding]:
        latest: dict[Hashable, tuple[Event, int]] = {}
        for pair, position, period in self._seen.first_reads:
            subscriber, name = pair
            event = self._seen.events.get(name)
            # What should not be there at all has no place in an order; one mistake is one finding.
            if event is None or event.stream is None or not event.acknowledged or pair in misrouted:
                continue
            if period is None or event.period != period:
                continue
            stream = subscriber, event.stream, period
            before, read = latest.get(stream, (None, 0))
            self._ordered += before is not None
            if before is None or before.position < event.position:
                latest[stream] = event, position
                continue
            if pair not in self._owed and self._may_repeat(pair, position):
                # The first copy may have come in time, when the subscription was not in force; then this
                # repeat of it found it so.
                continue
            yield Finding(
                Kind.OUT_OF_ORDER,
                subscriber,
                tuple(sorted((event.position, before.position, read, position))),
                f"{subscriber} read event {before.name!r} (#{read}) before event {name!r} (#{position}), but "
                f"in stream {event.stream!r} they were published the other way round "
                f"(#{before.position}, #{event.position})",
                name,
            )

    def _may_repeat(self, pair: _Pair, position: int) -> bool:
        """Whether the read may be of a repeat, the first copy of which was not for the subscriber."""
        if self._repeats == "none":
            return False
        return self._repeats == "allowed" or position not in self._seen.unmarked.get(pair, ())

    def _stuck(self) -> Iterator[Finding]:
        settled = self._seen.settled[-1] if self._seen.settled else -1
        for chain in self._seen.chains.values():
            for version in chain.requests.values():
                if version.refused is None and version.handled is None and version.writes[-1] < settled:
                    yield _waits(chain, version, "was never answered", (*version.writes, settled))
            last = chain.versions[-1] if chain.versions else None
            if last is None or last.text is None or last.accepted is None or last.in_force is not None:
                continue
            if max(last.accepted, last.writes[-1]) < settled:
                what = f"was accepted (#{last.accepted}) and never came into force"
                yield _waits(chain, last, what, (last.place, last.accepted, settled))


def _too_late_or_over(chain: Chain, index: int, event: Event) -> tuple[str, set[int]]:
    """Why a version that fits an outcome cannot have been the reason for it."""
    version = chain.versions[index]
    known = chain.handled(event.position)
    if index >= known:
        return f"{chain.identity} asked for it by {version.describe()} only later", {version.place}
    handled = chain.versions[known].handled
    assert handled is not None, "known is the last version handled"
    why = (
        f"{chain.identity} had asked for it by {version.describe()}, but what came after, "
        f"{chain.versions[known].describe()}, was acknowledged before it was published (#{handled})"
    )
    return why, {version.place, chain.versions[known].place, handled}


def _waits(chain: Chain, version: Version, what: str, positions: tuple[int, ...]) -> Finding:
    return Finding(
        Kind.STUCK,
        chain.identity.subscriber,
        positions,
        f"request {version.request!r} of {chain.identity} (#{version.writes[0]}) {what}, though all was "
        f"settled (#{positions[-1]})",
        identity=chain.identity,
    )
