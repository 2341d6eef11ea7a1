"""Random overlays and random scripts: a seed makes a world and everything that happens in it.

A script is a number of steps. Each subscribes, replaces, renews, ends, publishes, repeats a request, changes
the topology, restarts a job or the Tree Optimizer, or lets everything settle; between steps some time passes.
The end is quiet, and then the checker looks at the history.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from branchline.ops.simulation.world import Faults, Setting, World
from branchline.routing.checking import check
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.history import Verdict
from branchline.routing.overlay.methods import Methods
from branchline.routing.overlay.topology import Link, Topology, fault, founded, link
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.values import JsonValue

BROKERS_MAX = 8
SUBSCRIBERS = 6
KEYS = ("k1", "k2", "k3", None)
NAMES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a script."""

    seed: int
    verdict: Verdict
    failures: tuple[str, ...]
    counts: Counter[str]
    copies: tuple[tuple[int, str, str, Header | bytes], ...]

    @property
    def clean(self) -> bool:
        return self.verdict.clean and not self.failures

    def describe(self) -> str:
        """What went wrong, for people."""
        lines = [f"seed {self.seed}: {'clean' if self.clean else 'NOT CLEAN'}", *self.failures[:5]]
        if not self.verdict.clean:
            lines.append(self.verdict.describe())
        return "\n".join(lines)


def random_setting(random: Random, methods: Methods | None = None) -> Setting:
    """A small overlay of a random shape, its jobs, and what goes wrong in it."""
    names = [f"b{number}" for number in range(random.randint(1, BROKERS_MAX))]
    clusters = random.random() < 0.5
    jobs = _grouped(random, names)
    topology = founded(names, _random_links(random, names))
    if clusters:
        cluster = {name: f"c{place}" for place, job in enumerate(jobs) for name in job}
        members = tuple(member._replace(cluster=cluster[member.name]) for member in topology.members)
        topology = replace(topology, members=members)
    parts = random.choice((1, 1, 2))
    trees = Settings(
        parts=parts,
        threshold=random.choice((0.0, 0.3, 0.8)),
        limit_ms=random.choice((20, 100, None)),
        pieces=random.choice((2, 32)),
        nodes_per_filter=random.choice((1, 20)),
        spare_nodes=random.choice((2, 1_000)),
        snapshot_edges=random.choice((3, 5_000)),
        snapshot_ms=random.choice((200, None)),
    )
    drawn = Methods(parts=parts, height=random.choice((None, None, None, 0, 1, 2)))
    if methods is not None:
        drawn = replace(methods, parts=parts, height=drawn.height)
    calm = random.random() < 0.2
    faults = Faults(
        delay_ms=random.choice((0, 5, 50, 400)),
        lost=0 if calm else random.choice((0, 0.1, 0.3)),
        doubled=0 if calm else random.choice((0, 0.1, 0.5)),
        crashes=0 if calm else random.choice((0, 0.02, 0.1)),
        restarts=0 if calm else random.choice((0, 0.03)),
        updates_lost=0 if calm else random.choice((0, 0, 0.3)),
        updates_delay_ms=random.choice((5, 300)),
        exactly_once=random.random() < 0.3,
    )
    return Setting(
        topology,
        tuple(map(tuple, jobs)),
        shards=random.randint(1, 3),
        partitions=random.randint(1, 2),
        batch_ms=random.choice((1, 10, 50)),
        methods=drawn,
        trees=trees,
        faults=faults,
    )


def _grouped(random: Random, names: list[str]) -> list[list[str]]:
    jobs: list[list[str]] = []
    for name in names:
        if jobs and random.random() < 0.4:
            random.choice(jobs).append(name)
        else:
            jobs.append([name])
    return jobs


def _random_links(random: Random, names: list[str]) -> list[Link]:
    """A random tree, and sometimes a few links more."""
    made = {
        link(names[place], names[random.randrange(place)])[:2]: random.choice((1, 1, 2, 5))
        for place in range(1, len(names))
    }
    for _ in range(random.choice((0, 0, 1, 3)) if len(names) > 2 else 0):
        one, other = random.sample(names, 2)
        made.setdefault(link(one, other)[:2], random.choice((1, 2)))
    return [Link(one, other, cost) for (one, other), cost in made.items()]


