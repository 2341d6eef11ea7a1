"""A bridge between two real Kafkas: every record exactly once, untouched and in order, whatever dies."""

import itertools
import json
import random
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bridges import DEADLINE_S, Pair, by_partition, carrying
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from routers import ends, read_all
from unreadable import write_unreadable
from waiting import wait_until

from branchline.kafka import bridge as supervising
from branchline.kafka import carrying as writing
from branchline.kafka import headers as bl
from branchline.kafka.admin import cluster_id, ensure_topics
from branchline.kafka.bridge import Bridge
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.ends import Ends
from branchline.kafka.errors import BridgeFenced, ConfigError, MarkDiffers, SourceGap
from branchline.kafka.marks import Partition, encode_mark
from branchline.kafka.returning import Returning
from branchline.kafka.topics import TopicKind
from branchline.ops.status import gather
from branchline.routing.codes import Code
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.trees import UNMATCHED

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def pair(cluster: Cluster, elsewhere: EmbeddedKafka, namespace: str, tmp_path: Path) -> Pair:
    elsewhere.start()
    return Pair(cluster, Cluster(elsewhere.bootstrap), namespace, tmp_path)


def test_records_pass_untouched_and_in_order(pair: Pair) -> None:
    """Key, value, all headers, timestamp and partition arrive as they were; what was aborted does not.

    A second run carries nothing, and what it has marked is all there is, the ends of transactions included.
    """
    pair.link("away-1")
    topics = [pair.topics.broker("away-1"), pair.topics.link("away-1")]
    headers = (("trace", b"1"), ("trace", b"2"), ("none", None), (bl.ORIGIN, b"in:0:1:2"), ("bl-x", b"\xff"))
    hour_ago_ms = int(time.time() * 1000) - 3_600_000  # what is older than its topic keeps is dropped
    for number in range(300):
        key = None if number % 5 == 0 else f"key-{number % 7}".encode()
        value = None if number % 11 == 0 else b"\x00\xff" * number
        pair.write(topics[0], key, value, headers[: number % 6], timestamp=hour_ago_ms + number)
        pair.write(topics[1], b"here", str(number).encode())
    pair.flush()
    transactions = pair.home.producer(transactional_id=pair.namespace)
    transactions.init_transactions(DEADLINE_S)
    for number in range(4):
        transactions.begin_transaction()
        transactions.produce(topics[0], str(number), partition=number % 2)
        transactions.flush()
        (transactions.commit_transaction if number < 2 else transactions.abort_transaction)(DEADLINE_S)
    bridge = pair.once()
    assert bridge.counts["records"] == 602
    assert by_partition(pair.arrived(*topics)) == by_partition(read_all(pair.home, topics))
    again = pair.once()
    assert again.counts["records"] == 0 and len(pair.arrived(*topics)) == 602
    assert again.positions == ends(pair.home, [*topics, pair.topics.rt_updates])


def test_a_target_with_fewer_partitions_keeps_order_per_key(pair: Pair) -> None:
    """A partition that the target has is kept, others go by key; those without a key stay together."""
    wide = TopicKind("broker.<broker>", "", 5, 10_000_000)
    topic = pair.topics.broker("away-1")
    ensure_topics(pair.home, {topic: wide})
    pair.link("away-1")
    for number in range(200):
        place = number % 5
        pair.write(
            topic, f"key-{place}".encode() if number % 2 else None, str(number).encode(), partition=place
        )
    pair.flush()
    pair.once()
    streams: dict[tuple[bytes | None, int], list[tuple[int, int]]] = {}
    for record in pair.arrived(topic):
        number = int(record.value or b"")
        streams.setdefault((record.key, number % 5), []).append((record.place.partition, number))
    assert sum(map(len, streams.values())) == 200 and len(streams) == 10
    for (_, place), stream in streams.items():
        partitions, numbers = {each for each, _ in stream}, [number for _, number in stream]
        assert len(partitions) == 1 and numbers == sorted(numbers)
        assert place > 1 or partitions == {place}


