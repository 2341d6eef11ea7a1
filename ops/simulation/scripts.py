"""Random scripts: a seed makes a world and everything that happens in it.

A script is a number of steps. Each subscribes, replaces, renews, ends, publishes, repeats a request, changes
the topology, restarts a job or the Tree Optimizer, or lets everything settle; between steps some time passes.
The end is quiet, and then the checker looks at the history.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from branchline.ops.simulation.drawing import BROKERS_MAX, random_event, random_filter, random_setting
from branchline.ops.simulation.helpers import COUNT
from branchline.ops.simulation.setting import Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.dissemination.strategies import INFLATING, parts_of
from branchline.routing.history import Verdict
from branchline.routing.methods.naming import Methods
from branchline.routing.methods.protocols import Offloading
from branchline.routing.offloading.assisting import AskSet, Assist
from branchline.routing.overlay.topology import Topology, fault
from branchline.routing.prefix.header import Header

SUBSCRIBERS = 6
KEYS = ("k1", "k2", "k3", None)
EVENTS_TRIED = 8
"""Until one is advertised."""
LINGER_MS = 31_000
"""A little longer than advertisements linger in the scripts that are played."""


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
        self._adverts: dict[Identity, None] = {}
        self._requests = 0
        self._last: Request | None = None
        self._named = len(self.world.topology.members)
        self._changes_topology = self._random.random() < 0.6 and not steady
        self._is_steady = steady
        self._advertises = "advertised" in self.world.setting.methods.dissemination

    def play(self, steps: int) -> Played:
        """All steps, and a quiet end."""
        weights: dict[Callable[[], None], int] = {
            self._subscribe: 6,
            self._replace: 3,
            self._unsubscribe: 2,
            self._renew: 1,
            self._repeat: 1,
            self._publish: 14,
            self.world.settle: 1,
            self._restart_job: 1,
            self.world.optimizer.tell_snapshot: 1,
            self.world.optimizer.restart: 1,
        }
        if self._changes_topology:
            weights |= {self._relink: 1, self._join: 1, self._leave: 1}
        if self._advertises:
            weights |= {self._advertise: 5, self._replace_advert: 2, self._unadvertise: 2, self._linger: 1}
        if parts_of(self.world.setting.methods.dissemination)[0] == INFLATING:
            weights |= {self._refresh: 3}
        if self.world.offloading is Offloading.ROUNDS:
            weights |= {self._assist: 3}
        if self.world.offloading is Offloading.FIXED:
            weights |= {self._ask_set: 4}
        if self._is_steady:
            del weights[self.world.optimizer.restart]
        if self._advertises:
            self._advertise_everywhere()
        acts = self._random.choices(list(weights), list(weights.values()), k=steps)
        for act in acts:
            act()
            pause = self._random.choice((0, 1, 10, 100, 1_000))
            self.world.advance(self.world.now_ms + self._random.randint(0, pause))
        self.world.settle()
        self._publish_everywhere()
        self.world.settle()
        world = self.world
        if world.advertisers is not None:
            for event in world.advertisers.wrongly_let_in():
                world.fail(f"event {event} was let in, and nobody has advertised it")
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
        event = random_event(self._random)
        advertisers = self.world.advertisers
        if advertisers is not None:
            # Mostly what is advertised: of the rest it is only to be seen that it is refused.
            for _ in range(EVENTS_TRIED):
                if advertisers.sure(broker, event):
                    break
                broker, event = self._random.choice(self._staying()), random_event(self._random)
        self.world.publish(broker, event, self._random.choice(KEYS))

    def _advertise_everywhere(self) -> None:
        for broker in self._staying():
            self._ask_advert(Operation.ADVERTISE, Identity(broker, "p0", "a"))
        self.world.settle()

    def _advertise(self) -> None:
        identity = Identity(
            self._random.choice(self._staying()), f"p{self._random.randrange(3)}", self._random.choice("ab")
        )
        self._ask_advert(Operation.ADVERTISE, identity)

    def _some_advert(self) -> Identity | None:
        return self._random.choice(list(self._adverts)) if self._adverts else None

    def _replace_advert(self) -> None:
        identity = self._some_advert()
        if identity is not None:
            self._ask_advert(Operation.ADVERTISE, identity)

    def _unadvertise(self) -> None:
        identity = self._some_advert()
        if identity is not None:
            self._ask_advert(Operation.UNADVERTISE, identity)

    def _ask_advert(self, operation: Operation, identity: Identity) -> None:
        self._requests += 1
        self._adverts[identity] = None
        filter_ = self._random.choice(("TRUE", "x >= 2", *self._filters, *self._filters))
        request = Request(
            operation,
            identity.subscriber,
            identity.id,
            identity.home,
            filter=filter_ if operation is Operation.ADVERTISE else "",
            request=f"r{self._requests}",
        )
        for _ in range(self._random.choice((1, 1, 1, 2))):
            self.world.advertise(request)

    def _linger(self) -> None:
        """Let what has ended linger long enough to be withdrawn, as soon as anything is asked for."""
        self.world.advance(self.world.now_ms + LINGER_MS)

    def _publish_everywhere(self) -> None:
        for broker in self._staying():
            self._publish_at(broker)

    def _restart_job(self) -> None:
        runner = self._random.choice(self.world.runners)
        if runner.is_idle():
            runner.restore()

    def _refresh(self) -> None:
        give_up = self._random.random() < 0.3
        self.world.refresh(self._random.choice(self._staying()), give_up=give_up)

    def _assist(self) -> None:
        """Somebody, of whatever kind, begins to work for a broker, goes on, or stops."""
        names = self._random.sample(range(COUNT), self._random.randint(1, 4))
        for_ms = self._random.choice((0, 2_000, 30_000, 600_000, 600_000))
        home = self._random.choice(self._staying())
        for name in names:
            self.world.assist(Assist(f"h{name}", home, for_ms))

    def _ask_set(self) -> None:
        """Subscribers, of whatever kind, ask for the fixed sets of their homes, to claim something."""
        for subscriber, home in self._homes.items():
            if self._random.random() < 0.7:
                self.world.assist(AskSet(subscriber, home))

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
