"""Every class of bad input into a running router, among good events and requests: the good come out exactly.

The page has a table of what was seen; this test compares it, or writes it anew.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event as Signal
from threading import Thread
from typing import Any

import bad_inputs as bad
import pytest
from bad_outcomes import EVERYTHING, Seen, check_table, expected_deliveries
from confluent_kafka import KafkaError, Message
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession
from routers import Site, as_published, ends, read_all
from unreadable import write_unreadable
from waiting import wait_until

from branchline.kafka.asking import ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import DeadLetter, decode_dead_letter
from branchline.kafka.headers import foreign
from branchline.kafka.listing import last_stats
from branchline.kafka.record import Headers, Record
from branchline.kafka.topics import Topics
from branchline.ops.dead_letters import cannot_retry
from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request, Status
from branchline.streaming.job import RouterJob

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ROOM = 100_000
"""What the dead-letter topic takes at once: less than an event may have, so some letters must be cut."""

GOOD = "good"
SUBSCRIBERS = (EVERYTHING, GOOD, *bad.PROBES)
CHURN = 100
DEADLINE_S = 90


@dataclass
class World:
    """A router that was given everything, and what stands in its topics."""

    site: Site
    inputs: list[bad.Bad]
    places: dict[tuple[str, int, int], bad.Bad] = field(default_factory=dict)
    """Where each input was written."""
    not_taken: list[bad.Bad] = field(default_factory=list)
    """Those that Kafka did not take."""
    good: list[bytes] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    deliveries: list[Record] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)

    def topic(self, entrance: str) -> str:
        topics = self.site.topics
        return {
            bad.COPY: topics.broker(bad.BROKER),
            bad.CONTROL: topics.control,
            bad.FILTER: topics.control,
            bad.LINK: topics.link(bad.BROKER),
            bad.UPDATES: topics.rt_updates,
        }.get(entrance, topics.entry(bad.BROKER))

    def write(self, each: bad.Bad) -> None:
        if each.unreadable_name:
            write_unreadable(self.site.cluster, self.topic(each.entrance), each.make(), each.key)
            return

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                assert error.code() == KafkaError.INVALID_TIMESTAMP, f"{each.name}: {error}"
                self.not_taken.append(each)
            self.places[message.topic() or "", message.partition() or 0, message.offset() or 0] = each

        more: dict[str, Any] = {} if each.timestamp_ms is None else {"timestamp": each.timestamp_ms}
        topic = self.topic(each.entrance)
        if more:
            self.site.flush()  # Kafka refuses a whole batch for one record
        self.site.write(topic, each.make(), each.key, each.headers, on_delivery=note, **more)
        if more:
            self.site.flush()

    def publish_good(self) -> None:
        self.good.append(json.dumps({GOOD: len(self.good)}).encode())
        self.site.publish(self.good[-1], GOOD)

    def written(self) -> tuple[int, int]:
        """How many dead letters there are, and how many events that could be read."""
        topics = self.site.topics
        ended = ends(self.site.cluster, [topics.dead_letters, topics.out(EVERYTHING)])
        return ended[topics.dead_letters, 0], ended[topics.out(EVERYTHING), 0]

    def await_all(self, inputs: list[bad.Bad]) -> None:
        """Wait until as many dead letters and deliveries stand there as these and the good must give."""
        self.site.flush()
        letters = sum("dead-letters" in each.where for each in inputs)
        delivered = sum(each.where in GETS for each in inputs) + len(self.good)

        def is_done() -> bool:
            there = self.written()
            return there[0] >= letters and there[1] >= delivered

        wait_until(is_done, DEADLINE_S, f"{letters} dead letters and {delivered} deliveries")


GETS = (bad.DELIVERED, bad.AFRESH, "matched afresh", bad.LETTER_ONE)
"""Where the subscriber of everything gets an event."""


def rejected(inputs: list[bad.Bad]) -> list[bad.Bad]:
    """The events that nobody can use."""
    return [each for each in inputs if each.where == bad.LETTER_EVENT]


@pytest.fixture(scope="module")
def world(spark: SparkSession, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    topics = Topics("badinput")
    small = NewTopic(topics.dead_letters, 1, -1, config={"max.message.bytes": str(ROOM)})
    admin = cluster.admin()
    admin.create_topics([small])[topics.dead_letters].result()
    site = Site(spark, cluster, topics.namespace, tmp_path_factory.mktemp("badinput") / "checkpoint")
    site._producer = cluster.producer(linger_ms=1, message_max_bytes=1_200_000)
    world = World(site, bad.catalogue())
    stop, started = Signal(), Signal()
    job = Thread(target=RouterJob(spark, site.config(), print).run, args=(stop, started))
    job.start()
    try:
        assert started.wait(60)
        run(world)
    finally:
        stop.set()
        job.join()
    records = read_all(cluster, [topics.dead_letters, *map(topics.out, SUBSCRIBERS)])
    world.letters = [decode_dead_letter(each) for each in records if each.place.topic == topics.dead_letters]
    world.deliveries = [each for each in records if each.place.topic != topics.dead_letters]
    world.stats = last_stats(cluster, topics)["router/main"]
    yield world


def run(world: World) -> None:
    """All of it among good events and requests; then a batch that is all bad, and good events again."""
    site = world.site
    wanted = {EVERYTHING: "TRUE", GOOD: f"{GOOD} >= 0", **bad.PROBES}
    requests = [Request(Operation.SUBSCRIBE, name, "p", filter=text) for name, text in wanted.items()]
    answers = ask(site.cluster, site.topics, requests, Status.IN_FORCE, 60)
    assert {answer.status for answer in answers} == {Status.IN_FORCE}
    for number, each in enumerate(world.inputs):
        if number % 3 == 0:
            world.publish_good()
        world.write(each)
    world.await_all(world.inputs)
    # Over and over, in one batch or many.
    churn = [
        Request(operation, "churn", "c", filter="n = 1" if operation is Operation.SUBSCRIBE else "")
        for _ in range(CHURN)
        for operation in (Operation.SUBSCRIBE, Operation.UNSUBSCRIBE)
    ]
    settled = ask(site.cluster, site.topics, churn, Status.ACCEPTED, 60)
    assert {answer.status for answer in settled} == {Status.ACCEPTED, Status.ENDED}
    again = rejected(world.inputs)
    for each in again:
        world.write(each)
    world.await_all([*world.inputs, *again])
    world.publish_good()
    world.await_all([*world.inputs, *again])


def seen(world: World) -> dict[bad.Bad, Seen]:
    """What stands in the topics because of each input, those that were sent again left out."""
    by_key = {each.key: each for each in world.inputs if each.entrance in (bad.EVENT, bad.HEADER, bad.COPY)}
    (nothing,) = (each for each in world.inputs if each.code is Code.EVENT_EMPTY)
    found: dict[bad.Bad, Seen] = defaultdict(Seen)
    repeated = set(rejected(world.inputs))
    for letter in world.letters:
        place = letter.place
        assert place is not None
        source = world.places.get((place.topic, place.partition, place.offset))
        if letter.code == Code.EVENT_EMPTY:
            source = nothing
        elif letter.record.key in by_key:
            source = by_key[letter.record.key]
        assert source is not None, f"a dead letter of nothing that was sent: {letter}"
        if source not in repeated or not found[source].letters:
            found[source].letters.append(letter)
    for record in world.deliveries:
        if record.key in by_key:
            found[by_key[record.key]].delivered.add(world.site.topics.named(record.place.topic) or "")
    for record in world.site.read(world.site.topics.acks):
        ack = json.loads(record.value or b"")
        asked = ack.get("place") or {"topic": "", "partition": 0, "offset": 0}
        source = world.places.get((asked["topic"], asked["partition"], asked["offset"]))
        if source is not None:
            found[source].acks.append(ack)
    return found


def headers_of(each: bad.Bad) -> Headers:
    return (("\ufffd", b""),) if each.unreadable_name else each.headers


def test_every_class_went_where_it_must_and_the_page_says_so(world: World) -> None:
    """Accepted and matched as the oracle says, or rejected with its code and kept; the page has it."""
    found = seen(world)
    rows = []
    for each in world.inputs:
        code, where = found[each].outcome(each.entrance)
        where = bad.NOT_TAKEN if each in world.not_taken else where
        assert (code, where) == (each.code, each.where), f"{each.entrance}: {each.name}"
        if each.where in GETS:
            assert found[each].delivered == expected_deliveries(each, headers_of(each)), each.name
        rows.append((f"`{each.entrance}`", each.name, f"`{code}`" if code else "-", where))
    check_table(
        "Kafka", ("entrance", "class", "code", "where it went"), rows, "tests/streaming/test_bad_input.py"
    )


def test_the_good_come_out_exactly_and_in_order(world: World) -> None:
    """Every good event once, in the order of publication, whatever came between."""
    topic = world.site.topics.out(GOOD)
    assert [each.value for each in world.deliveries if each.place.topic == topic] == world.good


def test_what_is_accepted_arrives_untouched(world: World) -> None:
    """Key, value and foreign headers of what a publisher wrote are as they were, strange as they may be."""
    topic = world.site.topics.out(EVERYTHING)
    arrived = {each.key: as_published(each) for each in world.deliveries if each.place.topic == topic}
    for each in world.inputs:
        if each.where == bad.DELIVERED:
            assert arrived[each.key or b""] == (each.key, each.make(), foreign(headers_of(each)))


def test_the_job_never_restarted(world: World) -> None:
    """Its own statistics say that no batch failed, and count what was rejected."""
    assert (world.stats["state"], world.stats["restarts"]) == ("stopped", 0)
    for_one = [each for each in world.inputs if each.where == "dead-letters, owed to one subscriber"]
    expected = 2 * len(rejected(world.inputs)) + len(for_one)
    assert world.stats["counts"]["rejected"] == expected


def test_what_is_too_large_for_the_dead_letters_is_cut_with_its_digest(world: World) -> None:
    """Each fits its topic; what was cut has the sizes and digests of the original, and cannot be retried."""
    cut = [letter for letter in world.letters if letter.cut is not None]
    assert len(cut) >= 10 and not any(letter.retryable for letter in cut)
    for letter in cut:
        assert len(letter.record.value or b"") < ROOM
        refused = cannot_retry(letter)
        assert letter.place is not None and letter.cut is not None
        assert (
            letter.cut in str(refused)
            and f"offset {letter.place.offset} of {letter.place.topic}" in refused.hint
        )
    whole = [letter for letter in world.letters if letter.cut is None and letter.owed == "event"]
    assert whole and all(letter.retryable for letter in whole)
