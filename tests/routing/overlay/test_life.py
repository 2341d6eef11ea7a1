"""Subscriptions with a life: the end of all at once, the limit, and topics that are removed when vacant.

Scripts of requests are run by shards that are now and then built anew from their log or a snapshot, beside a
naive model that knows no numbers, facts or heaps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay_hands import NOW_MS, Hands, Plain, line, refusal, statuses

from branchline.routing.codes import Code
from branchline.routing.control import Ended, Operation, Request, Status, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS, LEASE_MIN_MS, SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.facts import Limited
from branchline.routing.overlay.topology import founded, link
from branchline.routing.overlay.vacancies import Vacancies
from branchline.routing.shard import EventBatch, Job, Outputs, Shard, ShardState, alone

HOME = "a"
ENDED, REFUSED, REMOVED = Status.ENDED, Status.REFUSED, Status.REMOVED
ACCEPTED, IN_FORCE = Status.ACCEPTED, Status.IN_FORCE
ANYTHING = EventBatch([HOME], [Arrival(Plain({"x": 1}))])


def subscribe(
    id_: str = "one", request: str | None = None, subscriber: str = "ann", home: str | None = None
) -> Request:
    return Request(Operation.SUBSCRIBE, subscriber, id_, home, filter="TRUE", request=request)


def unsubscribe(id_: str = "one", request: str | None = None, subscriber: str = "ann") -> Request:
    return Request(Operation.UNSUBSCRIBE, subscriber, id_, request=request)


def end_all(request: str | None = None, subscriber: str = "ann", home: str | None = None) -> Request:
    return Request(Operation.UNSUBSCRIBE, subscriber, "", home, request=request, all=True)


def standing(shard: Shard, home: str = HOME) -> set[tuple[str, str]]:
    changes = shard.brokers[home].table.changes()
    return {change.identity[1:] for change in changes if isinstance(change, Subscribed)}


@dataclass
class Run:
    """A job with two shards that keeps its log, as Spark does, and may begin anew from it."""

    job: Job = field(default_factory=lambda: alone(HOME))
    now_ms: int = NOW_MS

    def __post_init__(self) -> None:
        self.logs: list[list[ShardState]] = [[], []]
        self.shards: list[Shard] = []
        self.restart()

    def restart(self, snapshot: bool = False) -> None:
        if snapshot:
            self.logs = [[shard.state()] for shard in self.shards]
        self.shards = [Shard(self.job, index, log) for index, log in enumerate(self.logs)]

    def call(self, *requests: Request, events: EventBatch | None = None) -> Outputs:
        """One batch, the event for the leading shard; what both shards know is the same afterwards."""
        made = [
            shard.handle(self.now_ms, [], requests, events or ANYTHING if index == 0 else EventBatch())
            for index, shard in enumerate(self.shards)
        ]
        for log, outputs in zip(self.logs, made, strict=True):
            log += [outputs.changed] if outputs.changed is not None else []
        assert standing(self.shards[0]) == standing(self.shards[1])
        assert not made[1].acks and not made[1].removed, "only the leading shard writes"
        return made[0]


# The end of all


def test_all_subscriptions_end_in_one_call_and_the_last_ack_says_so() -> None:
    """Each is acked with the request's id; the last ack names none and says how many there were."""
    run = Run()
    run.call(subscribe("one"), subscribe("two"), subscribe("three"), subscribe(subscriber="bob"))
    outputs = run.call(end_all("r"))
    assert [(ack.id, ack.status, ack.request, ack.note) for ack in outputs.acks] == [
        ("one", ENDED, "r", None),
        ("three", ENDED, "r", None),
        ("two", ENDED, "r", None),
        (None, ENDED, "r", "3 subscriptions ended"),
    ]
    assert len({ack.number for ack in outputs.acks}) == 4, "each end has a number of its own"
    assert [type(change) for change in outputs.filters] == [Ended] * 3
    assert standing(run.shards[0]) == {("bob", "one")}
    assert outputs.deliveries == [delivery for delivery in outputs.deliveries if delivery.subscriber == "bob"]


