"""Advertisements: who may publish what, who is told of it, and what is pulled by it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.codes import Code
from branchline.routing.control import Ack, Operation, Request, Status
from branchline.routing.limits import ADVERTISEMENTS_PER_PUBLISHER, ENDED_REMEMBERED_MS
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Letter
from branchline.routing.overlay.rebuilding import Recorded, rebuild
from branchline.routing.overlay.topology import founded, link
from branchline.routing.shard import EventBatch, Job, Outputs, Shard, ShardState
from branchline.routing.values import JsonValue

LINE = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])
LINGER_S = 10
REQUIRED, COUNTED = f"covering+advertised({LINGER_S})", "covering+advertised-counted"


class Content:
    """An event's attributes, as they are."""

    def __init__(self, attributes: Mapping[str, JsonValue]) -> None:
        self._attributes = attributes

    def attributes(self) -> Mapping[str, JsonValue]:
        return self._attributes


def methods(dissemination: str, *, batches: bool = False) -> Methods:
    """With batches, whatever enters is routed as one."""
    matching = "access" if batches else "table"
    return Methods("rematch", matching, dissemination, batches_from=0 if batches else None)


class Line:
    """Three brokers in a line, each in a job of its own, whose letters arrive when they are let."""

    def __init__(self, dissemination: str = REQUIRED, *, batches: bool = False) -> None:
        chosen = methods(dissemination, batches=batches)
        self.now_ms = 1_000
        self.jobs = {name: Job((name,), LINE, methods=chosen) for name in "abc"}
        self.shards = {name: Shard(job, 0) for name, job in self.jobs.items()}
        self.logs: dict[str, list[ShardState]] = {name: [] for name in "abc"}
        self.mail: list[Letter] = []
        self.requests = 0
        for name in "abc":
            # Something that all read: each tells its neighbours what is wanted on its side, which is nothing.
            self.call(name, [Request(Operation.UNADVERTISE, "nobody", "x", name)])
        self.settle()

    def call(self, name: str, control: Iterable[Request | Letter] = (), *events: object) -> Outputs:
        batch = EventBatch([name] * len(events), events)  # type: ignore[arg-type]
        outputs = self.shards[name].handle(self.now_ms, [], list(control), batch)
        if outputs.changed is not None:
            self.logs[name].append(outputs.changed)
        self.mail += outputs.letters
        return outputs

    def settle(self) -> list[Ack]:
        acks: list[Ack] = []
        while self.mail:
            letter = self.mail.pop(0)
            acks += self.call(letter.to, [letter]).acks
        return acks

    def ask(
        self, operation: Operation, name: str, home: str, filter_: str = "", id_: str = "one"
    ) -> list[Ack]:
        self.requests += 1
        request = Request(operation, name, id_, home, filter=filter_, request=f"r{self.requests}")
        return self.call(home, [request]).acks

    def advertise(self, home: str, filter_: str, id_: str = "one") -> list[Ack]:
        return self.ask(Operation.ADVERTISE, "shop", home, filter_, id_)

    def unadvertise(self, home: str, id_: str = "one") -> list[Ack]:
        return self.ask(Operation.UNADVERTISE, "shop", home, id_=id_)

    def subscribe(self, name: str, home: str, filter_: str) -> list[Ack]:
        return self.ask(Operation.SUBSCRIBE, name, home, filter_)

    def publish(self, at: str, *events: Mapping[str, JsonValue]) -> Outputs:
        return self.call(at, [], *(Arrival(Content(each)) for each in events))

    def told(self, name: str, neighbour: str) -> str:
        """How many filters a broker was told by its neighbour."""
        links = self.shards[name].brokers[name].links
        assert links is not None
        return next(line for line in links.describe().splitlines() if line.startswith(f"{neighbour} "))


def statuses(acks: Iterable[Ack]) -> list[Status]:
    return [ack.status for ack in acks]


def codes(outputs: Outputs) -> list[Code]:
    return [each.rejection.code for each in outputs.refused]


# What is asked for


def test_an_advertisement_is_in_force_when_all_have_answered() -> None:
    """Accepted at once; in force, under the same number, when what was told of it is settled."""
    line = Line()
    (accepted,) = line.advertise("a", "x > 1")
    assert (accepted.status, accepted.advert, accepted.subscriber, accepted.home) == (
        Status.ACCEPTED,
        True,
        "shop",
        "a",
    )
    (in_force,) = line.settle()
    assert in_force == replace(accepted, status=Status.IN_FORCE, index=None)


