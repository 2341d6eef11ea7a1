"""A broker for which subscribers work comes back from its state as the one that it was."""

from collections import deque
from random import Random

import pytest

from branchline.ops.simulation.drawing import random_filter
from branchline.ops.simulation.helpers import COUNT, Claimants, Helpers
from branchline.routing.control import Operation, Request
from branchline.routing.methods.naming import Methods
from branchline.routing.offloading.assigner import Given
from branchline.routing.offloading.assisting import Answering, AskSet, Assist
from branchline.routing.offloading.messages import Answer
from branchline.routing.overlay.letters import Propose
from branchline.routing.overlay.topology import founded, link
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard
from branchline.streaming.facts import pack, unpack

NAMES = ("a", "b", "c")
LINE = founded(NAMES, [link("a", "b"), link("b", "c")])


class Script:
    """What is asked of a job of three brokers, in random order, and what it says to itself."""

    def __init__(self, seed: int) -> None:
        self.random, self.helpers, self.claimants = Random(seed), Helpers(seed), Claimants(seed)
        self.coming: deque[Control] = deque()
        self.now_ms, self.topology = 1_000_000, LINE
        self._requests = 0

    def control(self) -> list[Control]:
        """What the next call has to handle."""
        self.now_ms += self.random.choice((0, 10, 500, 1_500, 11_000))
        for _ in range(self.random.randint(0, 3)):
            self.random.choice((self._subscribe, self._subscribe, self._end, self._assist, self._relink))()
        return [self.coming.popleft() for _ in range(self.random.randint(0, len(self.coming)))]

    def take(self, outputs: Outputs) -> None:
        """What was said comes back sooner or later."""
        self.coming += outputs.letters
        for work in outputs.work:
            if isinstance(work, Given):
                self.claimants.learn(work)
                continue

            def say(delay_ms: int, answer: Answer, home: str = work.home) -> None:
                self.coming.insert(self.random.randint(0, len(self.coming)), Answering(answer, home))

            self.helpers.work(work.dispatch, say)

    def _subscribe(self) -> None:
        self._ask(Operation.SUBSCRIBE, random_filter(self.random))

    def _end(self) -> None:
        self._ask(Operation.UNSUBSCRIBE, "")

    def _ask(self, operation: Operation, filter_: str) -> None:
        self._requests += 1
        home, id_ = self.random.choice(NAMES), f"i{self.random.randrange(6)}"
        name = f"{home}{self.random.randrange(2)}"
        request = Request(operation, name, id_, home, filter=filter_, request=f"r{self._requests}")
        self.coming.append(self.claimants.claiming(request))

    def _assist(self) -> None:
        for_ms = self.random.choice((0, 5_000, 600_000, 600_000))
        home, name = self.random.choice(NAMES), f"h{self.random.randrange(COUNT)}"
        self.coming.append(Assist(name, home, for_ms))
        self.coming.append(AskSet(f"{home}{self.random.randrange(2)}", home))

    def _relink(self) -> None:
        one, other = self.random.sample(NAMES, 2)
        if self.random.random() < 0.2:
            self.topology = self.topology.linked(one, other, self.random.choice((1, 2, 3)))
            self.coming.append(Propose(self.topology))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("told", "fact"),
    [("covering+rto(2)", "Began"), ("covering+rto+merging", "Began"), ("covering+ff(4)", "Assigned")],
)
def test_a_job_made_from_its_state_says_what_it_would_have_said(told: str, fact: str, seed: int) -> None:
    """To the byte, and from its log too; in the middle of a round, and whatever is claimed."""
    job = Job(NAMES, LINE, methods=Methods("rematch", "table", told))
    lasting, again, other = Shard(job, 0), Shard(job, 0), Shard(job, 1)
    script, seen = Script(seed), 0
    for step in range(60):
        control = script.control()
        expected = lasting.handle(script.now_ms, [], control, EventBatch())
        if step % 3 == 0:
            again = Shard(job, 0, [unpack(pack(again.state()))])
        found = again.handle(script.now_ms, [], control, EventBatch())
        for part in ("letters", "acks", "work", "filters", "due_ms", "changed"):
            assert getattr(found, part) == getattr(expected, part), (step, part)
        if expected.changed is not None:
            assert unpack(pack(expected.changed)) == expected.changed
        assert other.handle(script.now_ms, [], control, EventBatch()).changed == expected.changed
        assert again.state() == lasting.state(), step
        seen += any(type(each).__name__ == fact for _, each in (expected.changed or lasting.state()).facts)
        script.take(expected)
    assert seen or seed