def random_filter(random: Random) -> str:
    """A filter that often matches, covers others and is covered, and sometimes has a residual."""

    def term() -> str:
        name = random.choice(NAMES)
        low = random.randint(0, 8)
        return random.choice(
            (
                f"{name} = {low}",
                f"{name} > {low}",
                f"{name} <= {low}",
                f"{name} BETWEEN {low} AND {low + random.randint(0, 4)}",
                f"{name} <> {low}",
                f"t LIKE '{random.choice('ab')}%'",
                f"t LIKE '%{random.choice('abc')}%'",
                f"{name} IS NULL",
                f"x < {random.choice('yz')}",
            )
        )

    shape = random.random()
    if shape < 0.05:
        return "TRUE"
    terms = [term() for _ in range(random.choice((1, 1, 2, 2, 3)))]
    if shape < 0.2:
        return f"({' OR '.join(terms)}) AND {term()}"
    if shape < 0.25:
        return f"NOT ({' AND '.join(terms)})"
    return " AND ".join(terms)


def random_event(random: Random) -> dict[str, JsonValue]:
    """An event that some filters match."""
    event: dict[str, JsonValue] = {}
    for name in NAMES:
        chance = random.random()
        if chance < 0.8:
            event[name] = random.randint(0, 9)
        elif chance < 0.87:
            event[name] = [random.randint(0, 9), random.randint(0, 9)]
        elif chance < 0.9:
            event[name] = "text"
    if random.random() < 0.6:
        event["t"] = "".join(random.choice("abc") for _ in range(random.randint(0, 3)))
    return event