def test_a_broker_alone_waits_for_nobody() -> None:
    """Accepted and in force in one call."""
    shard = Shard(Job(("a",), founded(["a"]), methods=methods(REQUIRED)), 0)
    request = Request(Operation.ADVERTISE, "shop", "one", "a", filter="x > 1", request="r")
    acks = shard.handle(1, [], [request], EventBatch()).acks
    assert statuses(acks) == [Status.ACCEPTED, Status.IN_FORCE]
    assert [ack.index for ack in acks] == [0, 0]


def test_a_repeated_request_is_answered_and_changes_nothing() -> None:
    """By how the advertisement stands; also the end's, and also when another request came in between."""
    line = Line()
    first = line.advertise("a", "x > 1")
    line.settle()
    again = Request(Operation.ADVERTISE, "shop", "one", "a", filter="x > 1", request="r1")
    replaced = line.advertise("a", "x > 5")
    assert statuses(replaced) == [Status.REPLACED, Status.ACCEPTED]
    assert replaced[0].number == first[0].number
    line.settle()
    outputs = line.call("a", [again])
    assert statuses(outputs.acks) == [Status.ACCEPTED, Status.IN_FORCE]
    assert {ack.number for ack in outputs.acks} == {replaced[1].number}
    assert (outputs.filters, outputs.letters) == ([], [])
    assert statuses(line.unadvertise("a")) == [Status.ENDED]
    ended = line.unadvertise("a")
    assert statuses(ended) == [Status.ENDED]


def test_who_asks_for_what_stands_is_told_so() -> None:
    """Under another request id nothing is told to anybody, and the id is remembered."""
    line = Line()
    line.advertise("a", "x > 1")
    line.settle()
    assert statuses(line.advertise("a", "x > 1")) == [Status.ACCEPTED, Status.IN_FORCE]
    assert line.mail == []


@pytest.mark.parametrize(
    ("operation", "filter_", "code"),
    [
        (Operation.ADVERTISE, "x >", Code.FILTER_SYNTAX),
        (Operation.ADVERTISE, "x = 1 AND x = 2", Code.FILTER_UNSATISFIABLE),
        (Operation.UNADVERTISE, "", Code.ADVERTISEMENT_UNKNOWN),
    ],
)
def test_what_cannot_be_advertised_is_refused(operation: Operation, filter_: str, code: Code) -> None:
    """As a subscription would be; and nothing changes."""
    line = Line()
    (ack,) = line.ask(operation, "shop", "a", filter_)
    assert (ack.status, ack.advert) == (Status.REFUSED, True)
    assert ack.rejection is not None and ack.rejection.code is code
    assert line.mail == []


def test_a_publisher_has_so_many_advertisements_at_most() -> None:
    """At one broker; one that is replaced is none more."""
    line = Line()
    for number in range(ADVERTISEMENTS_PER_PUBLISHER):
        line.advertise("a", f"x = {number}", f"n{number}")
    (refused,) = line.advertise("a", "x = -1", "more")
    assert refused.rejection is not None and refused.rejection.code is Code.ADVERTISEMENTS_TOO_MANY
    assert Status.ACCEPTED in statuses(line.advertise("a", "x = -1", "n0"))
    assert statuses(line.advertise("b", "x = -1", "more")) == [Status.ACCEPTED]


@pytest.mark.parametrize("dissemination", ["simple", "covering", "identity+merging"])
def test_where_there_are_no_advertisements_the_request_is_refused(dissemination: str) -> None:
    """With the reason, and events enter as they do."""
    shard = Shard(Job(("a",), founded(["a"]), methods=methods(dissemination)), 0)
    request = Request(Operation.ADVERTISE, "shop", "one", "a", filter="x > 1")
    (ack,) = shard.handle(1, [], [request], EventBatch()).acks
    assert ack.rejection is not None and ack.rejection.code is Code.ADVERTISEMENTS_UNUSED
    assert "covering+advertised" in ack.rejection.reason
    event = EventBatch(["a"], [Arrival(Content({"x": 2}))])
    assert shard.handle(2, [], [], event).refused == []


# What enters


@pytest.mark.parametrize("batches", [False, True])
def test_only_what_an_advertisement_in_force_holds_for_may_enter(batches: bool) -> None:
    """Refused with its code before, while it is pending, outside of it, and after its end; as one or many."""
    line = Line(batches=batches)
    assert codes(line.publish("a", {"x": 2})) == [Code.NOT_ADVERTISED]
    line.subscribe("ann", "a", "TRUE")
    line.settle()
    line.advertise("a", "x BETWEEN 1 AND 5")
    assert codes(line.publish("a", {"x": 2})) == [Code.NOT_ADVERTISED]
    line.settle()
    outputs = line.publish("a", {"x": 2}, {"x": 9}, {"y": 2}, {"x": 5, "y": 1})
    assert [(each.event, each.outside) for each in outputs.refused] == [(1, True), (2, True)]
    assert [each.event for each in outputs.deliveries] == [0, 3]
    assert outputs.counts["events_unadvertised"] == 2
    assert outputs.counts["content_matches"] == 2
    line.unadvertise("a")
    assert codes(line.publish("a", {"x": 2})) == [Code.NOT_ADVERTISED]


