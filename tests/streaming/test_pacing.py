"""The limit of a batch: within the goal without a backlog, large with one, and bounded in any case."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from branchline.streaming.pacing import (
    BACKLOG_AFTER,
    BACKLOG_FACTOR,
    BATCH_BYTES,
    CALM_AFTER,
    FIRST_LIMIT,
    LEAST_LIMIT,
    MOST_EVENTS,
    Pace,
    Took,
    taken,
)

GOAL_S = 2.0
SIZE_MOST = round(BATCH_BYTES / 300)
"""As many events of the size that is taken here as a batch may have."""

BATCH_S = GOAL_S / 2
"""An event waits for one batch and is in the next."""

fixed = st.floats(0.05, 0.3)
each = st.floats(5e-6, 1e-4)


def _worked_off(
    pace: Pace, waiting: int, fixed_s: float, each_s: float, requests: int = 0, size: int = 300
) -> Iterator[Took]:
    """The batches of a backlog, by a job for which an event costs so much and a batch so much besides."""
    while waiting:
        events = min(waiting, pace.limit)
        waiting -= events
        took = Took(events, events * size, requests, fixed_s + events * each_s)
        yield took
        pace.after(took)


@given(fixed, each)
def test_a_backlog_is_worked_off_in_large_batches(fixed_s: float, each_s: float) -> None:
    """After a few batches of a backlog, they have the most events, or take as long as they may."""
    *_, last, _ = list(_worked_off(Pace(10 * MOST_EVENTS, GOAL_S), 9_000_000, fixed_s, each_s))
    assert last.events == SIZE_MOST or 0.8 < last.seconds / (BATCH_S * BACKLOG_FACTOR) < 1.01


@given(fixed, each)
def test_bursts_are_taken_within_the_goal(fixed_s: float, each_s: float) -> None:
    """Of bursts that fill a batch soon none takes longer than half the goal, beside what any batch costs."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    for _ in range(10):
        took = list(_worked_off(pace, pace.limit, fixed_s, each_s))
        pace.after(Took(100, 30_000, 0, fixed_s))
    assert took[-1].events == MOST_EVENTS or 0.7 < (took[-1].seconds - fixed_s) / BATCH_S < 1.01


@given(fixed, each)
def test_changes_do_not_wait_for_a_backlog(fixed_s: float, each_s: float) -> None:
    """While subscriptions change, batches of a backlog keep to the goal as well."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    batches = list(_worked_off(pace, 5_000_000, fixed_s, each_s, requests=3))[10:-1]
    within = (took.seconds - fixed_s < 1.01 * BATCH_S for took in batches)
    assert all(fits or took.events == FIRST_LIMIT for took, fits in zip(batches, within, strict=True))


@given(st.floats(0.5, 60), each, st.booleans())
def test_what_a_batch_costs_by_itself_does_not_make_it_small(
    fixed_s: float, each_s: float, changes: bool
) -> None:
    """However slow a machine is, a backlog is worked off in no smaller batches than those at first."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    pace.after(Took(100, 30_000, 0, 0.2))
    pace.after(Took(100, 30_000, 0, 0.2))
    events = [took.events for took in _worked_off(pace, 1_000_000, fixed_s, each_s, requests=int(changes))]
    assert min(events[2:-1]) >= FIRST_LIMIT


def test_a_change_ends_large_batches_at_once_and_for_a_while() -> None:
    """The batch after one with a request keeps to the goal, and so do some more."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    large = [took.events for took in _worked_off(pace, 1_000_000, 0.2, 4e-5)]
    assert large[-2] > 90_000
    for _ in range(4):
        pace.after(Took(pace.limit, 300 * pace.limit, 0, 0.2 + 4e-5 * pace.limit))
    assert pace.limit > 90_000
    for number in range(CALM_AFTER):
        limit = pace.after(Took(pace.limit, 300 * pace.limit, int(number == 0), 0.2 + 4e-5 * pace.limit))
        assert 0.2 + 4e-5 * limit < 1.3 * BATCH_S


def test_the_end_of_a_backlog_ends_large_batches() -> None:
    """With the first batch that is not full, the limit is the goal's again."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    for _ in _worked_off(pace, 1_000_000, 0.2, 4e-5):
        pass
    pace.after(Took(50, 15_000, 0, 0.2))
    assert 0.2 + 4e-5 * pace.limit < 1.5 * BATCH_S


def test_small_batches_say_nothing_of_large_ones() -> None:
    """However long batches of few events and many changes take, the limit stays as it was."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    assert {pace.after(Took(100, 30_000, 1_000, 5.0)) for _ in range(100)} == {FIRST_LIMIT}


def test_a_slow_first_batch_says_nothing() -> None:
    """In the first batch of a job workers and Java begin: its time is not held against it."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    assert pace.after(Took(FIRST_LIMIT, 300 * FIRST_LIMIT, 0, 14.0)) == FIRST_LIMIT
    pace.after(Took(100, 30_000, 0, 0.2))
    assert pace.after(Took(FIRST_LIMIT, 300 * FIRST_LIMIT, 0, 14.0)) < FIRST_LIMIT


def test_large_events_make_small_batches() -> None:
    """No more bytes than are set, as far as the events before say it, and for a while after them too."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    for _ in _worked_off(pace, 1_000_000, 0.1, 1e-6, size=100_000):
        assert pace.limit in (FIRST_LIMIT, BATCH_BYTES // 100_000)
    for _ in range(3):
        pace.after(Took(10, 100, 0, 0.1))
    assert pace.limit < 2 * BATCH_BYTES / 100_000


def test_batches_with_half_of_their_offsets_are_full() -> None:
    """Where every event has a transaction of its own, a backlog is known as well."""
    pace = Pace(MOST_EVENTS, GOAL_S)
    for _ in range(max(BACKLOG_AFTER, CALM_AFTER) + 4):
        events = pace.limit // 2
        pace.after(Took(events, 300 * events, 0, 0.1 + events * 1e-5))
    assert pace.limit == MOST_EVENTS


@given(
    st.integers(1, 10_000_000),
    st.integers(1, 600_000),
    st.lists(
        st.builds(
            Took,
            st.integers(0, 10_000_000),
            st.integers(0, 10**12),
            st.integers(0, 10_000),
            st.floats(0, 1e6),
        ),
        max_size=30,
    ),
)
def test_limits_are_bounded(most: int, goal_ms: int, batches: list[Took]) -> None:
    """Whatever batches had and took: at least one event, at most what was asked for."""
    pace = Pace(most, goal_ms / 1e3)
    assert 1 <= pace.limit <= most
    for took in batches:
        assert 1 <= pace.after(took) <= most
        assert pace.limit >= min(most, LEAST_LIMIT) or any(each.bytes for each in batches)


def test_what_a_batch_had_is_the_sum_of_its_shards() -> None:
    """Requests are counted by one of them; what is for this alone does not go on."""
    counts = [
        {"batch_events": 3, "batch_bytes": 30, "requests": 2, "delivered": 1},
        {"batch_events": 4, "batch_bytes": 40, "requests": 0, "delivered": 0},
    ]
    assert taken(counts, 0.5) == Took(7, 70, 2, 0.5)
    assert counts == [{"requests": 2, "delivered": 1}, {"requests": 0, "delivered": 0}]
