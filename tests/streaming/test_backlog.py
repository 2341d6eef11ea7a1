"""What was there at the start is told as it is worked off, and is no more once it is."""

from hypothesis import given
from hypothesis import strategies as st

from branchline.streaming.backlog import TELL_EVERY_S, Backlog

ENDS = {"in": {"0": 600, "1": 500}, "broker": {"0": 0}}


def test_it_is_told_now_and_then_and_when_it_is_done() -> None:
    """At most every few seconds; what came since the start does not count."""
    backlog = Backlog(ENDS, batch=100, now_s=10.0)
    assert backlog.fields() is None, "nothing is known before the first batch"
    assert backlog.look({"in": {"0": 150, "1": 50}}, rows=100, now_s=11.0) is None
    assert backlog.fields() == {"records": 1_000, "handled": 100, "rate": 100, "left_s": 9.0}
    told = backlog.look({"in": {"0": 300, "1": 100}}, rows=100, now_s=10.0 + TELL_EVERY_S)
    assert told is not None and "300 of 1,000" in told and "60 a second" in told and "12 s left" in told
    assert backlog.look({"in": {"0": 800, "1": 450}}, rows=100, now_s=16.0) is None
    told = backlog.look({"in": {"0": 800, "1": 500}, "broker": {"0": 7}}, rows=100, now_s=20.0)
    assert told is not None and told.startswith("caught up: 1,000 events")
    assert backlog.fields() is None
    assert backlog.look({"in": {"0": 900, "1": 900}}, rows=100, now_s=40.0) is None


def test_what_fits_a_batch_is_no_backlog() -> None:
    """Nobody wants to hear of it."""
    backlog = Backlog(ENDS, batch=1_000, now_s=0.0)
    assert backlog.look({"in": {"0": 100, "1": 100}}, rows=100, now_s=60.0) is None
    assert backlog.fields() is None


@given(st.lists(st.integers(0, 400), min_size=1, max_size=8), st.integers(1, 300))
def test_what_is_handled_never_falls_and_ends_at_all_of_it(steps: list[int], batch: int) -> None:
    """Whatever the batches are, and whatever comes meanwhile."""
    backlog, at, seen = Backlog({"in": {"0": 1_000}}, batch, 0.0), 0, 0
    for number, step in enumerate([*steps, 1_000], 1):
        at += step
        backlog.look({"in": {"0": at}}, rows=steps[0], now_s=float(number))
        fields = backlog.fields()
        if fields is not None:
            assert seen <= fields["handled"] < fields["records"] == 1_000
            seen = fields["handled"]
    assert backlog.fields() is None