@pytest.mark.parametrize("batches", [False, True])
def test_an_event_with_arrays_enters_if_each_choice_is_advertised(batches: bool) -> None:
    """A subscription may match any of them, and must overlap what lets it in."""
    line = Line(batches=batches)
    line.subscribe("ann", "c", "x = 9")
    line.advertise("a", "x < 5")
    line.advertise("a", "x > 7", "more")
    line.settle()
    outputs = line.publish("a", {"x": [1, 9]}, {"x": [1, 6]}, {"x": [[2], 3]}, {"x": []})
    assert [each.event for each in outputs.refused] == [1, 3]
    assert [each.event for each in outputs.forwarded] == [0]


@pytest.mark.parametrize("batches", [False, True])
def test_where_advertisements_are_counted_everything_enters(batches: bool) -> None:
    """Subscriptions go everywhere, and what is outside is counted."""
    line = Line(COUNTED, batches=batches)
    line.subscribe("ann", "c", "x > 0")
    line.settle()
    line.advertise("a", "x > 5")
    line.settle()
    outputs = line.publish("a", {"x": 2}, {"x": 9}, {"x": [1, 9]})
    assert [each.event for each in outputs.forwarded] == [0, 1, 2]
    assert (outputs.refused, outputs.counts["events_unadvertised"]) == ([], 2)


def test_a_replaced_advertisement_lets_events_in_until_the_new_one_is_in_force() -> None:
    """So what both hold for is never refused; then the new one alone does."""
    line = Line()
    line.advertise("a", "x > 1")
    line.settle()
    line.advertise("a", "x > 5")
    assert codes(line.publish("a", {"x": 2}, {"x": 6})) == []
    line.settle()
    assert [each.event for each in line.publish("a", {"x": 2}, {"x": 6}).refused] == [0]


# What is told


def test_subscriptions_go_only_where_something_is_advertised_that_they_overlap() -> None:
    """A late advertisement pulls them, before it is in force; others stay where they are."""
    line = Line()
    line.subscribe("ann", "c", "x > 5")
    line.subscribe("bob", "c", "y = 1")
    assert statuses(line.settle()) == []
    assert "wants 0 filters" in line.told("b", "c")
    line.advertise("a", "x BETWEEN 1 AND 9 AND y = 2")
    assert statuses(line.settle()) == [Status.IN_FORCE]
    assert "wants 1 filters" in line.told("b", "c")
    assert "wants 1 filters" in line.told("a", "b")
    outputs = line.publish("a", {"x": 7, "y": 2})
    assert [each.copy.to for each in outputs.forwarded] == ["b"]


def test_what_ended_lingers_and_is_then_withdrawn() -> None:
    """Subscriptions stay pulled for events on their way, and are taken back by the next message after."""
    line = Line()
    line.subscribe("ann", "c", "x > 5")
    line.advertise("a", "x > 1")
    line.settle()
    line.unadvertise("a")
    line.now_ms += LINGER_S * 1_000 - 1
    line.unadvertise("a")
    line.settle()
    assert "wants 1 filters" in line.told("b", "c")
    line.now_ms += 1
    line.unadvertise("a")
    line.settle()
    assert "wants 0 filters" in line.told("b", "c")
    assert "wants 0 filters" in line.told("a", "b")


def test_all_subscriptions_are_pulled_for_a_while_when_links_change() -> None:
    """Events of an older tree may be on their way anywhere."""
    line = Line()
    line.subscribe("ann", "c", "x > 5")
    line.settle()
    taken = LINE.linked("a", "c", 7)
    line.call("b", [Letter("b", "a", taken)])
    line.settle()
    assert "wants 1 filters" in line.told("b", "c")
    line.now_ms += LINGER_S * 1_000
    for name in "abc":
        line.unadvertise(name)
    line.settle()
    assert "wants 0 filters" in line.told("b", "c")


def test_a_leaving_broker_ends_its_advertisements() -> None:
    """With an ack that says why, and takes no other."""
    line = Line()
    line.advertise("c", "x > 1")
    line.settle()
    acks = line.call("c", [Letter("c", "b", LINE.left("c"))]).acks
    assert [(ack.status, ack.advert, ack.subscriber) for ack in acks] == [(Status.ENDED, True, "shop")]
    assert acks[0].note is not None and "leaving" in acks[0].note
    (refused,) = line.advertise("c", "x > 1")
    assert refused.rejection is not None and refused.rejection.code is Code.HOME_LEAVING


