"""Playing a random script over one Tree Optimizer and several brokers, with an oracle of who is owed what.

Nothing here happens at one time for everybody: a broker hears of subscriptions and of updates when the script
says so, the optimizer hears of subscriptions in another order, updates are lost and repeated, snapshots come
in pieces, the optimizer begins a new life. After every step the events on their way are looked for at every
broker, and whoever holds a filter there that is true of the event must be found, whatever has come to pass.
"""

import random
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from prefix_scripts import ARRAYS, EVENTS, Just, Script, Step, is_true

from branchline.routing.compiling import Compiled
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.delivering import decide
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.inserting import descend
from branchline.routing.prefix.optimizer import Optimizer
from branchline.routing.prefix.trees import Prefix, Trees
from branchline.routing.prefix.updates import NO_VERSION, Snapshot, Update, part_of
from branchline.routing.prefix.views import edges_at
from branchline.routing.prefix.vocabulary import Fit, Vocabulary

HOMES = {("home", number) for number in range(3)}
IN_FLIGHT = 3


def home(owner: int) -> tuple[str, int]:
    """The home of a subscription: several have the same."""
    return "home", owner % len(HOMES)


def beside_at(vocabulary: Vocabulary, clock: int) -> set[tuple[int, Filter]]:
    """The filters beside the tree at a clock."""
    return {(n, each.filter) for n, each in vocabulary.numbered.items() if each.lived(clock)}


@dataclass
class Broker:
    """A forwarder, what it has heard, and what has been sent to it and not yet been read."""

    forwarder: Forwarder
    height: int | None
    held: dict[int, Compiled] = field(default_factory=dict)
    control: deque[tuple[bool, int, Compiled]] = field(default_factory=deque)
    told: deque[Update | Snapshot] = field(default_factory=deque)
    read: list[Update] = field(default_factory=list)

    def hear(self, joins: bool, owner: int, compiled: Compiled) -> None:
        act = self.forwarder.subscribe if joins else self.forwarder.unsubscribe
        act(compiled.cover, owner)
        act(compiled.cover, home(owner))
        if joins:
            self.held[owner] = compiled
        else:
            del self.held[owner]

    def expected(self, told: Update) -> Fit:
        known = self.forwarder.trees.vocabularies[told.part].version
        if told.version <= known:
            return Fit.OLD
        first = known == NO_VERSION and told.version.clock == 1
        return Fit.APPLIED if first or told.version == (known[0], known[1] + 1) else Fit.GAP