class Script:
    """A script as it is played."""

    def __init__(
        self,
        seed: int,
        setting: Setting | None = None,
        methods: Methods | None = None,
        *,
        steady: bool = False,
    ) -> None:
        """With `steady`, neither the topology nor the life of the Tree Optimizer changes."""
        # Two sources, so that a change to the world's faults leaves the script as it is.
        self._random = Random(f"script {seed}")
        self._seed = seed
        drawn = random_setting(self._random, methods)
        self.world = World(setting or drawn, seed)
        self._filters = [random_filter(self._random) for _ in range(self._random.randint(2, 12))]
        self._homes: dict[str, str] = {}
        self._standing: dict[Identity, None] = {}
        self._requests = 0
        self._last: Request | None = None
        self._named = len(self.world.topology.members)
        self._is_still = drawn.faults.delay_ms == 0
        self._changes_topology = self._random.random() < 0.6 and not steady
        self._is_steady = steady

    def play(self, steps: int) -> Played:
        """All steps, and a quiet end."""
        weights: dict[Callable[[], None], int] = {
            self._subscribe: 6,
            self._replace: 3,
            self._unsubscribe: 2,
            self._renew: 1,
            self._repeat: 1,
            self._publish: 14,
            self._settle: 1,
            self._restart_job: 1,
            self._tell_snapshot: 1,
            self._restart_optimizer: 1,
        }
        if self._changes_topology:
            weights |= {self._relink: 1, self._join: 1, self._leave: 1}
        if self._is_steady:
            del weights[self._restart_optimizer]
        acts = self._random.choices(list(weights), list(weights.values()), k=steps)
        for act in acts:
            act()
            pause = self._random.choice((0, 1, 10, 100, 1_000))
            self.world.advance(self.world.now_ms + self._random.randint(0, pause))
        self.world.settle()
        self._publish_everywhere()
        self.world.settle()
        world = self.world
        verdict = check(world.history)
        return Played(self._seed, verdict, tuple(world.failures), world.counts, tuple(world.copies))

    # Steps

    def _staying(self) -> list[str]:
        return [member.name for member in self.world.topology.members if not member.leaving]

    def _ask(
        self, operation: Operation, identity: Identity, filter_: str = "", lease_ms: int | None = None
    ) -> None:
        self._requests += 1
        self._last = Request(
            operation,
            identity.subscriber,
            identity.id,
            identity.home,
            filter=filter_,
            request=f"r{self._requests}",
            lease_ms=lease_ms,
        )
        self.world.ask(self._last)

    def _lease(self) -> int | None:
        return self._random.choice((None, None, None, 1_000, 3_000))

    def _subscribe(self) -> None:
        subscriber = f"s{self._random.randrange(SUBSCRIBERS)}"
        home = self._homes.setdefault(subscriber, self._random.choice(self._staying()))
        if home not in self._staying():
            return
        identity = Identity(home, subscriber, self._random.choice(("one", "two")))
        self._standing[identity] = None
        self._ask(Operation.SUBSCRIBE, identity, self._random.choice(self._filters), self._lease())

    def _some(self) -> Identity | None:
        return self._random.choice(list(self._standing)) if self._standing else None

    def _replace(self) -> None:
        identity = self._some()
        if identity is not None:
            self._ask(Operation.SUBSCRIBE, identity, self._random.choice(self._filters), self._lease())

    def _unsubscribe(self) -> None:
        identity = self._some()
        if identity is not None:
            del self._standing[identity]
            self._ask(Operation.UNSUBSCRIBE, identity)

    def _renew(self) -> None:
        identity = self._some()
        if identity is not None and identity.home in self._staying():
            self._ask(Operation.RENEW, identity, lease_ms=self._random.choice((1_000, 3_000)))

    def _repeat(self) -> None:
        if self._last is not None and self._last.home in self._staying():
            self.world.ask(self._last)

    def _publish(self) -> None:
        for _ in range(self._random.choice((1, 1, 2, 5))):
            self._publish_at(self._random.choice(self._staying()))

    def _publish_at(self, broker: str) -> None:
        self.world.publish(broker, random_event(self._random), self._random.choice(KEYS))

    def _publish_everywhere(self) -> None:
        for broker in self._staying():
            self._publish_at(broker)

    def _settle(self) -> None:
        self.world.settle()

    def _restart_job(self) -> None:
        runner = self._random.choice(self.world.runners)
        if runner.is_idle():
            runner.restore()

    def _tell_snapshot(self) -> None:
        self.world.tell_snapshot()

    def _restart_optimizer(self) -> None:
        self.world.restart_optimizer()

    def _relink(self) -> None:
        names = self._staying()
        if len(names) < 2:
            return
        one, other = self._random.sample(names, 2)
        topology = self.world.topology
        if self._random.random() < 0.5:
            made = topology.linked(one, other, self._random.choice((1, 2, 5)))
        else:
            made = topology.unlinked(one, other)
        self._propose(made)

    def _propose(self, topology: Topology) -> bool:
        if fault(topology, self.world.topology) is not None or topology.links == self.world.topology.links:
            return False
        self.world.propose(topology)
        return True

    def _join(self) -> None:
        if len(self.world.topology.members) >= BROKERS_MAX:
            return
        names = self._random.sample(self._staying(), min(len(self._staying()), self._random.randint(1, 3)))
        cluster = self._random.choice(self.world.topology.members).cluster
        newcomer = f"b{self._named}"
        self._named += 1
        self.world.counts["joins"] += 1
        self.world.join(newcomer, {name: self._random.choice((1, 1, 2)) for name in names}, cluster)
        # What happens while it joins is what joining is made for.
        for _ in range(self._random.choice((0, 4, 12))):
            act = self._random.choice((self._publish_early, self._publish_early, self._subscribe_early))
            self.world.later(self._random.randint(0, 800), act, newcomer)

    def _publish_early(self, newcomer: str) -> None:
        staying = self._staying()
        if newcomer in staying:
            self._publish_at(self._random.choice((newcomer, self._random.choice(staying))))

    def _subscribe_early(self, newcomer: str) -> None:
        """Somebody old subscribes, or somebody new at the newcomer."""
        if self._random.random() < 0.5:
            self._subscribe()
        elif newcomer in self._staying():
            identity = Identity(newcomer, f"s-{newcomer}", "one")
            self._homes[identity.subscriber] = newcomer
            self._standing[identity] = None
            self._ask(Operation.SUBSCRIBE, identity, self._random.choice(self._filters))

    def _leave(self) -> None:
        names = self._staying()
        if len(names) < 2 or self.world.topology.number > 40:
            return
        name = self._random.choice(names)
        if fault(self.world.topology.left(name), self.world.topology) is None:
            self.world.counts["leaves"] += 1
            self.world.leave(name)


def play(seed: int, steps: int, **changes: Any) -> Played:
    """Play the script of a seed."""
    return Script(seed, **changes).play(steps)


def play_all(seeds: Iterable[int], steps: int, **changes: Any) -> tuple[list[str], Counter[str]]:
    """Play the scripts of many seeds: what went wrong in them, and how much of everything happened."""
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    for seed in seeds:
        try:
            played = play(seed, steps, **changes)
        except Exception as error:
            error.add_note(f"in the script of seed {seed}")
            raise
        counts.update(played.counts)
        if not played.clean:
            wrong.append(played.describe())
    return wrong, counts
