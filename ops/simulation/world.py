"""A modelled network that drives the real state machines: jobs, topics, links, and what goes wrong.

Theory of operation. Time is a whole number of milliseconds; what will happen stands in a heap, ordered by
time and then by when it was scheduled. Jobs (`runner.py`, `optimizer_runner.py`) read topics and write to
them. Each topic is a log that keeps the order of each of its writers. A *link* between jobs has a delay, and
may lose a record and send it again (which only delays it and what follows), or bring one twice. What a
subscriber does and sees is written down as a history.

Deterministic: everything that is drawn comes from one seed, and no order depends on hashing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from branchline.ops.simulation.advertising import Advertisers
from branchline.ops.simulation.helpers import Claimants, Helpers
from branchline.ops.simulation.optimizer_runner import OptimizerRunner
from branchline.ops.simulation.runner import Record, Runner
from branchline.ops.simulation.setting import Setting
from branchline.routing.control import Ack, Change, Identity, Operation, Request, Status
from branchline.routing.dissemination.strategies import on_tree
from branchline.routing.history import (
    Acked,
    Entry,
    Lapsing,
    Published,
    Settled,
    Steady,
    Unsteady,
    Wrote,
)
from branchline.routing.methods.protocols import Offloading
from branchline.routing.offloading.assigner import Given
from branchline.routing.offloading.assisting import ASSIST_MAX_MS, Answering, AskSet, Assist, Helping
from branchline.routing.offloading.messages import Answer
from branchline.routing.offloading.offloader import Work
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.letters import Letter, Propose, Refresh
from branchline.routing.overlay.recording import Recorded
from branchline.routing.overlay.topology import Topology
from branchline.routing.prefix.header import Header
from branchline.routing.shard import Control, Job, Refused
from branchline.routing.values import JsonValue

QUIET_WITHIN_MS = 3_600_000
"""A network that is not quiet after so long never will be."""


class World:
    """Everything that is simulated, and the history of it."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        self.random = Random(seed)
        self.now_ms = 1_000_000
        self.topology = setting.topology
        """The newest one that an operator has asked for."""
        self._accepted = setting.topology
        self._proposals: list[Topology] = []
        self.history: list[Entry] = []
        self.failures: list[str] = []
        self.counts: Counter[str] = Counter()
        self.copies: list[tuple[int, str, str, Header | bytes]] = []
        """Every copy that was sent: the event, from where, to whom, and the header."""
        self._heap: list[tuple[int, int, bool, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = count()
        self._foreground = 0
        self._arrives_ms: dict[tuple[str, ...], int] = {}
        self._flying: Counter[str] = Counter()
        self.runners: list[Runner] = []
        self.at: dict[str, Runner] = {}
        for names in setting.jobs:
            self._add_job(names, setting.topology)
        self.optimizer = OptimizerRunner(self)
        self._asked: dict[Identity, None] = {}
        """The subscriptions that requests were about."""
        along_tree = on_tree(setting.methods.dissemination)
        gated = along_tree is not None and along_tree.advertising
        self.advertisers: Advertisers | None = Advertisers() if gated else None
        """Where what is not advertised is refused."""
        self.offloading = None if along_tree is None else along_tree.offloading
        self.helpers = Helpers(seed, honest=setting.honest)
        self._claimants = Claimants(seed, honest=setting.honest)
        self._leases: dict[str, int] = {}
        """The leases that requests have asked for."""

    def _add_job(self, names: tuple[str, ...], topology: Topology | None, cluster: str = "main") -> None:
        member = None if topology is None else topology.member(names[0])
        job = Job(names, topology, member.cluster if member else cluster, self.setting.methods)
        runner = Runner(self, f"job{len(self.runners)}", job)
        self.runners.append(runner)
        self.at |= dict.fromkeys(names, runner)

    def _brokers(self) -> Iterator[Broker]:
        """The brokers of the newest topology, each as all shards of its job have it."""
        for member in self.topology.members:
            for shard in self.at[member.name].shards:
                yield shard.brokers[member.name]

    # Time

    def later(
        self, delay_ms: int, act: Callable[..., None], *arguments: Any, background: bool = False
    ) -> None:
        """Something will happen. What is in the background does not keep the world from being quiet."""
        self._foreground += not background
        heappush(self._heap, (self.now_ms + delay_ms, next(self._sequence), background, act, arguments))

    def advance(self, to_ms: int) -> None:
        """Let happen what happens until then."""
        while self._heap and self._heap[0][0] <= to_ms:
            self._happen()
        self.now_ms = max(self.now_ms, to_ms)

    def settle(self) -> None:
        """Let happen what happens until all is quiet."""
        deadline_ms = self.now_ms + QUIET_WITHIN_MS
        while self._foreground and self.now_ms < deadline_ms:
            self._happen()
        if self._foreground:
            self.fail(f"the network is not quiet after {QUIET_WITHIN_MS} ms")
        self.note(Settled())
        steady = all(
            broker.topology == self.topology and not broker.joining and not broker.held
            for broker in self._brokers()
        )
        if any(broker.tree is not None and broker.tree.due_ms() is not None for broker in self._brokers()):
            self.fail("the network is quiet, and filters wait to be placed")
        if steady:
            self.note(Steady())
        else:
            self.fail("the network is quiet, and a broker joins, holds events or has an old topology")

    def _happen(self) -> None:
        at_ms, _, background, act, arguments = heappop(self._heap)
        self.now_ms = max(self.now_ms, at_ms)
        self._foreground -= not background
        act(*arguments)

    def note(self, entry: Entry) -> None:
        """Write something down in the history."""
        self.history.append(entry)

    def fail(self, reason: str) -> None:
        """Something happened that never should."""
        self.failures.append(reason)

    # Records on their way

    def _carry(self, channel: tuple[str, ...], act: Callable[[bool], None], to: str | None = None) -> None:
        """Bring a record to where it goes, after all that went there before it from the same writer.

        What comes from a client and is doubled comes twice in a row, as a producer does it that tries again;
        between brokers the second may come much later.
        """

        def arrive(again: bool) -> None:
            if to is not None:
                self._flying[to] -= 1
            act(again)

        faults = self.setting.faults
        delay_ms = self.random.randint(0, faults.delay_ms)
        if faults.lost and self.random.random() < faults.lost:
            self.counts["lost_and_resent"] += 1
            delay_ms += self.random.randint(20, 300)
        arrives_ms = max(self._arrives_ms.get(channel, 0), self.now_ms + delay_ms)
        self._arrives_ms[channel] = arrives_ms
        if to is not None:
            self._flying[to] += 1
        self.later(arrives_ms - self.now_ms, arrive, False)
        if faults.doubled and self.random.random() < faults.doubled:
            self.counts["doubled"] += 1
            if to is not None:
                self._flying[to] += 1
            later_ms = 0 if to is None else self.random.randint(0, 100)
            self.later(arrives_ms - self.now_ms + later_ms, arrive, True)

    def post(self, sender: Runner, letter: Letter) -> None:
        """A letter for a broker."""
        self.counts["letters"] += 1
        topic = f"link.{letter.to}"

        def arrive(again: bool) -> None:
            self.at[letter.to].control(topic, letter)

        self._carry((sender.name, topic), arrive, letter.to)

    def forward(self, at: str, to: str, record: Record) -> None:
        """A copy of an event for a neighbour."""
        assert record.header is not None
        self.counts["copies"] += 1
        self.copies.append((record.event, at, to, record.header))

        def arrive(again: bool) -> None:
            self.at[to].event("broker", to, replace(record, repeat=record.repeat or again))

        self._carry((self.at[at].name, f"broker.{to}"), arrive, to)

    def record(self, runner: Runner, change: Recorded) -> None:
        """A job has written to `filters`; the Tree Optimizer reads those of the first job."""
        if runner is self.runners[0] and isinstance(change, Change):
            self.optimizer.read(change)

    def ack(self, ack: Ack, handled_ms: int) -> None:
        """An answer of a home, to what it handled then."""
        self.counts[f"acks_{ack.status}"] += 1
        if ack.subscriber is None or ack.id is None:
            self._answered(ack)
            return
        if ack.advert:
            self.counts[f"adverts_{ack.status}"] += 1
            if self.advertisers is not None:
                self.advertisers.hear(ack)
            return
        identity = Identity(ack.home, ack.subscriber, ack.id)
        self.note(Acked(identity, ack.status, ack.request))
        if ack.status in (Status.ACCEPTED, Status.RENEWED) and ack.request is not None:
            lease_ms = self._leases.get(ack.request)
            if lease_ms is not None:
                over_ms = max(0, handled_ms + lease_ms - self.now_ms)
                self.later(over_ms, self.note, Lapsing(identity), background=True)
            if not self._stays(ack.home):
                # A renewal that was handled before the broker left saves nothing.
                self.note(Lapsing(identity))

    # What clients do

    def ask(self, request: Request) -> None:
        """A subscriber writes a request to the cluster of its home."""
        assert request.home is not None and request.request is not None
        identity = Identity(request.home, request.subscriber, request.id)
        if request.operation is not Operation.RENEW:
            filter_ = request.filter if request.operation is Operation.SUBSCRIBE else None
            self.note(Wrote(identity, request.spelling, filter_, request.request))
        self._asked[identity] = None
        if not self._stays(request.home):
            self.note(Lapsing(identity))
        if request.lease_ms is not None:
            self._leases[request.request] = request.lease_ms
        self._bring(self._claimants.claiming(request))

    def give(self, runner: Runner, work: Work | Given) -> None:
        """A task for a subscriber that has volunteered, or a fixed set for one that has asked."""
        if isinstance(work, Given):
            self.counts["sets"] += 1
            self._claimants.learn(work)
            return
        self.counts["tasks"] += 1

        def say(delay_ms: int, answer: Answer) -> None:
            self.later(delay_ms, self._bring_to, work.home, Answering(answer, work.home))

        self.helpers.work(work.dispatch, say)

    def assist(self, asked: Helping) -> None:
        """A subscriber offers to spare a broker work, or no longer does."""
        self._bring_to(asked.home, asked)

    def enlist(self, homes: Mapping[str, str]) -> None:
        """Let these subscribers spare their homes work in the way that these want it, if they do; settles."""
        for subscriber, home in homes.items():
            if self.offloading is Offloading.ROUNDS:
                self.assist(Assist(subscriber, home, ASSIST_MAX_MS))
            elif self.offloading is Offloading.FIXED:
                self.assist(AskSet(subscriber, home))
        if self.offloading is not None:
            self.settle()

    def advertise(self, request: Request) -> None:
        """A publisher writes a request to the cluster of its broker."""
        if self.advertisers is not None:
            self.advertisers.ask(request)
        self._bring(request)

    def _bring(self, request: Request) -> None:
        assert request.home is not None
        self._bring_to(request.home, request)

    def _bring_to(self, home: str, message: Request | Helping) -> None:
        cluster = self.at[home].job.cluster
        for runner in self.runners:
            if runner.job.cluster == cluster:
                self._carry(("clients", runner.name), partial(_hand, runner, message))

    def _stays(self, broker: str) -> bool:
        member = self.topology.member(broker)
        return member is not None and not member.leaving

    def publish(self, broker: str, attributes: Mapping[str, JsonValue], key: str | None = None) -> int:
        """A publisher writes an event to a broker's entry topic."""
        event = self.counts["published"]
        self.counts["published"] += 1
        self.note(Published(event, attributes, None if key is None else (broker, key)))
        if self.advertisers is not None:
            self.advertisers.publish(event, broker, attributes)
        self.at[broker].event("in", broker, Record(event, key, attributes))
        return event

    def refuse(self, event: int, refused: Refused) -> None:
        """An event has become a dead letter where it entered."""
        if self.advertisers is None or not refused.outside:
            self.fail(f"an event was refused: {refused}")
            return
        self.counts["events_refused"] += 1
        wrong = self.advertisers.refuse(event, self._stays(refused.at))
        if wrong is not None:
            self.fail(wrong)
        self.history = [
            entry for entry in self.history if not (isinstance(entry, Published) and entry.event == event)
        ]

    # What operators do

    def propose(self, topology: Topology) -> None:
        """Ask for a topology, once the one before it was accepted."""
        self.topology = topology
        self.counts["topologies"] += 1
        self.note(Unsteady())
        self._proposals.append(topology)
        if len(self._proposals) == 1:
            self._ask_for(topology)

    def _ask_for(self, topology: Topology) -> None:
        """Ask the cluster of a broker that stays, and again for as long as nobody answers."""
        if not self._proposals or self._proposals[0] is not topology:
            return
        asked = next(member for member in self._accepted.members if not member.leaving)
        for runner in self.runners:
            if runner.job.cluster == asked.cluster:
                propose = Propose(topology, f"t{topology.number}")
                self._carry(("operator", runner.name), partial(_hand, runner, propose))
        self.later(1_000, self._ask_for, topology)

    def _answered(self, ack: Ack) -> None:
        """A proposal was accepted, or was before."""
        if self._proposals and ack.request == f"t{self._proposals[0].number}":
            self._accepted = self._proposals.pop(0)
            if self._proposals:
                self._ask_for(self._proposals[0])

    def refresh(self, broker: str, *, give_up: bool = False) -> None:
        """Ask a broker to find out what is still wanted behind its links, or to wait for it no longer."""
        self.counts["refreshes"] += 1
        asked = Refresh(broker, 1_000, f"f{self.counts['refreshes']}", give_up)
        for runner in self.runners:
            if runner.job.cluster == self.at[broker].job.cluster:
                self._carry(("operator", runner.name), partial(_hand, runner, asked))

    def join(self, name: str, links: Mapping[str, int], cluster: str) -> None:
        """Start a job for a new broker, and put it into the topology."""
        self._add_job((name,), None, cluster)
        self.propose(self.topology.joined(name, links, cluster))

    def leave(self, name: str) -> None:
        """Let a broker leave: first it is marked, and gone when everybody knows and nothing is on its way."""
        leaving = self.topology.left(name)
        for identity in self._asked:
            if identity.home == name:
                self.note(Lapsing(identity))
        self.propose(leaving)
        self.later(50, self._leave, name, leaving.number)

    def _leave(self, name: str, number: int) -> None:
        leaver = self.at[name]
        known = all(
            broker.topology is not None and broker.topology.number >= number for broker in self._brokers()
        )
        held = any(shard.brokers[name].held for shard in leaver.shards)
        if known and leaver.is_idle() and not held and not self._flying[name]:
            self.propose(self.topology.without(name))
        else:
            self.later(50, self._leave, name, number)


def _hand(runner: Runner, message: Control, again: bool) -> None:
    runner.control("control", message)