class Run:
    """A script as it is played."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: Counter[str] = Counter()
        """What came to pass, for tests that ask whether anything did."""
        self.optimizer = Optimizer(1, script.settings)
        self.brokers = [
            Broker(Forwarder(Trees(script.settings.parts, height, script.keep)), height)
            for height in script.heights
        ]
        self.flights: deque[tuple[Prefix, dict[str, Any]]] = deque(maxlen=IN_FLIGHT)
        self._now_ms = 0
        self._life = 1
        self._owners = 0
        self._in_force: dict[int, Compiled] = {}
        self._to_optimizer: list[tuple[bool, int, Compiled]] = []
        self._known: dict[int, Compiled] = {}

    def play(self) -> "Run":
        """All steps, then the end: everybody hears everything, and everybody leaves."""
        for step in self.script.steps:
            self.step(step)
            self.check_flights()
        self.settle()
        self.leave()
        return self

    def step(self, step: Step) -> None:
        kind, choice = step
        broker = self.brokers[choice % len(self.brokers)]
        match kind:
            case "s":
                self._owners += 1
                self._control(True, self._owners, self.script.pool[choice % len(self.script.pool)], choice)
            case "u" if self._in_force:
                owner = list(self._in_force)[choice % len(self._in_force)]
                self._control(False, owner, self._in_force[owner], choice)
            case "h":
                if choice % 3:
                    self._tell_optimizer(choice)
                else:
                    while broker.control:
                        broker.hear(*broker.control.popleft())
            case "t":
                self._now_ms += 20 * (choice % 2)
                self._tell()
            case "a" if broker.told:
                self._read(broker)
            case "l" if broker.told:
                broker.told.popleft()
                self.seen["lost"] += 1
            case "r" if broker.read:
                self._repeat(broker, broker.read[choice % len(broker.read)])
            case "p":
                pieces = self.optimizer.snapshots()
                random.Random(choice).shuffle(pieces)
                broker.told += pieces
            case "i" if choice % 4 == 0:
                self._restart()
            case "e":
                self._enter(broker, EVENTS[choice % len(EVENTS)])
        self._check_places(broker)

    # What happens

    def _control(self, joins: bool, owner: int, compiled: Compiled, choice: int) -> None:
        if joins:
            self._in_force[owner] = compiled
        else:
            del self._in_force[owner]
        self._to_optimizer.append((joins, owner, compiled))
        for place, broker in enumerate(self.brokers):
            broker.control.append((joins, owner, compiled))
            while broker.control and choice >> place & 1:
                broker.hear(*broker.control.popleft())
        if choice & 8:
            self._tell_optimizer(choice)

    def _tell_optimizer(self, choice: int) -> None:
        """The optimizer hears everything, in an order in which only the words of one owner are kept."""
        waiting, self._to_optimizer = self._to_optimizer, []
        owners = sorted({owner for _, owner, _ in waiting}, key=lambda owner: (owner ^ choice) * 2654435761)
        for each in owners:
            for joins, owner, compiled in waiting:
                if owner == each:
                    act = self.optimizer.subscribe if joins else self.optimizer.unsubscribe
                    act(compiled.cover)
                    if joins:
                        self._known[owner] = compiled
                    else:
                        del self._known[owner]

    def _tell(self) -> None:
        for update in self.optimizer.updates(self._now_ms):
            self.seen["updates"] += 1
            self.seen["numbered"] += len(update.numbered)
            for broker in self.brokers:
                broker.told.append(update)

    def _read(self, broker: Broker) -> None:
        told = broker.told.popleft()
        if isinstance(told, Snapshot):
            fit = broker.forwarder.trees.apply(told)
            assert fit in (Fit.OLD, Fit.INCOMPLETE, Fit.APPLIED), fit
        else:
            expected = broker.expected(told)
            fit = broker.forwarder.trees.apply(told)
            assert fit is expected, (told, fit)
            broker.read.append(told)
        self.seen[fit.name] += 1
        vocabulary = broker.forwarder.trees.vocabularies[told.part]
        if fit is Fit.APPLIED:
            assert (vocabulary.version, vocabulary.digest) == (told.version, told.digest)

    def _repeat(self, broker: Broker, told: Update) -> None:
        if broker.expected(told) is Fit.OLD:
            vocabulary = broker.forwarder.trees.vocabularies[told.part]
            before = vocabulary.digest, vocabulary.describe(), broker.forwarder.places[told.part].describe()
            assert broker.forwarder.trees.apply(told) is Fit.OLD
            assert before == (
                vocabulary.digest,
                vocabulary.describe(),
                broker.forwarder.places[told.part].describe(),
            )

    def _restart(self) -> None:
        """A new life of the optimizer, which knows the filters that the old one knew."""
        self._life += 1
        self.seen["restarts"] += 1
        self.optimizer = Optimizer(self._life, self.script.settings)
        for compiled in self._known.values():
            self.optimizer.subscribe(compiled.cover)
        for broker in self.brokers:
            broker.told += self.optimizer.snapshots()

    def _enter(self, broker: Broker, attributes: dict[str, Any]) -> None:
        prefix = broker.forwarder.enter(Event(attributes))
        header = Header(prefix)
        decoded = decode(encode(header))
        assert decoded == header
        self.flights.append((prefix, attributes))
        self.seen["arrays"] += prefix.arrays
        self.seen["cut"] += any(part.cut for part in prefix.parts)
        self.seen["many"] += any(part.many for part in prefix.parts)
        self.seen["numbers"] += any(part.numbers for part in prefix.parts)

    # What must hold

    def check_flights(self) -> None:
        for prefix, attributes in self.flights:
            for broker in self.brokers:
                self.check(broker, prefix, attributes)

    def check(self, broker: Broker, prefix: Prefix, attributes: dict[str, Any]) -> None:
        """Nobody is missed, nobody is certain wrongly, what is delivered is what is owed."""
        found = broker.forwarder.find(prefix, Event(attributes))
        owed = {owner for owner, each in broker.held.items() if is_true(each, attributes)}
        event = Event(attributes)
        covered = {owner for owner, each in broker.held.items() if event.may_match(each.cover)}
        owed_and_homes = owed | {home(owner) for owner in owed}
        covered_and_homes = covered | {home(owner) for owner in covered}
        assert found.certain <= covered_and_homes, "certain, and wrong"
        assert owed_and_homes <= found.certain | found.doubtful, "missed"
        assert not found.certain & found.doubtful
        assert not (prefix.arrays and found.certain), "nothing is certain with arrays"
        found.certain -= HOMES
        found.doubtful -= HOMES
        decided = decide(found, broker.held, Event(attributes))
        assert decided.owners == owed
        assert not decided.undecided
        assert (
            decide(found, broker.held, Event({}), paper=True).owners == found.certain | found.doubtful >= owed
        )
        if not found.afresh:
            blind = broker.forwarder.find(prefix, Event({}))
            assert (blind.certain - HOMES, blind.doubtful - HOMES) == (found.certain, found.doubtful)
        wanted = Just(owner for owner in broker.held if owner % 2)
        some = broker.forwarder.find(prefix, Event(attributes), wanted)
        assert owed & wanted <= some.certain | some.doubtful <= wanted
        assert some.certain <= covered
        self.seen["looks"] += 1
        self.seen["afresh"] += bool(found.afresh)
        self.seen["certain"] += bool(found.certain)
        self.seen["doubtful"] += bool(found.doubtful)

    def _check_told(self, broker: Broker) -> None:
        """What a broker was told, as it would be written down, makes trees that are the same."""
        trees = broker.forwarder.trees
        again = Trees(len(trees.vocabularies), broker.height, self.script.keep)
        for told in trees.told():
            again.apply(told)
        for one, other in zip(trees.vocabularies, again.vocabularies, strict=True):
            assert (one.version, one.digest, one.clocks()) == (other.version, other.digest, other.clocks())
            for clock in one.clocks():
                assert {*edges_at(one.tree, clock)} == {*edges_at(other.tree, clock)}
                for each in (one, other):
                    assert beside_at(each, clock) == beside_at(one, clock)
            assert one._pieces == other._pieces

    def _check_places(self, broker: Broker) -> None:
        """In every version that is kept every filter has the place that it would get in it now."""
        filters = {each for compiled in broker.held.values() for each in compiled.cover}
        for filter_ in filters:
            part = part_of(filter_, len(broker.forwarder.places))
            vocabulary, places = broker.forwarder.trees.vocabularies[part], broker.forwarder.places[part]
            for clock in vocabulary.clocks():
                number = vocabulary.number_of(filter_, clock)
                stops = descend(vocabulary.tree, vocabulary.view(clock), filter_) or []
                expected = {stop.node: not stop.left for stop in stops} if number is None else {~number: True}
                for where, exact in expected.items():
                    assert (filter_, exact) in list(places.find(where, clock)), (filter_, where, clock)

    def settle(self) -> None:
        """Everybody hears and reads everything: no filter waits, so only a height limit leaves doubt."""
        self._tell_optimizer(0)
        self._now_ms += 1_000
        self._tell()
        self._now_ms += 1_000
        self._tell()
        for broker in self.brokers:
            while broker.control:
                broker.hear(*broker.control.popleft())
            broker.told += self.optimizer.snapshots()
            self._check_told(broker)
            while broker.told:
                self._read(broker)
            self._check_places(broker)
            self._check_told(broker)
        digests = {tuple(v.digest for v in broker.forwarder.trees.vocabularies) for broker in self.brokers}
        assert len(digests) == 1, "all have the same tree"
        for attributes in (*EVENTS[self._owners % 7 :: 29], *ARRAYS[-2:], {"a": "abc"}):
            for broker in self.brokers:
                self._enter(broker, attributes)
                prefix = self.flights[-1][0]
                for other in self.brokers:
                    self.check(other, prefix, attributes)
                    found = other.forwarder.find(prefix, Event(attributes))
                    assert not found.afresh
                    if not (prefix.arrays or any(part.cut or part.many for part in prefix.parts)):
                        assert not found.doubtful, "nothing is in doubt"

    def leave(self) -> None:
        """Everybody unsubscribes: nothing is left anywhere."""
        for owner, compiled in list(self._in_force.items()):
            self._control(False, owner, compiled, 0xF)
        self._tell_optimizer(0)
        self._now_ms += 1_000
        self._tell()
        self._now_ms += 1_000
        self._tell()
        for part in map(self.optimizer.part, range(self.script.settings.parts)):
            assert part.tree.nodes == 0
            assert not part.tree.children(0)
            assert not part.overflow
            assert part.difference == 0
        for broker in self.brokers:
            while broker.control:
                broker.hear(*broker.control.popleft())
            while broker.told:
                self._read(broker)
            assert not broker.held
            for places, vocabulary in zip(
                broker.forwarder.places, broker.forwarder.trees.vocabularies, strict=True
            ):
                assert len(places) == 0
                assert not places.describe()
                assert not any(vars(places)[name] for name in ("_owners", "_stands", "_at", "_outstanding"))
                assert vocabulary.tree.nodes == 0
                assert vocabulary.digest == 0
            assert not any(map(len, broker.forwarder.trees._beside))
