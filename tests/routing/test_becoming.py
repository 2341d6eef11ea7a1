"""Shards of a job that become one another do what those do that stay what they are."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from overlay_hands import Plain

from branchline.routing.control import Operation, Request
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.shard import Control, EventBatch, Outputs, Shard, ShardState, alone

JOB = alone("main")
NOW_MS = 1_700_000_000_000
LEASE_MS = 60_000


def call(shard: Shard, now_ms: int, control: Sequence[Control]) -> Outputs:
    events = [Arrival(Plain({"n": number})) for number in range(3)]
    return shard.handle(now_ms, (), control, EventBatch(["main"] * len(events), events))


def subscribe(id_: str, lease_ms: int | None = LEASE_MS) -> Request:
    return Request(Operation.SUBSCRIBE, "ann", id_, filter=f"n >= {len(id_)}", lease_ms=lease_ms)


requests = st.one_of(
    st.builds(
        subscribe, st.sampled_from(("a", "bb", "ccc")), st.sampled_from((None, LEASE_MS, 2 * LEASE_MS))
    ),
    st.builds(Request, st.just(Operation.RENEW), st.just("ann"), st.sampled_from(("a", "bb"))),
    st.builds(Request, st.just(Operation.UNSUBSCRIBE), st.just("ann"), st.sampled_from(("a", "bb"))),
)


@given(
    st.lists(st.tuples(st.lists(requests, max_size=3), st.integers(0, LEASE_MS), st.booleans()), max_size=8)
)
def test_what_becomes_another_shard_is_that_shard(steps: list[tuple[list[Request], int, bool]]) -> None:
    """Whoever leads writes the same, expiries included, whether the two change places or not."""
    stay = [Shard(JOB, 0), Shard(JOB, 1)]
    swap = [Shard(JOB, 0), Shard(JOB, 1)]
    now_ms, letters = NOW_MS, list[Control]()
    for asked, later_ms, places in steps:
        now_ms += later_ms
        if places:
            own = [each.own_state() for each in swap]
            swap.reverse()
            for index, shard in enumerate(swap):
                shard.become(index, [own[index]])
        control = [*letters, *asked]
        said = [call(shard, now_ms, control) for shard in stay]
        assert [call(shard, now_ms, control) for shard in swap] == said
        assert [shard.state() for shard in swap] == [shard.state() for shard in stay]
        letters = list(said[0].letters)


def test_what_was_told_and_not_kept_is_told_again() -> None:
    """A batch that told an end of a lease and then failed is run again by the same shard."""
    shard = Shard(JOB, 0)
    call(shard, NOW_MS, [subscribe("a")])
    own = shard.own_state()
    told = call(shard, NOW_MS + LEASE_MS, []).letters
    assert len(told) == 1 and not call(shard, NOW_MS + LEASE_MS, []).letters
    shard.become(0, [own])
    assert call(shard, NOW_MS + LEASE_MS, []).letters == told


def test_nothing_of_its_own_is_left() -> None:
    """A shard that becomes one without anything of its own has nothing."""
    shard = Shard(JOB, 0)
    call(shard, NOW_MS, [subscribe("a")])
    call(shard, NOW_MS + LEASE_MS, [])
    shard.become(1, [])
    assert shard.own_state() == Shard(JOB, 1).own_state() != ShardState()
