"""The router job on real Kafka and Spark: scripts of subscribe, publish, stop, start, and check."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession
from routers import Site, as_published, delivery_id, running

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import retry_headers
from branchline.kafka.errors import CheckpointDiffers, ClusterUnreachable
from branchline.kafka.letters import decode_letter, encode_letter
from branchline.kafka.listing import list_subscriptions
from branchline.kafka.messages import encode_proposal
from branchline.routing.codes import Code
from branchline.routing.control import Ended, Identity, Number, Status, Subscribed
from branchline.routing.limits import EVENT_MAX_BYTES
from branchline.routing.overlay.letters import Complete, Letter, Propose
from branchline.routing.overlay.topology import Topology, founded
from branchline.streaming import state
from branchline.streaming.job import RouterJob
from branchline.streaming.source import shard_labels

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture(scope="module")
def site(spark: SparkSession, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One running router for the tests that need no other; each uses subscribers of its own."""
    with running(Site(spark, cluster, "router", tmp_path_factory.mktemp("router") / "checkpoint")) as site:
        yield site


def test_subscriptions_live_across_restarts(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Subscribe, replace, unsubscribe and resubscribe, with restarts between: the state is the truth."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint")
    with running(site):
        first = site.subscribe("ann", "n < 10")
        site.subscribe("bob", "n >= 10")
        site.publish('{"n": 1}')
        site.publish('{"n": 11}')
        assert (site.delivered("ann"), site.delivered("bob")) == ([b'{"n": 1}'], [b'{"n": 11}'])
    site.publish('{"n": 2}')
    with running(site):
        assert site.delivered("ann") == [b'{"n": 1}', b'{"n": 2}']
        replaced = site.subscribe("ann", "n >= 5")
        site.publish('{"n": 3}')
        site.publish('{"n": 7}')
        assert site.delivered("ann")[2:] == [b'{"n": 7}']
        ended = site.unsubscribe("ann")
        site.publish('{"n": 8}')
        assert site.delivered("ann")[3:] == []
    with running(site):
        again = site.subscribe("ann", "n = 9")
        site.publish('{"n": 9}')
        site.publish('{"n": 10}')
        assert site.delivered("ann")[3:] == [b'{"n": 9}']
    numbers = [answer.number for answer in (first, replaced, ended, again)]
    assert numbers == sorted(set(numbers)), "each change has a higher number, across restarts too"
    standing = {str(change.identity): change.filter for change in list_subscriptions(cluster, site.topics)}
    assert standing == {"main/ann/default": "n = 9", "main/bob/default": "n >= 10"}


def test_key_value_and_foreign_headers_arrive_untouched(site: Site) -> None:
    """What a publisher wrote comes out byte for byte; forged headers of ours do not."""
    site.subscribe("carl", "kafka.header.batch = 'untouched'")
    mark = ("batch", b"untouched")
    records = [
        (b"\x00\xff", b"\xfe not text \x00", (mark, ("null", None), ("empty", b""))),
        (None, b'{"a": 1}  \n', (mark, ("twice", b"1"), ("twice", b"2"), ("bytes", b"\xff\x00"))),
        (b"", b"", (mark,)),
        (b"key", None, (mark, ("content-type", b"text/plain"))),
        ("schlüssel".encode(), '{"straße": "ñ"}'.encode(), (mark, ("ünicode", "é".encode()))),
    ]
    for key, value, headers in records:
        site.publish(value, key, (("bl-id", b"forged"), *headers, ("bl-only", b"mallory")))
    site.delivered("carl")
    got = site.read(site.topics.out("carl"))
    assert sorted(map(as_published, got), key=repr) == sorted(records, key=repr)
    for record in got:
        topic, partition, offset, timestamp, subscriber = delivery_id(record).split(":")
        assert (topic, subscriber) == (site.topics.entry("main"), "carl")
        [source] = [
            each
            for each in site.read(topic)
            if (each.place.partition, each.place.offset) == (int(partition), int(offset))
        ]
        assert source.place.timestamp_ms == int(timestamp)
        assert (source.key, source.value) == (record.key, record.value)
        assert [name for name, _ in record.headers if name.startswith("bl-")] == ["bl-id"]