def test_kill_at_random_moments_neither_loses_nor_repeats(pair: Pair) -> None:
    """The process is killed at seeded moments while it carries; whoever reads committed sees all once."""
    draw = random.Random(11)
    pair.link("away-1")
    topics = [pair.topics.broker("away-1"), pair.topics.link("away-1")]
    value = b"x" * 100
    numbers = itertools.count()
    seen, cut_off = [], 0
    for _ in range(3):
        # More each time: a fast machine may have carried all before it is killed.
        for number in itertools.islice(numbers, 20_000):
            pair.write(topics[0], str(number % 50).encode(), b"%d %b" % (number, value))
            if number % 25 == 0:
                pair.write(topics[1], b"here", str(number).encode())
        pair.flush()
        process = pair.process()
        wait_until(lambda process=process: "carrying" in process.said(), DEADLINE_S, "it runs")  # type: ignore[misc]
        threading.Event().wait(draw.random() * 0.5)  # not for a condition: the moment is the point
        process.kill()
        seen.append(sum(ends(pair.away, topics).values()))
        cut_off += len(pair.arrived(*topics)) < sum(ends(pair.home, topics).values())
    assert cut_off, "a kill must come before the end"
    process = pair.process("--once", "--json")
    assert process.child.wait(DEADLINE_S) == 0, process.said()
    *_, last = process.said().splitlines()
    assert json.loads(last)["restarts"] == 0
    arrived = pair.arrived(*topics)
    assert by_partition(arrived) == by_partition(read_all(pair.home, topics))
    # Besides what was rolled back there are only the ends of transactions.
    rolled_back = sum(ends(pair.away, topics).values()) - len(arrived)
    print(f"offsets at the target after each kill: {seen}; {rolled_back} rolled back; the last run: {last}")
    process = pair.process()
    wait_until(lambda: "carrying" in process.said(), DEADLINE_S, "it runs")
    assert process.end() == 0
    assert "bridge: ended, 0 records carried" in process.said()


