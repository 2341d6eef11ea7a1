"""Small networks of brokers that let keys travel, in which filters are being replaced.

Each broker has the old or the new filter of each subscription, as chance has it: more disorder than any order
of messages brings. An event is led through the network as a divider leads it. Keys may be of so few bits that
most of them stand for several subscriptions.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods.key_table import Imprint, KeyTable, imprint
from branchline.routing.methods.protocols import Interest
from branchline.routing.methods.reuse import Reuse
from branchline.routing.methods.table import TableMatching
from branchline.routing.prefix.delivering import decide
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Prefix

TEXTS = (
    "x = 1",
    "x < 3",
    "x > 1",
    "y = 1",
    "x < 3 AND y > 0",
    "x IN (1, 2) OR y = 2",
    "y LIKE 'a_b'",
    "TRUE",
)


def compiled(text: str) -> Compiled:
    made = compile_filter("sql", text)
    assert isinstance(made, Compiled)
    return made


def imprints_of(bits: int) -> Callable[[Interest], Imprint]:
    """Imprints whose keys have no more than so many bits."""

    def short(interest: Interest) -> Imprint:
        made = imprint(interest)
        return Imprint(made.key % (1 << bits), made.check)

    return short


@dataclass(frozen=True)
class Looked:
    """Who is looked for at one broker."""

    hops: Mapping[str, str]
    local: bool = True

    def __contains__(self, owner: object) -> bool:
        return self.local if isinstance(owner, Identity) else owner in self.hops

    def enough(self, found: Found) -> bool:
        return False


@dataclass
class Network:
    """Brokers in a tree, and what each has of each subscription."""

    parents: list[int]
    """Of each broker but the first, the one above it."""
    filters: dict[Identity, tuple[Compiled, Compiled]]
    has: dict[tuple[int, Identity], bool]
    """Whether the broker has the new filter of the subscription."""
    make: Callable[[], Reuse]
    cut: int = 1_000
    """Keys that fit into a header."""
    brokers: list[Reuse] = field(default_factory=list)
    hops: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        size = len(self.parents) + 1
        links: dict[int, list[int]] = {each: [] for each in range(size)}
        for child, parent in enumerate(self.parents, 1):
            links[parent].append(child)
            links[child].append(parent)
        for broker in range(size):
            hops: dict[str, str] = {}
            for hop in links[broker]:
                pending = [(hop, broker)]
                while pending:
                    at, before = pending.pop()
                    hops[f"b{at}"] = f"b{hop}"
                    pending += [(each, at) for each in links[at] if each != before]
            self.hops.append(hops)
            made = self.make()
            for identity in self.filters:
                made.add(self.interest(broker, identity))
            self.brokers.append(made)

    def interest(self, broker: int, identity: Identity) -> Interest:
        owner: Owner = identity if identity.home == f"b{broker}" else identity.home
        return Interest(identity, self.filters[identity][self.has[broker, identity]], owner)

    def owed(self, event: Event) -> set[Identity]:
        """Whoever wants the event by the old filter and by the new one."""
        return {
            identity
            for identity, versions in self.filters.items()
            if all(each.matches(event) is True for each in versions)
        }

    def send(self, event: Event, at: int) -> set[Identity]:
        """Let the event enter; whoever gets it."""
        delivered: set[Identity] = set()
        pending = [(at, set(self.hops[at]) | {f"b{at}"}, self.brokers[at].enter(event))]
        self.counts["entered"] += 1
        while pending:
            broker, scope, prefix = pending.pop()
            forwarding = self.brokers[broker]
            hops = {home: hop for home, hop in self.hops[broker].items() if home in scope}
            here = f"b{broker}" in scope
            found = forwarding.find(prefix, event, Looked(hops, here))
            self.counts["visits"] += 1
            self.counts["afresh"] += found.afresh
            found_here = Found(_local(found.certain), _local(found.doubtful))
            assert here or not found_here.certain | found_here.doubtful, "nobody here is looked for"
            own = _Own(self, broker)
            owed = decide(found_here, own, event)
            self.counts["checks"] += owed.checks
            delivered |= {each for each in owed.owners if isinstance(each, Identity)}
            needed = {hops[each] for each in found.certain | found.doubtful if isinstance(each, str)}
            for hop in sorted(needed):
                onward = forwarding.onward(prefix, found, hop)
                assert onward.keys is not None
                homes = {home for home, to in hops.items() if to == hop}
                pending.append((int(hop[1:]), homes, Prefix((), keys=onward.keys.cut(self.cut))))
            self.counts.update(found.counts)
        return delivered

    def check(self, event: Event, at: int) -> None:
        """Whoever is owed the event gets it, and nobody by a filter that its home does not have."""
        delivered = self.send(event, at)
        lost = self.owed(event) - delivered
        assert not lost, f"{sorted(map(str, lost))} did not get {dict(event.attributes)}"
        for identity in delivered:
            standing = self.interest(int(identity.home[1:]), identity).compiled
            assert standing.matches(event) is True, f"{identity} got what it did not ask for"


@dataclass(frozen=True)
class _Own:
    network: Network
    broker: int

    def __getitem__(self, owner: Owner) -> Compiled:
        assert isinstance(owner, Identity)
        return self.network.interest(self.broker, owner).compiled


def _local(owners: set[Owner]) -> set[Owner]:
    return {each for each in owners if isinstance(each, Identity)}


def some_event(source: Random) -> Event:
    """Few values, so that much matches; arrays and missing values among them."""
    values = (0, 1, 1, 2, 3, "acb", "ab", None, [1, 2], [0, 3])
    return Event({"x": source.choice(values), "y": source.choice(values)})


def some_network(
    source: Random, kind: type[Reuse] = Reuse, *, steady: bool = False, bits: int | None = None
) -> Network:
    """A network with a few subscriptions; steady if no filter is being replaced."""
    parents = [source.randrange(child) for child in range(1, source.randint(1, 6))]
    limit = source.choice((None, None, 0, 1, 2, 3))
    short = imprints_of(source.choice((0, 1, 2, 32, 32)) if bits is None else bits)

    def make() -> Reuse:
        return kind(TableMatching(), TableMatching(), limit, table=KeyTable(short))

    filters: dict[Identity, tuple[Compiled, Compiled]] = {}
    has: dict[tuple[int, Identity], bool] = {}
    for number in range(source.randint(1, 9)):
        identity = Identity(f"b{source.randint(0, len(parents))}", f"s{number}", "one")
        old = compiled(source.choice(TEXTS))
        filters[identity] = (old, old if steady else compiled(source.choice(TEXTS)))
        replaced = source.random()
        for broker in range(len(parents) + 1):
            has[broker, identity] = source.random() < replaced
    return Network(parents, filters, has, make, source.choice((1_000, 1_000, 2, 1)))