def test_a_subscriber_gets_an_event_once_however_many_of_its_subscriptions_match(site: Site) -> None:
    """Several subscriptions of one subscriber are one topic and one delivery an event."""
    site.subscribe("dora", "dora > 1", id="low")
    site.subscribe("dora", "dora > 2", id="high")
    for number in (1, 2, 3):
        site.publish(json.dumps({"dora": number}), key="k")
    assert site.delivered("dora") == [b'{"dora": 2}', b'{"dora": 3}']


def test_bad_control_is_answered_and_quarantined(site: Site) -> None:
    """A message that is no request goes to dead letters and is refused on acks; a bad filter says where."""
    bad = {
        Code.CONTROL_INVALID: b"not json",
        Code.CONTROL_VERSION: b'{"version": 2, "op": "subscribe", "subscriber": "eve", "request": "v"}',
        Code.CONTROL_OPERATION: b'{"version": 1, "op": "delete", "subscriber": "eve", "request": "o"}',
        Code.NAME_INVALID: b'{"version": 1, "op": "unsubscribe", "subscriber": "E.V.E", "request": "n"}',
    }
    for value in bad.values():
        site.write(site.topics.control, value, "eve")
    refused = site.subscribe("eve", "price <\n  AND 3")
    assert (refused.status, refused.code, refused.line, refused.column) == (
        Status.REFUSED,
        Code.FILTER_SYNTAX,
        2,
        3,
    )
    letters = {letter.code: letter for letter in site.dead_letters() if letter.code in bad}
    assert {code: letter.record.value for code, letter in letters.items()} == bad
    assert {letter.owed for letter in letters.values()} == {"nothing"}
    answers = {answer.code: answer for answer in site.acks() if answer.code in bad}
    assert answers.keys() == bad.keys()
    assert (answers[Code.CONTROL_VERSION].subscriber, answers[Code.CONTROL_VERSION].request) == ("eve", "v")


def test_a_repeated_request_changes_nothing_and_is_answered_again(site: Site) -> None:
    """The same request written twice, even after a later one, leaves the later one standing."""
    first = {"version": 1, "op": "subscribe", "subscriber": "fay", "filter": "fay = 1", "request": "one"}
    second = {**first, "filter": "fay = 2", "request": "two"}
    for message in (first, second, first, second, first):
        site.write(site.topics.control, json.dumps(message), "fay")
    site.flush()
    site.settle()
    site.publish('{"fay": 1}')
    site.publish('{"fay": 2}')
    assert site.delivered("fay") == [b'{"fay": 2}']
    accepted = [ack for ack in site.acks() if (ack.subscriber, ack.status) == ("fay", Status.ACCEPTED)]
    assert len(accepted) == 5
    assert len({ack.number for ack in accepted}) == 2


def test_stragglers_between_brokers_change_nothing(site: Site) -> None:
    """A change told on the link topic with a number not above the last seen is ignored."""
    identity = Identity("main", "gus", "default")

    def told(change: Subscribed | Ended) -> None:
        for key, value in encode_letter(Letter("main", "elsewhere", change)):
            site.write(site.topics.link("main"), value, key)

    told(Subscribed(identity, Number(5, 2), "sql", "gus = 2"))
    told(Subscribed(identity, Number(5, 1), "sql", "gus = 1"))
    told(Subscribed(identity, Number(4, 9), "sql", "gus = 9"))
    told(Ended(identity, Number(5, 2), 0))
    site.flush()
    site.settle()
    for number in (1, 2, 9):
        site.publish(json.dumps({"gus": number}), key="k")
    assert site.delivered("gus") == [b'{"gus": 2}']


def test_a_retried_dead_letter_keeps_its_identity_and_its_addressee(site: Site) -> None:
    """Retrying what is owed to one subscriber delivers it there alone, with the original place in its id."""
    arrays = json.dumps({"hal": [1] * 120, "other": [2] * 120, "kind": "retry"})
    site.subscribe("hal", "hal = 1 AND other = 2")
    site.subscribe("ida", "kind = 'retry'")
    site.publish(arrays, key="k")
    assert (site.delivered("hal"), site.delivered("ida")) == ([], [arrays.encode()])
    [letter] = [each for each in site.dead_letters() if each.owed == "subscriber:hal"]
    assert (letter.code, letter.record.value) == (Code.TOO_MANY_CHOICES, arrays.encode())

    site.subscribe("hal", "kind = 'retry'")
    site.write(site.topics.broker("main"), letter.record.value, letter.record.key, retry_headers(letter))
    assert (site.delivered("hal"), site.delivered("ida")) == ([arrays.encode()], [arrays.encode()])
    [record] = site.read(site.topics.out("hal"))
    assert delivery_id(record) == f"{letter.place}:hal"


