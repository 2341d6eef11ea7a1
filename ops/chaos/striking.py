"""How a fault strikes: aimed at a batch in progress, undone after its time, and the next batch waited for.

It waits until a batch was done since the last disturbance and another has begun, then for its share of what
the last batch took, and strikes. Whether that batch was still not done afterwards is looked up in the
checkpoint, and told: a run whose faults struck between batches would show nothing.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from branchline.kafka.errors import BranchlineError
from branchline.ops.chaos.faults import Fault, Kind, NotThere, Undo
from branchline.ops.chaos.feeding import Feed
from branchline.ops.chaos.jobs import Job
from branchline.ops.chaos.progress import NO_BATCH
from branchline.ops.chaos.report import Struck
from branchline.ops.chaos.world import World

AIM_TIMEOUT_S = 45.0
DELAY_MOST_S = 3.0
RECOVER_TIMEOUT_S = 180.0
POLL_S = 0.005
WAIT_S = 0.05
SAID_CHARS = 200

Tell = Callable[[str], None]


@dataclass
class Striker:
    """Lets faults strike the world, one at a time, and looks after the jobs meanwhile."""

    world: World
    feed: Feed
    kinds: Mapping[str, Kind]
    tell: Tell
    struck: list[Struck] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    """Jobs that ended by themselves, and what they said."""
    began: float = field(default_factory=time.monotonic)
    _down: str | None = None
    """The job that is struck, and is started again by what undoes that."""
    _calm: dict[str, int] = field(default_factory=dict)
    """By job: a batch after this one was not disturbed."""

    def tend(self) -> None:
        """Start jobs again that have ended by themselves, as an operator would."""
        for job in self.world.jobs:
            code = job.exit_code
            if code is not None and job.name != self._down:
                said = job.output.strip()[-SAID_CHARS:]
                self.restarts.append(f"{job.name}, with {code}: {said!r}")
                self.tell(f"the {job.name} ended by itself with {code}, and is started again: {said}")
                job.start()

    def strike(self, fault: Fault) -> None:
        """Let the fault strike, undo it, and return when a batch was done after it."""
        kind = self.kinds[fault.kind]
        job = next(each for each in self.world.jobs if each.name == kind.job)
        self._wait(fault.pause_s, self.tend)
        self._down = job.name
        undo, at_s, batch = self._hit(kind, job, fault)
        if undo is None:
            self._down = None
            self.struck.append(Struck(fault, at_s, None, None, "there was nobody to strike"))
            return
        self._wait(fault.hold_s, self.feed.check)
        try:
            undo()
        except BranchlineError as error:
            self.world.wrong.append(f"{fault.kind} could not be undone: {error}")
        self._down = None
        recovered_s = self._recover(job)
        if recovered_s is None:
            self.world.wrong.append(f"no batch of the {job.name} was done after {fault.kind}")
        self.struck.append(Struck(fault, at_s, batch, recovered_s))
        hit = f"in batch {batch}" if batch is not None else "in no batch"
        after = "never" if recovered_s is None else f"{recovered_s:.1f} s later"
        self.tell(f"{at_s:6.1f} s  {fault.kind} for {fault.hold_s:.1f} s, {hit}; next batch done {after}")

    def _hit(self, kind: Kind, job: Job, fault: Fault) -> tuple[Undo | None, float, int | None]:
        """What undoes it, when it struck, and the batch that it hit, if it hit one."""
        deadline, at_s = time.monotonic() + AIM_TIMEOUT_S, 0.0
        while time.monotonic() < deadline:
            aimed = self._aim(job, fault, deadline)
            at_s = time.monotonic() - self.began
            try:
                undo = kind.strike(self.world, fault)
            except NotThere:
                continue
            now = job.checkpoint.batches()
            return undo, at_s, aimed if aimed is not None and now.done < aimed == now.begun else None
        return None, at_s, None

    def _aim(self, job: Job, fault: Fault, deadline: float) -> int | None:
        """The batch that is in progress, as far into it as the fault wants to strike; None if none is."""
        while time.monotonic() < deadline:
            self.feed.check()
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
            done = job.checkpoint.batches().done
            if done > before:
                self._calm[job.name] = done
                return round(time.monotonic() - began, 1)
            time.sleep(WAIT_S)
        return None

    def _wait(self, seconds: float, look: Callable[[], None]) -> None:
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0:
            look()
            time.sleep(min(WAIT_S, left_s))
