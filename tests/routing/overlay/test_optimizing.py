"""The Tree Optimizer as a state machine: its log, its parts, and records that Kafka takes."""

from collections.abc import Iterable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.control import Change, Ended, Identity, Number, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS
from branchline.routing.overlay import optimizing
from branchline.routing.overlay.optimizing import Began, Called, Entry, TreeOptimizer
from branchline.routing.prefix import telling
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.prefix.vocabulary import Fit

FILTERS = [
    *(f"price < {bound}" for bound in (10, 50, 90)),
    *(f"type = '{kind}' AND price BETWEEN {low} AND {low + 30}" for kind in "ab" for low in (0, 20)),
    "origin LIKE 'M%' OR price > 40",
    "1 = 1",
]

settings = st.builds(
    Settings,
    parts=st.integers(1, 3),
    threshold=st.sampled_from([0.0, 0.3, 1.0]),
    limit_ms=st.sampled_from([0, 1_000]),
    snapshot_ms=st.sampled_from([None, 2_500]),
    spare_nodes=st.sampled_from([0, 1_000]),
    snapshot_edges=st.sampled_from([1, 5_000]),
)
steps = st.lists(
    st.tuples(
        st.integers(1, 2_000),
        st.lists(st.tuples(st.integers(0, 5), st.none() | st.sampled_from(FILTERS)), max_size=4),
        st.booleans(),
    ),
    max_size=12,
)


def calls(drawn: Iterable[tuple[int, list[tuple[int, str | None]], bool]]) -> list[Called]:
    """What an optimizer is called with: time goes on, and numbers rise."""
    numbers, now_ms, made = count(1), 0, list[Called]()
    for pause_ms, wishes, asked in drawn:
        now_ms += pause_ms
        changes: list[Change] = []
        for subscriber, text in wishes:
            identity, number = Identity("h", f"s{subscriber}", "x"), Number(1, next(numbers))
            ended = Ended(identity, number, now_ms)
            changes.append(ended if text is None else Subscribed(identity, number, "sql", text))
        made.append(Called(now_ms, tuple(changes), asked))
    return made


@given(settings, steps)
def test_a_log_gives_the_same_optimizer(settings: Settings, drawn: list[tuple]) -> None:  # type: ignore[type-arg]
    """Whoever is restored in the middle tells the same from there on as the one that lived."""
    all_calls = calls(drawn)
    lived, log = TreeOptimizer(7, settings), list[Entry]([Began(7)])
    for called in all_calls:
        restored = TreeOptimizer.restored(log, settings, None)
        assert restored is not None
        told = lived.call(called)
        assert restored.call(called) == told
        assert restored.optimizer.due_ms() == lived.optimizer.due_ms()
        if called.changes or told:
            log.append(called)


@given(settings, steps)
def test_parts_of_their_own_tell_what_all_of_them_together_do(settings: Settings, drawn: list[tuple]) -> None:  # type: ignore[type-arg]
    """One optimizer for each part, each told of everything, is as good as one for all."""
    together = TreeOptimizer(7, settings)
    apart = [TreeOptimizer(7, settings, part) for part in range(settings.parts)]
    for called in calls(drawn):
        told = together.call(called)
        for part, alone in enumerate(apart):
            assert alone.call(called) == [each for each in told if each.part == part]


@given(settings, steps, st.integers(60, 4_000))
def test_records_lead_a_broker_to_the_same_tree(settings: Settings, drawn: list[tuple], limit: int) -> None:  # type: ignore[type-arg]
    """However small a record may be, what the records tell is what was told, over several lives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimizing, "RECORD_MAX_BYTES", limit)
        optimizer, trees = TreeOptimizer(1, settings), Trees(settings.parts)
        for place, called in enumerate(calls(drawn)):
            told = optimizer.call(called)
            records = optimizer.records(told)
            if place % 3 == 2:
                optimizer = optimizer.again(called.now_ms)
                records += optimizer.records(optimizer.call(Called(called.now_ms)))
            for record in records:
                decoded = telling.decode(record)
                assert decoded is not None
                assert trees.apply(decoded) in (Fit.APPLIED, Fit.INCOMPLETE, Fit.OLD)
                things = decoded.born if isinstance(decoded, Update) else decoded.edges + decoded.numbered
                assert len(record) <= limit or len(things) <= 1
            for part, vocabulary in enumerate(trees.vocabularies):
                known = optimizer.optimizer.part(part)
                if vocabulary.version == known.version and known.version.clock:
                    assert vocabulary.digest == known._told.digest
                else:
                    assert not known.version.clock, "what was told has come"


def test_the_first_that_a_life_tells_is_a_snapshot() -> None:
    """A broker that knows an earlier life takes it; an update would be a gap to it."""
    [called] = calls([(1, [(0, FILTERS[0])], False)])
    before, after = TreeOptimizer(1, Settings(threshold=0)), TreeOptimizer(2, Settings(threshold=0))
    for optimizer in (before, after):
        [record] = optimizer.records(optimizer.call(called))
        assert isinstance(telling.decode(record), Snapshot)


def test_ends_are_forgotten_in_time() -> None:
    """What is remembered of ended subscriptions does not grow for ever."""
    optimizer = TreeOptimizer(1)
    optimizer.call(calls([(1, [(0, FILTERS[0])], False)])[0])
    optimizer.call(Called(2, (Ended(Identity("h", "s0", "x"), Number(2, 1), 2),)))
    assert len(optimizer.began().changes) == 1
    optimizer.call(Called(2 + ENDED_REMEMBERED_MS))
    assert optimizer.began().changes == ()