def test_a_record_that_its_topic_refuses_stops_nobody(site: Site) -> None:
    """What a subscriber's topic does not take is a dead letter owed to it; everybody else gets theirs."""
    small = NewTopic(site.topics.out("jan"), 1, -1, config={"max.message.bytes": "2000"})
    admin = site.cluster.admin()
    admin.create_topics([small])[site.topics.out("jan")].result()
    site.subscribe("jan", "jan > 0")
    site.subscribe("kim", "jan > 0")
    events = [json.dumps({"jan": number, "fill": "x" * 5000 * (number % 2)}).encode() for number in (1, 2, 3)]
    for event in events:
        site.publish(event, key="k")
    assert site.delivered("jan") == [events[1]]
    assert site.delivered("kim") == events
    owed = [letter for letter in site.dead_letters() if letter.owed == "subscriber:jan"]
    assert [(letter.code, letter.record.value) for letter in owed] == [
        (Code.OUTPUT_REFUSED, events[0]),
        (Code.OUTPUT_REFUSED, events[2]),
    ]


def test_an_oversize_event_is_quarantined_with_a_digest(site: Site) -> None:
    """An event beyond the limit is cut in its dead letter, and cannot be retried from it."""
    site.publish(b"x" * (EVENT_MAX_BYTES + 1), key="oversize")
    site.flush()
    site.settle()
    [letter] = [each for each in site.dead_letters() if each.code == Code.EVENT_TOO_LARGE]
    assert letter.record.value == b"x" * EVENT_MAX_BYTES
    assert letter.cut is not None and "sha256" in letter.cut and not letter.retryable


def test_a_topology_with_a_neighbour_that_does_not_run_stops_nobody(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Its mail waits in topics made for it; whoever was in force before gets its events as before."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint")
    with running(site):
        site.subscribe("mia", "n > 0")
        topology = founded(["main"]).joined("second", {"main": 1})
        site.write(site.topics.control, encode_proposal(Propose(topology, "t1")))
        site.publish('{"n": 1}')
        assert site.delivered("mia") == [b'{"n": 1}']
        assert [ack.status for ack in site.acks() if ack.request == "t1"] == [Status.ACCEPTED]
        told = [decode_letter("second", record.value) for record in site.read(site.topics.link("second"))]
        assert [type(letter.body) for letter in told if isinstance(letter, Letter)] == [
            Topology,
            Subscribed,
            Complete,
        ]
        assert site.topics.broker("second") in list_topics(cluster)
    with running(site):
        site.publish('{"n": 2}')
        assert site.delivered("mia") == [b'{"n": 1}', b'{"n": 2}']


def test_every_shard_has_a_partition_of_its_own(spark: SparkSession) -> None:
    """Spark's own hash puts the i-th label into partition i, for every number of shards."""
    for shards in (1, 2, 3, 7, 16):
        labels = shard_labels(spark, shards)
        frame = spark.createDataFrame([(label,) for label in labels], "label int")
        placed = frame.selectExpr(f"pmod(hash(label), {shards}) AS partition").collect()
        assert [row["partition"] for row in placed] == list(range(shards))


def test_a_checkpoint_of_other_shards_or_layout_is_refused(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that this job could only misread is refused with what to do, never used."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint")
    with running(site):
        site.subscribe("leo", "TRUE")
        site.settle()  # acked is not yet committed: a batch cut off now would simply be run again
    site.shards = 4
    with pytest.raises(CheckpointDiffers, match="shards 2"):
        site.start()
    site.shards = 2

    site.publish('{"n": 1}')
    site.flush()
    monkeypatch.setattr(state, "LAYOUT_VERSION", state.LAYOUT_VERSION + 1)
    with pytest.raises(CheckpointDiffers, match="another layout"):
        RouterJob(spark, site.config(), lambda message: None).run(Event())


def test_nobody_gets_in_without_the_password(cluster: Cluster) -> None:
    """The suite's Kafka refuses a client without its properties: so all the others did sign in."""
    if not cluster.properties:
        pytest.skip("a Kafka in a container asks for no password")
    with pytest.raises(ClusterUnreachable):
        list_topics(Cluster(cluster.bootstrap), timeout_s=2)
