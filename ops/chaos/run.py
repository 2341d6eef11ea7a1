"""One run: everything is started, faults strike while events flow, and the checker judges the history.

A fault aims at a batch in progress: it waits until a batch was done since the last disturbance and another
has begun, and for its delay, and strikes. Whether that batch was still not done afterwards is looked up in
the checkpoint, and told: a run whose faults struck between batches would show nothing.
"""

import contextlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.errors import BranchlineError
from branchline.kafka.jars import Jars
from branchline.ops.chaos.faults import Fault, Kind, NotThere, kinds_for
from branchline.ops.chaos.feeding import Feed
from branchline.ops.chaos.jobs import Job, await_up
from branchline.ops.chaos.observing import Observer
from branchline.ops.chaos.progress import NO_BATCH
from branchline.ops.chaos.reading import Tail, read_all
from branchline.ops.chaos.report import Report, Struck
from branchline.ops.chaos.schedule import schedule
from branchline.ops.chaos.world import AT_LEAST_ONCE, BROKERS, World, make_world
from branchline.routing.checking import Repeats, check
from branchline.routing.history import Entry, Read, Verdict

AIM_TIMEOUT_S = 20.0
DELAY_MOST_S = 3.0
RECOVER_TIMEOUT_S = 180.0
FAULTS_PER_SETTLE = 4
"""After so many the feed pauses until all is handled: what comes later cannot excuse what was before."""

POLL_S = 0.005
WAIT_S = 0.05
SAID_CHARS = 200

Tell = Callable[[str], None]


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
    tell: Tell
    struck: list[Struck] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    _down: set[str] = field(default_factory=set)
    """Jobs that a fault has ended, and will start again."""
    _began: float = 0.0
    _calm: dict[str, int] = field(default_factory=dict)
    """By job: a batch after this one was not disturbed."""

    def faults(self) -> None:
        """Let one fault after the other strike."""
        self._began = time.monotonic()
        deadline = None if self.plan.minutes is None else self._began + self.plan.minutes * 60
        for number, fault in enumerate(self.plan.schedule(), 1):
            if deadline is not None and time.monotonic() + fault.pause_s > deadline:
                return
            self.feed.check()
            self._strike(fault)
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

    def tend(self) -> None:
        """Start jobs again that have ended by themselves, as an operator would."""
        for job in self.world.jobs:
            code = job.exit_code
            if code is not None and job.name not in self._down:
                said = job.output.strip()[-SAID_CHARS:]
                self.restarts.append(f"{job.name}, with {code}: {said!r}")
                self.tell(f"the {job.name} ended by itself with {code}, and is started again: {said}")
                job.start()

    def _strike(self, fault: Fault) -> None:
        kind = self.plan_kind(fault)
        job = next(each for each in self.world.jobs if each.name == kind.job)
        self._wait(fault.pause_s)
        undo, batch, note = None, None, ""
        at_s = 0.0
        deadline = time.monotonic() + AIM_TIMEOUT_S
        while undo is None and time.monotonic() < deadline:
            aimed = self._aim(job, fault, deadline)
            at_s = time.monotonic() - self._began
            self._down.add(job.name)
            try:
                undo = kind.strike(self.world, fault)
            except NotThere:
                self._down.discard(job.name)
                continue
            now = job.checkpoint.batches()
            batch = aimed if aimed is not None and now.done < aimed == now.begun else None
        if undo is None:
            self.struck.append(Struck(fault, at_s, None, 0.0, "nobody to strike"))
            return
        self._wait(fault.hold_s, tend=False)
        try:
            undo()
        except BranchlineError as error:
            self.world.wrong.append(f"{fault.kind} could not be undone: {error}")
        self._down.discard(job.name)
        recovered_s = self._recover(job)
        if recovered_s is None:
            self.world.wrong.append(f"no batch of the {job.name} was done after {fault.kind}")
        self.struck.append(Struck(fault, at_s, batch, recovered_s, note))
        hit = f"in batch {batch}" if batch is not None else "in no batch"
        after = "never" if recovered_s is None else f"{recovered_s:.1f} s later"
        self.tell(f"{at_s:6.1f} s  {fault.kind} for {fault.hold_s:.1f} s, {hit}; next batch done {after}")

    def plan_kind(self, fault: Fault) -> Kind:
        """The fault's kind."""
        return kinds_for(self.plan.nodes, self.plan.optimizer)[fault.kind]

    def _aim(self, job: Job, fault: Fault, deadline: float) -> int | None:
        """The batch that is in progress, as far into it as the fault wants to strike; None if none is."""
        while time.monotonic() < deadline:
            self.tend()
            batches = job.checkpoint.batches()
            if batches.in_progress and batches.done > self._calm.get(job.name, NO_BATCH):
                time.sleep(min(fault.into * job.checkpoint.last_s(), DELAY_MOST_S))
                if job.checkpoint.batches() == batches:
                    return batches.begun
            time.sleep(POLL_S)
        return None

    def _recover(self, job: Job) -> float | None:
        """How long it takes until a batch is done that was not done before; None if it takes too long."""
        began, before = time.monotonic(), job.checkpoint.batches().done
        while time.monotonic() < began + RECOVER_TIMEOUT_S:
            self.feed.check()
            self.tend()
            if job.checkpoint.batches().done > before:
                self._calm[job.name] = job.checkpoint.batches().done
                return round(time.monotonic() - began, 1)
            time.sleep(WAIT_S)
        return None

    def _wait(self, seconds: float, tend: bool = True) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if tend:
                self.tend()
            time.sleep(min(WAIT_S, max(0.0, end - time.monotonic())))

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
        plan = self.plan
        history = self.observer.history
        reads = Counter((each.subscriber, each.event) for each in history if isinstance(each, Read))
        letters = read_all(self.world.cluster, [self.world.topics.dead_letters])
        return Report(
            plan.seed,
            plan.minutes if plan.minutes is not None else round((time.monotonic() - self._began) / 60, 1),
            plan.nodes,
            plan.delivery,
            plan.again,
            judge(history, plan.delivery),
            self.struck,
            sum(count - 1 for count in reads.values()),
            self.restarts,
            self.world.wrong,
            dict(Counter(str(decode_dead_letter(each).code) for each in letters)),
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
        going = Run(plan, world, observer, feed, tell)
        world.tend = going.tend
        stack.callback(feed.end)
        feed.begin()
        tell(f"{feed.requests} subscriptions are in force, {plan.events_per_s:g} events/s flow")
        going.faults()
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