# What is remembered


@given(st.lists(st.integers(0, 7), max_size=12))
def test_facts_make_equal_brokers(steps: list[int]) -> None:
    """The log's, and a snapshot's: they let the same in, and say the same from then on."""
    line = Line()
    for step in steps:
        match step:
            case 0 | 1:
                line.advertise("a", ("x > 1", "x > 5")[step])
            case 2:
                line.advertise("a", "y = 1", "two")
            case 3:
                line.unadvertise("a")
            case 4:
                line.settle()
            case 5:
                line.subscribe("ann", "c", "x > 3")
            case 6:
                line.now_ms += LINGER_S * 500
            case _:
                if line.mail:
                    letter = line.mail.pop(0)
                    line.call(letter.to, [letter])
    shard = line.shards["a"]
    log = Shard(line.jobs["a"], 0, line.logs["a"])
    snapshot = Shard(line.jobs["a"], 0, [shard.state()])
    assert log.state() == snapshot.state() == shard.state()
    events = EventBatch(["a"] * 3, [Arrival(Content(each)) for each in ({"x": 2}, {"x": 6}, {"y": 1})])
    now_ms = line.now_ms + LINGER_S * 1_000
    request = Request(Operation.UNADVERTISE, "shop", "one", "a", request="last")
    said = [each.handle(now_ms, [], [request], events) for each in (shard, log, snapshot)]
    assert said[0].refused == said[1].refused == said[2].refused
    assert said[0].acks == said[1].acks == said[2].acks
    assert said[0].letters == said[1].letters == said[2].letters


def test_an_end_is_forgotten_after_a_day() -> None:
    """And so recorded: as a change, an end, and nothing any more."""
    line = Line()
    recorded = []
    for operation in (Operation.ADVERTISE, Operation.UNADVERTISE):
        request = Request(operation, "shop", "one", "a", filter="x > 1" if not recorded else "")
        recorded += line.call("a", [request]).filters
    line.now_ms += ENDED_REMEMBERED_MS
    recorded += line.call("a", [Request(Operation.UNADVERTISE, "shop", "one", "a")]).filters
    assert [type(each).__name__ for each in recorded] == ["Advertised", "Unadvertised", "Unremembered"]


def test_changed_methods_narrow_by_and_by() -> None:
    """Started anew with required advertisements, a broker goes on pulling everything for a while."""
    line = Line(COUNTED)
    line.subscribe("ann", "c", "y = 1")
    line.advertise("a", "x > 5 AND y = 2")
    line.settle()
    for name in "abc":
        line.jobs[name] = replace(line.jobs[name], methods=methods(REQUIRED))
        line.shards[name] = Shard(line.jobs[name], 0, line.logs[name])
    for name in "abc":
        line.unadvertise(name, "other")
    line.settle()
    assert "wants 1 filters" in line.told("b", "c")
    assert codes(line.publish("a", {"x": 6, "y": 2}, {"y": 1})) == [Code.NOT_ADVERTISED]
    line.now_ms += LINGER_S * 1_000
    for name in "abc":
        line.unadvertise(name, "other")
    line.settle()
    assert "wants 0 filters" in line.told("b", "c")


def test_a_rebuilt_broker_lets_in_what_was_advertised() -> None:
    """At once, since its publishers were told so; it pulls everything for a while, and answers once more."""
    line = Line()
    line.subscribe("ann", "c", "x > 5")
    line.subscribe("bob", "c", "y = 1")
    recorded = Recorded()
    for request in (
        Request(Operation.ADVERTISE, "shop", "one", "a", filter="x > 1 AND y = 2", request="first"),
        Request(Operation.ADVERTISE, "shop", "two", "a", filter="z = 1", request="second"),
        Request(Operation.UNADVERTISE, "shop", "two", "a", request="third"),
    ):
        for told in line.call("a", [request]).filters:
            recorded.add(told)
    line.settle()
    rebuilt = rebuild(line.jobs["a"], recorded, joined=True, in_force=(), now_ms=line.now_ms + 5)
    line.shards["a"] = Shard(line.jobs["a"], 0, [rebuilt.state])
    line.mail += rebuilt.letters
    assert codes(line.publish("a", {"x": 7, "y": 2}, {"z": 1})) == [Code.NOT_ADVERTISED]
    acks = line.settle()
    assert [(ack.status, ack.id, ack.request) for ack in acks] == [(Status.IN_FORCE, "one", "first")]
    assert "wants 2 filters" in line.told("a", "b")
    assert [each.copy.to for each in line.publish("a", {"x": 7, "y": 2}).forwarded] == ["b"]
    assert line.ask(Operation.ADVERTISE, "shop", "a", "z = 1", "two")[0].number > acks[0].number  # type: ignore[operator]
