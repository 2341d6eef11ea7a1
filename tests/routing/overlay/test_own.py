"""Answers go where the request came from: to all, or to the subscriber's own acks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay_hands import NOW_MS, Hands, line, renew, subscribe, unsubscribe

from branchline.routing.control import Ack, Identity, Operation, Request, Status
from branchline.routing.limits import LEASE_MIN_MS
from branchline.routing.overlay.letters import Expire, Letter
from branchline.routing.overlay.rebuilding import Recorded, rebuild
from branchline.routing.shard import EventBatch, Job, Shard, ShardState, alone

HOME = "a"
ANN = Identity(HOME, "ann", "one")


def by_own(request: Request) -> Request:
    """The request as it comes by the subscriber's own control topic."""
    return replace(request, own=True)


def routes(acks: Sequence[Ack]) -> list[tuple[Status, bool]]:
    return [(ack.status, ack.own) for ack in acks]


@dataclass(frozen=True, slots=True)
class Step:
    """A request, or a lease that is over, and whether the shard is built anew before it."""

    request: Request | None
    anew: str


requests = st.builds(
    Request,
    st.sampled_from(list(Operation)),
    st.just("ann"),
    st.sampled_from(["one", "two"]),
    st.just(HOME),
    filter=st.sampled_from(["a = 1", "a = 2", "a ="]),
    request=st.none() | st.sampled_from(["r1", "r2", "r3"]),
    lease_ms=st.none() | st.just(LEASE_MIN_MS),
    own=st.booleans(),
)
ends_of_all = st.builds(
    Request,
    st.just(Operation.UNSUBSCRIBE),
    st.just("ann"),
    st.just(""),
    request=st.none() | st.sampled_from(["r1", "r4"]),
    all=st.just(True),
    own=st.booleans(),
)
scripts = st.lists(
    st.builds(
        Step,
        requests | requests | ends_of_all | st.none(),
        st.sampled_from(["", "", "log", "state", "image"]),
    ),
    max_size=12,
)


@given(scripts)
def test_every_answer_goes_where_the_last_request_came_from(script: list[Step]) -> None:
    """To a request: where it was written. Unasked: where the last one was written that was not a repeat.

    Also after the shard was built anew, from its log, a snapshot or an image.
    """
    shard, log, now_ms = Shard(alone(HOME), 0), list[ShardState](), NOW_MS
    last: dict[str, bool] = {}
    for step in script:
        if step.anew == "image":
            image = shard.image()
            assert image is not None
            shard = Shard(alone(HOME), 0, [shard.own_state()], image)
        elif step.anew:
            shard = Shard(alone(HOME), 0, [shard.state()] if step.anew == "state" else log)
        table = shard.brokers[HOME].table
        before = {change.identity.id: change for change in table.of("ann")}
        if step.request is None:
            now_ms += LEASE_MIN_MS
            outputs = shard.handle(now_ms, [], [], EventBatch())
            log += [outputs.changed] if outputs.changed else []
            expiries = [letter for letter in outputs.letters if isinstance(letter.body, Expire)]
            outputs = shard.handle(now_ms, [], expiries, EventBatch())
            assert [ack.own for ack in outputs.acks] == [last[ack.id or ""] for ack in outputs.acks]
        else:
            request = step.request
            outputs = shard.handle(now_ms, [], [request], EventBatch())
            assert {ack.own for ack in outputs.acks} == {request.own}
            refused = any(ack.status is Status.REFUSED for ack in outputs.acks)
            for id_ in before if request.all else [request.id]:
                known = before.get(id_)
                repeated = known is not None and request.request in (*known.requests,)
                changed = table.find(Identity(HOME, "ann", id_)) != known
                if not refused and (changed or not (repeated or request.all)):
                    last[id_] = request.own
        log += [outputs.changed] if outputs.changed else []
        assert {change.identity.id: change.own for change in table.of("ann")} == {
            change.identity.id: last[change.identity.id] for change in table.of("ann")
        }


def test_what_is_in_force_later_is_told_where_the_last_request_came_from() -> None:
    """All that is said once the other broker has reported goes there, and to nobody else."""
    for first, second in ((True, False), (False, True)):
        hands = Hands(line("ab"))
        asked = replace(subscribe(request="r1"), own=first)
        assert routes(hands.call("a", asked).acks) == [(Status.ACCEPTED, first)]
        again = replace(subscribe(request="r2"), own=second)
        assert routes(hands.call("a", again).acks) == [(Status.ACCEPTED, second)]
        hands.acks.clear()
        hands.settle()
        assert routes(hands.acks) == [(Status.IN_FORCE, second)] * 2


def test_neighbours_tell_it_on_so_that_a_rebuild_finds_it() -> None:
    """What another job records of the subscription has it too: whichever record is the last, it is known."""
    hands = Hands(line("ab"))
    hands.call("a", by_own(subscribe(lease_ms=LEASE_MIN_MS)))
    hands.settle()
    known = hands.broker("b").table.find(ANN)
    assert known is not None and known.own
    recorded = Recorded({known.identity: known}, hands.topology)
    job = Job(("a",), hands.topology)
    rebuilt = rebuild(job, recorded, joined=True, in_force=set(), now_ms=NOW_MS)
    shard = Shard(job, 0, [rebuilt.state])
    (change,) = shard.brokers["a"].table.of("ann")
    assert change.own
    expire = Letter("a", "a", Expire(ANN, change.number, change.until_ms or 0))
    outputs = shard.handle(NOW_MS + LEASE_MIN_MS, [], [expire], EventBatch())
    assert routes(outputs.acks) == [(Status.EXPIRED, True)]


@pytest.mark.parametrize("own", [True, False])
def test_removal_is_told_where_the_end_was_asked_for(own: bool) -> None:
    """Also after a snapshot, when the end itself is long forgotten."""
    job = replace(alone(HOME), remove_after_ms=10)
    shard = Shard(job, 0)
    shard.handle(NOW_MS, [], [subscribe(), replace(unsubscribe(), own=own)], EventBatch())
    shard = Shard(job, 0, [shard.state()])
    outputs = shard.handle(NOW_MS + 10, [], [], EventBatch())
    assert routes(outputs.acks) == [(Status.REMOVED, own)]


def test_a_leaving_broker_tells_each_where_it_asked() -> None:
    """Ends that nobody asked for go by each subscription's own way."""
    hands = Hands(line("ab"))
    hands.call("a", by_own(subscribe()), subscribe(subscriber="bob"), by_own(renew(lease_ms=LEASE_MIN_MS)))
    hands.settle()
    hands.acks.clear()
    left = hands.topology.left("a")
    hands.call("a", Letter("a", "b", left))
    assert {(ack.subscriber, ack.own) for ack in hands.acks if ack.status is Status.ENDED} == {
        ("ann", True),
        ("bob", False),
    }