def test_a_subscriber_whose_topic_is_gone_is_suspended_once() -> None:
    """Each batch that misses the topic asks for it: the first one ends all, and the others say nothing."""
    run = Run()
    run.call(subscribe("one"), subscribe("two"), subscribe(subscriber="bob"))
    suspend = Request(Operation.SUSPEND, "ann", "", all=True)
    outputs = run.call(suspend, suspend)
    assert [(ack.id, ack.status) for ack in outputs.acks] == [
        ("one", Status.SUSPENDED),
        ("two", Status.SUSPENDED),
        (None, Status.SUSPENDED),
    ]
    assert standing(run.shards[0]) == {("bob", "one")}
    assert run.call(suspend).acks == []
    assert run.call(subscribe("one")).subscribers == ["ann"], "whoever comes back gets a topic"


def test_a_repeat_is_answered_alike_and_ends_nothing() -> None:
    """Though the subscriber has come back since: with what had ended, and with something new."""
    run = Run()
    run.call(subscribe("one"), subscribe("two"))
    run.call(end_all("r"))
    run.call(subscribe("one", "s"), subscribe("four", "t"))
    again = run.call(end_all("r"))
    assert [(ack.id, ack.status) for ack in again.acks] == [("two", ENDED), (None, ENDED)]
    assert standing(run.shards[0]) == {("ann", "one"), ("ann", "four")}
    assert [(ack.id, ack.status) for ack in run.call(end_all("r2")).acks] == [
        ("four", ENDED),
        ("one", ENDED),
        (None, ENDED),
    ]


def test_asking_for_the_end_of_nothing_is_remembered_if_something_has_ended_lately() -> None:
    """A straggler of it ends nothing that came later. Of a subscriber nobody knows it is refused."""
    run = Run()
    run.call(subscribe("one"), unsubscribe("one"))
    assert [(ack.id, ack.note) for ack in run.call(end_all("r")).acks] == [(None, "0 subscriptions ended")]
    run.call(subscribe("one", "s"))
    run.call(end_all("r"))
    assert standing(run.shards[0]) == {("ann", "one")}
    assert refusal(run.call(end_all("r", "nobody"))).code is Code.SUBSCRIPTION_UNKNOWN


def test_the_home_need_not_be_named_among_several() -> None:
    """The subscriber's home answers, wherever it is, and nobody else."""
    hands = Hands(line("abc"), jobs=[("a",), ("b", "c")])
    hands.call("b", subscribe(home="c"))
    hands.settle()
    hands.acks.clear()
    for name in ("a", "b"):
        hands.call(name, end_all("r"))
    assert [(ack.id, ack.status, ack.home) for ack in hands.acks] == [
        ("one", ENDED, "c"),
        (None, ENDED, "c"),
    ]
    hands.settle()
    hands.acks.clear()
    for name in ("a", "b"):
        hands.call(name, end_all("r"))
    assert [(ack.id, ack.home) for ack in hands.acks] == [("one", "c"), (None, "c")], "a repeat finds it too"


def test_of_a_subscriber_whom_no_broker_knows_the_first_one_says_so() -> None:
    """Once for the whole cluster, and the ack names no subscription."""
    hands = Hands(line("ab"))
    for name in "ab":
        hands.call(name, end_all("r"))
    ((ack, why),) = [(ack, ack.rejection) for ack in hands.acks]
    assert why is not None and why.code is Code.SUBSCRIPTION_UNKNOWN
    assert (ack.id, ack.home, ack.status) == (None, "a", REFUSED)


def test_a_subscriber_whose_home_is_on_another_cluster_is_told_where_to_ask() -> None:
    """Its home is known here, but does not read what is written here."""
    topology = founded("ab", [link("a", "b")])
    here, there = topology.members
    hands = Hands(replace(topology, members=(here, there._replace(cluster="far"))))
    hands.call("b", subscribe(home="b"))
    hands.settle()
    why = refusal(hands.call("a", end_all("r")))
    assert why.code is Code.HOME_UNKNOWN and "'far'" in why.reason


# The limit


