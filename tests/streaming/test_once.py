"""Attempts at batches that are to stand exactly once, crossing each other in bad ways. Kafka, but no Spark.

Each way is told as a script of attempts; whoever reads committed records must see every batch once, whole.
The same scripts find the mistakes that such a sink can have: they are made on purpose, one by one.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any

import pytest
from failpoints import arm, await_reached, disarm_all, let_go
from owing import Event, owed

from branchline.kafka import headers as bl
from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dispatch import Dispatch, Step
from branchline.kafka.markers import Marker, ensure_markers, read_markers
from branchline.kafka.owed import Owed
from branchline.kafka.reading import read_to_end
from branchline.kafka.record import Place
from branchline.kafka.topics import DEAD_LETTERS, OUT, Topics
from branchline.streaming.blocks import pack
from branchline.streaming.failpoints import FailpointReached
from branchline.streaming.lots import Lots
from branchline.streaming.once import JobFenced, OnceWriter, Turn
from branchline.streaming.out_topics import OutTopics
from branchline.streaming.writing import SinkFailed

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("failpoints")]

ROWS = 10


@dataclass
class Desk:
    """One shard of a job, attempts at its batches, and what a reader of committed records sees of them."""

    cluster: Cluster
    topics: Topics
    writer: type[OnceWriter] = OnceWriter
    query: str = field(default_factory=lambda: uuid.uuid4().hex)
    written: set[int] = field(default_factory=set)
    """The batches that must be there."""

    def turn(self, batch: int, run: str = "first", **more: Any) -> Turn:
        return Turn(self.topics.markers("main"), self.query, run, batch, **{"plan": f"plan {batch}", **more})

    def attempt(self, turn: Turn) -> dict[str, Any]:
        """Write a batch of ten records; what the sink told."""
        writer = self.writer(self.cluster, self.topics, OutTopics(), turn, 0)
        for block in pack(self.items(turn.batch)):
            writer.take(block)
        writer.finish()
        self.written.add(turn.batch)
        return writer.told()

    def items(self, batch: int) -> Iterator[Dispatch | Owed]:
        """Half of the records in either form."""
        places = [Place(self.topics.entry("main"), 0, batch * ROWS + number, 1) for number in range(ROWS)]
        events: list[Event] = [(place, b"k", b"%d" % place.offset, (), ["ann"]) for place in places]
        for place, key, value, headers, _ in events[: ROWS // 2]:
            id = bl.delivery_id(place, "ann")
            yield Dispatch(Step.WRITE, self.topics.out("ann"), key, value, headers, id)
        yield owed(events[ROWS // 2 :])

    def seen(self) -> list[int]:
        records = read_to_end(self.cluster, self.topics.out("ann"), hint="")
        return [int(record.value or b"-1") for record in records]

    def check(self) -> None:
        """Everything once, in order."""
        assert self.seen() == [
            batch * ROWS + number for batch in sorted(self.written) for number in range(ROWS)
        ]


@pytest.fixture
def desk(cluster: Cluster, namespace: str) -> Iterator[Desk]:
    topics = Topics(namespace)
    ensure_topics(cluster, {topics.dead_letters: DEAD_LETTERS, topics.out("ann"): OUT})
    ensure_markers(cluster, topics.markers("main"), 1)
    yield Desk(cluster, topics)
    disarm_all()


# The scripts


def fails_and_is_repeated(place: str) -> Callable[[Desk], None]:
    """An attempt fails somewhere; the next one, of the same run, writes the batch if it was not written."""

    def script(desk: Desk) -> None:
        desk.attempt(desk.turn(0))
        arm(place)
        with pytest.raises(FailpointReached):
            desk.attempt(desk.turn(1))
        desk.attempt(desk.turn(1))
        desk.attempt(desk.turn(2))

    return script


def commit_in_doubt(place: str) -> Callable[[Desk], None]:
    """An attempt does not hear what became of its commit; it asks, by itself, and goes on."""

    def script(desk: Desk) -> None:
        desk.attempt(desk.turn(0))
        arm(place)
        assert desk.attempt(desk.turn(1))["transactions"] == 1
        desk.attempt(desk.turn(2))

    return script


def late_attempt(place: str) -> Callable[[Desk], None]:
    """An attempt stands still, another one writes the batch and the next, then the first one goes on."""

    def script(desk: Desk) -> None:
        desk.attempt(desk.turn(0))
        arm(place, "hold")
        failures: list[BaseException] = []

        def late() -> None:
            try:
                desk.attempt(desk.turn(1))
            except SinkFailed as error:
                failures.append(error)

        thread = Thread(target=late)
        thread.start()
        await_reached(place)
        desk.attempt(desk.turn(1))
        desk.attempt(desk.turn(2))
        let_go(place)
        thread.join(60)
        assert not thread.is_alive()

    return script


def restart_after_commit(desk: Desk) -> None:
    """All is written, and the run ends before Spark has noted it: the next run does the batch again."""
    desk.attempt(desk.turn(0))
    desk.attempt(desk.turn(1))
    told = desk.attempt(desk.turn(1, "second"))
    assert (told["skipped"], told["differed"]) == (1, 0)
    desk.attempt(desk.turn(2, "second"))


def empty_shard(desk: Desk) -> None:
    """A batch of nothing writes nothing, unless it must say that it was here."""
    turn = desk.turn(0)
    for marks in (False, True):
        OnceWriter(desk.cluster, desk.topics, OutTopics(), replace(turn, must_mark=marks), 0).finish()
        (marker,) = read_markers(desk.cluster, turn.topic, 1)
        assert (marker is not None) is marks


SCRIPTS: dict[str, Callable[[Desk], None]] = {
    "before init": fails_and_is_repeated("sink.before-init"),
    "after init": fails_and_is_repeated("sink.after-init"),
    "during produce": fails_and_is_repeated("sink.during-produce"),
    "after produce": fails_and_is_repeated("sink.after-produce"),
    "after commit": fails_and_is_repeated("sink.after-commit"),
    "commit not sent": commit_in_doubt("sink.commit-not-sent"),
    "commit not heard": commit_in_doubt("sink.commit-not-heard"),
    "late before init": late_attempt("sink.before-init"),
    "late after init": late_attempt("sink.after-init"),
    "late after produce": late_attempt("sink.after-produce"),
    "restart after commit": restart_after_commit,
    "empty shard": empty_shard,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_batch_stands_once(desk: Desk, name: str) -> None:
    """Whatever becomes of attempts at it."""
    SCRIPTS[name](desk)
    desk.check()


# Two copies of a job


def test_a_copy_stops_when_another_has_written(desk: Desk) -> None:
    """One that has written and finds a marker of another run must not go on; the other one may."""
    desk.attempt(desk.turn(0))
    desk.attempt(desk.turn(1, "copy"))
    with pytest.raises(JobFenced, match=JobFenced.MARK):
        desk.attempt(desk.turn(2, committed=frozenset({0})))
    desk.attempt(desk.turn(2, "copy", committed=frozenset({0})))
    desk.check()


def test_a_batch_of_another_run_is_not_taken_for_its_own(desk: Desk) -> None:
    """A copy that planned a batch by itself has other input in it than the one that was written."""
    desk.attempt(desk.turn(0))
    desk.attempt(desk.turn(1))
    with pytest.raises(JobFenced):
        desk.attempt(desk.turn(1, "copy", plan="another"))
    desk.check()


# Mistakes that are made on purpose


class ReadsBeforeInit(OnceWriter):
    def _begin(self) -> tuple[Any, Marker | None]:
        marker = self._marker()
        producer, _ = super()._begin()
        return producer, marker


class SkipsTheMarker(OnceWriter):
    def _begin(self) -> tuple[Any, Marker | None]:
        return super()._begin()[0], None


class TrustsTheBatchNumber(OnceWriter):
    """Takes a marker of an earlier batch for one of this batch."""

    def _begin(self) -> tuple[Any, Marker | None]:
        producer, marker = super()._begin()
        return producer, marker and replace(marker, batch=marker.batch + 1)


class NeverFences(OnceWriter):
    """Every attempt has a transactional id of its own."""

    def __init__(self, cluster: Cluster, topics: Topics, out: OutTopics, turn: Turn, shard: int) -> None:
        super().__init__(cluster, topics, out, turn, shard)
        self._turn = _OwnId(**{name: getattr(turn, name) for name in Turn.__slots__})


class _OwnId(Turn):
    def transactional_id(self, shard: int) -> str:
        return uuid.uuid4().hex


class TakesDoubtForFailure(OnceWriter):
    """Writes again what it did not hear of, without asking."""

    def finish(self) -> None:
        asked = self._marker
        self._marker = lambda: None if self._told.get("asked") else asked()  # type: ignore[method-assign]
        write = self._write

        def written(producer: Any) -> Any:
            self._told["asked"] = 1
            return write(producer)

        self._write = written  # type: ignore[method-assign]
        super().finish()


class MarksApart(OnceWriter):
    """Writes the marker before the records, in a transaction of its own."""

    def _write(self, producer: Any) -> Any:
        records, self._records = self._records, Lots()
        super()._write(producer)
        self._records = records
        return super()._write(self._begin()[0])


class ForgetsThePlan(OnceWriter):
    """Takes a batch of the same number for the same batch."""

    def _begin(self) -> tuple[Any, Marker | None]:
        producer, marker = super()._begin()
        return producer, marker and replace(marker, plan=self._turn.plan)


MISTAKES: dict[type[OnceWriter], str] = {
    ReadsBeforeInit: "late before init",
    SkipsTheMarker: "restart after commit",
    TrustsTheBatchNumber: "before init",
    NeverFences: "late after produce",
    TakesDoubtForFailure: "commit not heard",
    MarksApart: "during produce",
}
"""Each with a script that finds it."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(desk: Desk, mistake: type[OnceWriter]) -> None:
    """With any of them something is missing, or there twice, or the sink itself is at a loss."""
    desk.writer = mistake
    with pytest.raises((AssertionError, pytest.fail.Exception, SinkFailed)):
        SCRIPTS[MISTAKES[mistake]](desk)
        desk.check()


def test_forgetting_the_plan_is_found(desk: Desk) -> None:
    """It takes for written what another copy wrote of other input."""
    desk.writer = ForgetsThePlan
    with pytest.raises(pytest.fail.Exception):
        test_a_batch_of_another_run_is_not_taken_for_its_own(desk)