def test_a_new_broker_is_followed_and_a_target_that_is_down_is_waited_for(
    pair: Pair, elsewhere: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a restart: a broker added later is carried, its topics are made, and an outage is told once."""
    monkeypatch.setattr(writing, "COMMIT_TIMEOUT_S", 0.5)
    pair.link("away-1")
    topics = [pair.topics.broker("away-1"), pair.topics.broker("away-2")]
    bridge = Bridge(pair.ends(), pair.said.append)
    with carrying(bridge):
        pair.write(topics[0], b"k", b"1")
        pair.flush()
        pair.await_arrival(1, topics[0])
        pair.link("away-1", "away-2", number=2)
        pair.write(topics[1], b"k", b"2")
        pair.flush()
        pair.await_arrival(1, topics[1])
        elsewhere.stop()
        for number in range(100):
            pair.write(topics[number % 2], b"k", str(number).encode())
        pair.flush()
        wait_until(
            lambda: any("away does not answer" in each for each in pair.said), DEADLINE_S, "it is told"
        )
        wait_until(lambda: _job(pair)["state"] == "failed" and _job(pair)["lag"] == 100, DEADLINE_S, "lag")
        elsewhere.start()
        pair.await_arrival(102, *topics)
        wait_until(lambda: _job(pair)["running"], DEADLINE_S, "status says so")
    assert by_partition(pair.arrived(*topics)) == by_partition(read_all(pair.home, topics))
    assert (
        sum("waiting" in each for each in pair.said)
        == sum("running again" in each for each in pair.said)
        == 1
    )
    status = gather(pair.home, pair.topics, 0)
    inputs = {each["topic"]: (each["lag"], each["reader"]) for each in status["inputs"]}
    assert inputs[topics[0]] == (0, "bridge home-away")
    assert inputs[pair.topics.entry("here")] == (0, None), "no router has run here"


def _job(pair: Pair) -> dict[str, object]:
    [job] = gather(pair.home, pair.topics, time.time())["jobs"]
    assert isinstance(job, dict)
    return job


def test_a_second_copy_takes_over_and_the_first_ends(pair: Pair) -> None:
    """Only one of them goes on; the other says why it does not, and nothing is carried twice."""
    pair.link("away-1")
    topic = pair.topics.broker("away-1")
    first, second = (Bridge(pair.ends(), pair.said.append) for _ in range(2))
    with pytest.raises(BridgeFenced, match="another copy") as fenced, carrying(first):
        pair.write(topic, b"k", b"0")
        pair.flush()
        pair.await_arrival(1, topic)
        with carrying(second):
            wait_until(lambda: second.counts["transactions"], DEADLINE_S, "the second runs")
            for number in range(1, 50):
                pair.write(topic, b"k", str(number).encode())
            pair.flush()
            pair.await_arrival(50, topic)
            wait_until(lambda: not first.is_running, DEADLINE_S, "the first ends")
        assert second.counts["records"] == 49
    assert "only one can run" in fenced.value.hint
    assert [record.value for record in pair.arrived(topic)] == [str(number).encode() for number in range(50)]


def test_a_transaction_that_kafka_gave_up_ends_nobody(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fenced without another copy, as after a long pause of the process, the bridge goes on."""
    monkeypatch.setattr(supervising, "CLAIM_WAIT_S", 0.5)
    pair.link("away-1")
    topic = pair.topics.broker("away-1")
    bridge = Bridge(pair.ends(), pair.said.append)
    with carrying(bridge):
        pair.write(topic, b"k", b"0")
        pair.flush()
        pair.await_arrival(1, topic)
        # What Kafka does to a transaction that takes too long: the producer's epoch is over.
        pair.away.producer(transactional_id=pair.ends().transactional_id).init_transactions(DEADLINE_S)
        pair.write(topic, b"k", b"1")
        pair.flush()
        pair.await_arrival(2, topic)
    assert [record.value for record in pair.arrived(topic)] == [b"0", b"1"]
    assert bridge.restarts == 1 and any("fenced" in each for each in pair.said)


def test_updates_of_the_tree_do_not_run_in_circles(pair: Pair) -> None:
    """With bridges both ways, and others beyond, an update comes to a cluster once by each way, and stops."""
    there, back = pair.ends(), Ends("away", pair.away, "home", pair.home, pair.namespace)
    topic = pair.topics.rt_updates
    pair.write(topic, None, b"made here", [("x", b"y")])
    pair.write(topic, None, b"from a third", [(bl.PATH, b"third")])
    pair.write(topic, None, b"came from there", [(bl.PATH, b"third,away,fourth")])
    pair.flush()
    pair.once(there)
    ensure_topics(pair.away, pair.topics.of_broker("beyond"))
    circles = [bridge.counts["circular"] for bridge in (pair.once(back), pair.once(there), pair.once(back))]
    assert circles == [2, 0, 0]
    assert [(record.value, record.headers) for record in pair.arrived(topic)] == [
        (b"made here", (("x", b"y"), (bl.PATH, b"home"))),
        (b"from a third", ((bl.PATH, b"third,home"),)),
    ]
    assert len(read_all(pair.home, [topic])) == 3


def test_what_the_target_refuses_is_a_dead_letter_and_stops_nothing(pair: Pair) -> None:
    """Each is one dead letter at the source, owed as its header says; all others arrive, in order."""
    pair.link("away-1")
    topic, letters = pair.topics.broker("away-1"), pair.topics.dead_letters
    ensure_topics(pair.away, pair.topics.of_neighbour("away-1"))
    _configure(pair.away, topic, "max.message.bytes", 20_000)
    _configure(pair.home, topic, "message.timestamp.after.max.ms", 2**62)
    origin, large = b"x.in.here:0:7:1700000000000", b"l" * 30_000
    scope = (bl.PREFIX, encode(Header(UNMATCHED, 0b110, 1, 1)))
    for number in range(60):
        headers = [(bl.ORIGIN, origin), *([scope] if number != 40 else [(bl.ONLY, b"ann")])]
        pair.write(topic, b"k", large if number in (7, 40) else str(number).encode(), headers)
    pair.write(pair.topics.link("away-1"), b"here", b"a letter")
    pair.flush()
    bridge = pair.once()
    assert (bridge.counts["records"], bridge.counts["diverted"]) == (59, 2)
    # That a time far ahead is refused, only the target can say.
    pair.write(topic, b"k", b"60", timestamp=4_000_000_000_000)
    pair.write(topic, b"k", b"61")
    pair.flush()
    record = next(each for each in read_all(pair.home, [topic]) if each.value == large)
    write_unreadable(pair.home, topic, b"unreadable")
    bridge = pair.once()
    assert (bridge.counts["records"], bridge.counts["diverted"]) == (1, 2)
    numbers = [int(record.value or b"") for record in pair.arrived(topic)]
    assert numbers == [number for number in range(62) if number not in (7, 40, 60)]
    dead = [decode_dead_letter(record) for record in read_all(pair.home, [letters])]
    assert [(each.code, each.owed, each.record.value) for each in dead] == [
        (Code.OUTPUT_REFUSED, "scope:6", large),
        (Code.OUTPUT_REFUSED, "subscriber:ann", large),
        (Code.OUTPUT_REFUSED, "event", b"60"),
        (Code.OUTPUT_REFUSED, "event", b"unreadable"),
    ]
    assert all(each.retryable for each in dead)
    assert str(dead[0].place).encode() == origin
    # As if the process had died after it wrote the letter, and before it marked the record.
    returning = Returning(pair.home, pair.topics)
    assert not returning.put(record, "again", look_first=True)
    assert returning.put(replace(record, place=replace(record.place, offset=10_000)), "new", look_first=True)


def _configure(cluster: Cluster, topic: str, name: str, value: int) -> None:
    entry = ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = cluster.admin()
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def test_what_is_gone_is_never_stepped_over_in_silence(pair: Pair) -> None:
    """A gap ends the bridge with what is missing; --skip-lost goes on. Another cluster's marks are none."""
    pair.link("away-1")
    topic = pair.topics.link("away-1")
    pair.write(topic, b"here", b"0")
    pair.flush()
    pair.once()
    for number in range(1, 6):
        pair.write(topic, b"here", str(number).encode())
    pair.flush()
    admin = pair.home.admin()
    for future in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        future.result()
    with pytest.raises(SourceGap, match=r"begins with offset 3, and 1 to 2 were never carried") as gap:
        pair.once()
    assert "--skip-lost" in gap.value.hint
    assert pair.once(skip_lost=True).counts["records"] == 3
    assert [record.value for record in pair.arrived(topic)] == [b"0", b"3", b"4", b"5"]

    _mark(pair, (topic, 0), 99, cluster_id(pair.home))
    with pytest.raises(SourceGap, match="carried up to offset 99 and ends at 6"):
        pair.once()
    _mark(pair, (topic, 0), 6, "another")
    with pytest.raises(MarkDiffers, match="of the cluster another"):
        pair.once()
    with pytest.raises(ConfigError, match="are one Kafka cluster"):
        pair.once(Ends("home", pair.home, "away", pair.home, pair.namespace))


def _mark(pair: Pair, partition: Partition, offset: int, source_id: str) -> None:
    """Write a mark as if a bridge had come so far."""
    producer = pair.away.producer()
    key, value = encode_mark(partition, offset, source_id)
    producer.produce(pair.topics.bridge("home"), value, key)
    producer.flush()