def test_a_lower_limit_ends_nothing_and_lets_nothing_in() -> None:
    """What stands above it stands, and may be replaced; the refusal says limit and number."""
    run = Run()
    run.call(*(subscribe(id_) for id_ in ("one", "two", "three")))
    run.job = replace(run.job, max_subscriptions=2)
    run.restart()
    run.call(unsubscribe("three"))
    assert standing(run.shards[0]) == {("ann", "one"), ("ann", "two")}
    rejection = refusal(run.call(subscribe("four")))
    assert rejection.code is Code.SUBSCRIPTIONS_TOO_MANY
    assert "has 2 subscriptions; the limit is 2" in rejection.reason
    replacing = replace(subscribe("one"), filter="x = 1")
    assert statuses(run.call(replacing)) == [Status.REPLACED, ACCEPTED, IN_FORCE]
    run.call(end_all())
    assert statuses(run.call(subscribe("four"))) == [ACCEPTED, IN_FORCE]


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_batch_that_is_run_again_under_a_lower_limit_accepts_what_it_accepted(snapshot: bool) -> None:
    """The old limit counts until a call has written the new one down; then that does, in all shards."""
    run = Run()
    run.call(subscribe("one"))
    run.restart(snapshot)
    kept = [list(log) for log in run.logs]
    first = run.call(subscribe("two"), subscribe("three"))
    run.logs, run.job = kept, replace(run.job, max_subscriptions=1)
    run.restart()
    run.shards[0].handle(NOW_MS, [], [], ANYTHING)  # events alone: nothing is written down
    again = run.call(subscribe("two"), subscribe("three"))
    assert again.acks == first.acks
    assert again.changed is not None and (HOME, Limited(1)) in again.changed.facts
    run.restart(snapshot)
    assert statuses(run.call(subscribe("four"))) == [REFUSED]


def test_without_the_setting_nothing_is_written_down() -> None:
    """The constant is the limit, and old states need no word of it."""
    run = Run()
    outputs = run.call(subscribe())
    assert outputs.changed is not None
    assert not any(isinstance(fact, Limited) for _, fact in outputs.changed.facts)
    assert run.shards[0].brokers[HOME].home.limit.in_force == SUBSCRIPTIONS_PER_SUBSCRIBER


# Scripts

SUBSCRIBERS, IDS = ("ann", "bob"), ("one", "two", "three")
AFTER_MS = 2_000

operations = st.one_of(
    st.builds(subscribe, st.sampled_from(IDS), subscriber=st.sampled_from(SUBSCRIBERS)),
    st.builds(unsubscribe, st.sampled_from(IDS), subscriber=st.sampled_from(SUBSCRIBERS)),
    st.builds(end_all, subscriber=st.sampled_from(SUBSCRIBERS)),
)


@dataclass(frozen=True)
class Step:
    """A batch: how long after the last one, its requests (a number: that one again), and how it starts."""

    wait_ms: int
    requests: tuple[Request | int, ...]
    start: str


steps = st.builds(
    Step,
    st.sampled_from((0, 1, 700, AFTER_MS - 1, AFTER_MS, 3 * AFTER_MS)),
    st.lists(operations | st.integers(0, 8), max_size=3).map(tuple),
    st.sampled_from(("on", "log", "snapshot")),
)
scripts = st.lists(steps, max_size=8)


@dataclass
class Naive:
    """What stands, by the plainest reading of the rules; a subscriber's topic is a name in a set."""

    limit: int
    after_ms: int
    stands: set[tuple[str, str]] = field(default_factory=set)
    ended: set[tuple[str, str]] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    since: dict[str, int] = field(default_factory=dict)

    def ask(self, now_ms: int, request: Request) -> bool:
        """Whether the request is granted."""
        assert request.request is not None
        subscriber = request.subscriber
        if request.request in self.done:
            return True
        mine = {each for each in self.stands if each[0] == subscriber}
        known = mine | {each for each in self.ended if each[0] == subscriber}
        wanted = {each for each in known if request.all or each[1] == request.id}
        if request.operation is Operation.SUBSCRIBE:
            if not mine & wanted and len(mine) >= self.limit:
                return False
            self.stands.add((subscriber, request.id))
            self.since.pop(subscriber, None)
        else:
            if not wanted:
                return False
            self.stands -= wanted
            self.ended |= wanted
            if mine and mine <= wanted:
                self.since[subscriber] = now_ms
        self.done.add(request.request)
        return True

    def removed(self, now_ms: int) -> list[str]:
        """Whose topics go at the end of a call."""
        over = sorted(each for each, since_ms in self.since.items() if since_ms + self.after_ms <= now_ms)
        for each in over:
            del self.since[each]
        return over

    def due_ms(self) -> int | None:
        return min((since_ms + self.after_ms for since_ms in self.since.values()), default=None)


