"""One run: everything is started, faults strike while events flow, and the checker judges the history."""

import contextlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.errors import BranchlineError
from branchline.kafka.jars import Jars
from branchline.ops.chaos.faults import Fault, Kind, kinds_for
from branchline.ops.chaos.feeding import Feed
from branchline.ops.chaos.jobs import await_up
from branchline.ops.chaos.observing import Observer
from branchline.ops.chaos.reading import Tail, read_all
from branchline.ops.chaos.report import Report
from branchline.ops.chaos.schedule import schedule
from branchline.ops.chaos.striking import Striker, Tell
from branchline.ops.chaos.world import AT_LEAST_ONCE, BROKERS, World, make_world
from branchline.routing.checking import Repeats, check
from branchline.routing.history import Entry, Read, Verdict

FAULTS_PER_SETTLE = 4
"""After so many the feed pauses until all is handled: what comes later cannot excuse what was before."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is told."""

    seed: int
    minutes: float | None
    """How long faults are begun; None for as long as there are some."""
    nodes: int = 3
    delivery: str = AT_LEAST_ONCE
    events_per_s: float = 40.0
    optimizer: bool = True
    only: tuple[str, ...] = ()
    """The kinds of fault to draw from; none named: all that there are."""
    faults: tuple[Fault, ...] | None = None
    """These, in place of those drawn from the seed."""
    again: str = ""

    def kinds(self) -> dict[str, Kind]:
        """The kinds of fault that can come."""
        possible = kinds_for(self.nodes, self.optimizer)
        return {name: kind for name, kind in possible.items() if not self.only or name in self.only}

    def schedule(self) -> Iterable[Fault]:
        if self.faults is not None:
            return self.faults
        return schedule(self.seed, list(self.kinds().values()))


@dataclass
class Run:
    """A run in progress."""

    plan: Plan
    world: World
    observer: Observer
    feed: Feed
    striker: Striker

    def strike(self) -> None:
        """Let one fault after the other strike."""
        minutes, began = self.plan.minutes, self.striker.began
        for number, fault in enumerate(self.plan.schedule(), 1):
            if minutes is not None and time.monotonic() + fault.pause_s > began + minutes * 60:
                return
            self.striker.strike(fault)
            if number % FAULTS_PER_SETTLE == 0 and not self._settles():
                return

    def _settles(self) -> bool:
        """Pause the feed until everything is handled and what was delivered is read; whether that is so."""
        with self.feed.paused():
            try:
                self.observer.settle()
            except BranchlineError as error:
                self.world.wrong.append(str(error))
                return False
            return True

    def finish(self) -> None:
        """Heal everything, and wait until all is delivered, or the deadline has passed."""
        self.feed.end()
        self.feed.check()
        self.world.heal()
        if not self._settles():
            # What is there is judged all the same.
            self.observer.hear()
            self.observer.take()

    def report(self) -> Report:
        """What the checker says, and what else there is to tell."""
        plan, history, striker = self.plan, self.observer.history, self.striker
        reads = Counter((each.subscriber, each.event) for each in history if isinstance(each, Read))
        letters = read_all(self.world.cluster, [self.world.topics.dead_letters])
        return Report(
            plan.seed,
            plan.minutes if plan.minutes is not None else round((time.monotonic() - striker.began) / 60, 1),
            plan.nodes,
            plan.delivery,
            plan.again,
            judge(history, plan.delivery),
            striker.struck,
            sum(count - 1 for count in reads.values()),
            striker.restarts,
            self.world.wrong,
            dict(Counter(decode_dead_letter(each).code for each in letters)),
            history,
        )


def judge(history: Sequence[Entry], delivery: str) -> Verdict:
    """The verdict on a history. At least once, repeats are dropped; exactly once, each is a finding."""
    repeats: Repeats = "allowed" if delivery == AT_LEAST_ONCE else "none"
    return check(history, repeats)


def run(plan: Plan, jars: Jars, tell: Tell, keep: bool = False) -> Report:
    """Run the plan in a folder of its own, which is removed afterwards, whatever happens."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder(keep, tell))
        world = make_world(stack, folder, jars, plan.nodes, plan.delivery, plan.optimizer)
        tell(f"seed {plan.seed}: starting Kafka ({plan.nodes} nodes) and the jobs, in {folder}")
        world.nodes.start()
        for job in world.jobs:
            job.start()
        await_up(world.jobs)
        observer = Observer(world)
        acks = Tail(world.cluster, world.topics.acks)
        stack.callback(acks.close)
        feed = Feed(observer, acks, BROKERS, plan.events_per_s, plan.seed)
        stack.callback(feed.end)
        feed.begin()
        tell(f"{feed.requests} subscriptions are in force, {plan.events_per_s:g} events/s flow")
        striker = Striker(world, feed, plan.kinds(), tell)
        world.tend = striker.tend
        going = Run(plan, world, observer, feed, striker)
        going.strike()
        going.finish()
        return going.report()
    raise AssertionError("unreachable: the stack suppresses nothing")


@contextlib.contextmanager
def _folder(keep: bool, tell: Tell) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="branchline-chaos-"))
    try:
        yield folder
    finally:
        if keep:
            tell(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