@dataclass
class Kafka:
    """The topics that there are, by what the sink is told."""

    topics: set[str] = field(default_factory=set)
    late: list[str] = field(default_factory=list)

    def write(self, outputs: Outputs) -> None:
        self.topics -= set(outputs.removed)
        self.topics |= set(outputs.subscribers)
        missing = {delivery.subscriber for delivery in outputs.deliveries} - self.topics
        assert not missing, "a delivery has a topic"


class Late(Kafka):
    """A planted bug: removals are obeyed a batch later, as by a replay that comes after a return."""

    def write(self, outputs: Outputs) -> None:
        self.late, late = list(outputs.removed), self.late
        super().write(replace_removed(outputs, []))
        self.topics -= set(late)
        missing = {delivery.subscriber for delivery in outputs.deliveries} - self.topics
        assert not missing, "a delivery has a topic"


def replace_removed(outputs: Outputs, removed: list[str]) -> Outputs:
    return replace(outputs, removed=removed)


def run_script(script: Sequence[Step], after_ms: int = AFTER_MS, kafka: Kafka | None = None) -> None:
    """Run it beside the model; an assertion fails where they differ."""
    limit = 2
    run = Run(replace(alone(HOME), max_subscriptions=limit, remove_after_ms=after_ms))
    naive, kafka = Naive(limit, after_ms), kafka or Kafka()
    asked: list[Request] = []
    for step in script:
        run.now_ms += step.wait_ms
        if step.start != "on":
            run.restart(snapshot=step.start == "snapshot")
        batch = []
        for request in step.requests:
            if isinstance(request, int):
                if request < len(asked):
                    batch.append(asked[request])
            elif len(asked) < 9:  # beyond, the first would be forgotten, and its repeat be no repeat
                asked.append(replace(request, request=f"r{len(asked)}"))
                batch.append(asked[-1])
        granted = [naive.ask(run.now_ms, request) for request in batch]
        outputs = run.call(*batch)
        assert standing(run.shards[0]) == naive.stands
        refused = {ack.index for ack in outputs.acks if ack.status is REFUSED}
        assert refused == {index for index, yes in enumerate(granted) if not yes}
        assert outputs.removed == naive.removed(run.now_ms)
        told = [ack.subscriber for ack in outputs.acks if ack.status is REMOVED]
        assert sorted(map(str, told)) == outputs.removed
        assert outputs.due_ms == naive.due_ms()
        for index, shard in enumerate(run.shards):
            built = Shard(run.job, index, run.logs[index])
            assert built.state() == shard.state() == Shard(run.job, index, [shard.state()]).state()
        kafka.write(outputs)


@given(scripts)
def test_scripts_do_what_the_naive_model_does(script: list[Step]) -> None:
    """What stands, what is refused, which topics go and when the next does; from log and snapshot alike."""
    run_script(script)


LEAVE = Step(0, (subscribe(), end_all()), "on")
RETURN = Step(AFTER_MS, (subscribe("two"),), "snapshot")


@pytest.mark.parametrize("start", ["on", "log", "snapshot"])
def test_who_returns_in_the_call_in_which_its_topic_is_due_keeps_it(start: str) -> None:
    """And a call later it is made anew: the delivery of that very call has a topic."""
    run_script([LEAVE, replace(RETURN, start=start)])
    run_script([LEAVE, Step(AFTER_MS, (), start), RETURN])


def test_a_call_that_is_run_again_after_the_removal_says_the_same() -> None:
    """Its state is that of before; removing what is gone is the sink's to bear."""
    run = Run(replace(alone(HOME), remove_after_ms=AFTER_MS))
    run.call(subscribe(), end_all())
    run.now_ms += AFTER_MS
    kept = [list(log) for log in run.logs]
    first = run.call()
    run.logs = kept
    run.restart()
    again = run.call()
    assert (first.removed, first.acks) == (["ann"], again.acks) and first.changed == again.changed


def test_a_vacancy_outlives_the_memory_of_its_ends() -> None:
    """The ends are forgotten after a day, also by a snapshot; the topic is still removed in its time."""
    run = Run(replace(alone(HOME), remove_after_ms=3 * ENDED_REMEMBERED_MS))
    run.call(subscribe(), end_all())
    run.now_ms += ENDED_REMEMBERED_MS
    run.call(subscribe(subscriber="bob"))
    assert run.shards[0].brokers[HOME].table.of("ann") == []
    run.restart(snapshot=True)
    run.now_ms += 2 * ENDED_REMEMBERED_MS - 1
    outputs = run.call()
    assert (outputs.removed, outputs.due_ms) == ([], run.now_ms + 1)
    run.now_ms += 1
    outputs = run.call()
    assert (outputs.removed, outputs.due_ms) == (["ann"], None)


def test_a_topic_goes_after_a_lease_that_nobody_renewed() -> None:
    """An expiry is an end like any other; its time, not that of the lease, is what counts."""
    hands = Hands(line("a"))
    hands.at["a"] = [Shard(replace(alone(HOME), remove_after_ms=AFTER_MS), 0)]
    hands.call("a", replace(subscribe(), lease_ms=LEASE_MIN_MS))
    hands.now_ms += LEASE_MIN_MS + 5
    assert hands.call("a").due_ms is None, "it is told to expire, and still stands"
    hands.settle()
    hands.now_ms += AFTER_MS - 1
    outputs = hands.call("a")
    assert (outputs.removed, outputs.due_ms) == ([], hands.now_ms + 1)
    hands.now_ms += 1
    assert hands.call("a").removed == ["ann"]


def test_without_the_setting_no_topic_is_removed_but_it_may_be_set_later() -> None:
    """Who is vacant is remembered, and costs less than its topic."""
    run = Run()
    run.call(subscribe(), end_all())
    run.now_ms += 10 * ENDED_REMEMBERED_MS
    outputs = run.call()
    assert (outputs.removed, outputs.due_ms) == ([], None)
    run.job = replace(run.job, remove_after_ms=AFTER_MS)
    run.restart(snapshot=True)
    assert run.call().removed == ["ann"]


def test_a_subscriber_that_has_moved_to_another_home_of_the_job_keeps_its_topic() -> None:
    """The topic is one; the last home that it leaves decides."""
    hands = Hands(line("ab"), jobs=[("a", "b")])
    shards = [Shard(Job(("a", "b"), hands.topology, remove_after_ms=AFTER_MS), 0)]
    hands.at = {"a": shards, "b": shards}
    hands.call("a", subscribe(home="a"))
    hands.settle()
    hands.call("a", end_all("r"))
    hands.settle()
    hands.call("a", subscribe(home="b"))
    hands.now_ms += AFTER_MS
    assert hands.call("a").removed == [], "it stands at b"
    hands.settle()
    hands.call("a", end_all("s"))
    hands.now_ms += AFTER_MS - 1
    assert hands.call("a").removed == []
    hands.now_ms += 1
    outputs = hands.call("a")
    assert (outputs.removed, [ack.home for ack in outputs.acks]) == (["ann"], ["b"])


def test_a_job_that_does_not_serve_the_whole_cluster_removes_nothing() -> None:
    """Another job of the cluster may be writing to the topic again, and nobody here would know yet."""
    hands = Hands(line("ab"))
    hands.at["a"] = [Shard(Job(("a",), hands.topology, remove_after_ms=AFTER_MS), 0)]
    hands.call("a", subscribe(home="a"), end_all("r", home="a"))
    hands.now_ms += AFTER_MS
    outputs = hands.call("a")
    assert (outputs.removed, outputs.due_ms) == ([], None)


# Planted bugs: each must be found


def test_a_removal_that_is_obeyed_too_late_is_found() -> None:
    """The script tells a sink that lets a removal come after the return."""
    script = [LEAVE, Step(AFTER_MS, (), "on"), RETURN]
    run_script(script)
    with pytest.raises(AssertionError, match="a delivery has a topic"):
        run_script(script, kafka=Late())


@pytest.mark.parametrize(
    ("method", "bug"),
    [
        ("end", lambda self, subscriber: None),
        ("facts", lambda self: iter(())),
        ("begin", lambda self, subscriber, since_ms: self._since.setdefault(subscriber, since_ms)),
    ],
)
def test_a_vacancy_that_is_kept_wrongly_is_found(
    method: str, bug: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A return that ends nothing, a snapshot that forgets, a beginning that is not watched."""
    monkeypatch.setattr(Vacancies, method, bug)
    with pytest.raises(AssertionError):
        run_script(
            [LEAVE, Step(1, (subscribe(),), "snapshot"), RETURN, LEAVE, Step(AFTER_MS, (), "snapshot")]
        )
