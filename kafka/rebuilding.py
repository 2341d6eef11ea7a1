"""What a rebuild reads from Kafka, and what it writes there before the job goes on.

The order of writing is that of a router: `filters` before letters and acks. All of it may be written twice,
should a rebuild end half-way and be started again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from confluent_kafka import TopicPartition

from branchline.kafka.admin import create_topics, ensure_topics, list_topics
from branchline.kafka.advertisements import identity_of_key
from branchline.kafka.cluster import Cluster
from branchline.kafka.dispatch import acks_of
from branchline.kafka.errors import ClusterUnreachable, JobFailed, PublishFailed
from branchline.kafka.fields import FORMAT_VERSION, UNFIT, counted, dump, items
from branchline.kafka.jsontext import read_json
from branchline.kafka.letters import TOPOLOGY_KEY, decode_recorded, encode_letter, encode_recorded
from branchline.kafka.listing import NO_NAMESPACE, STATS_MAX_FIELDS, offsets
from branchline.kafka.messages import encode_ack, encode_tick
from branchline.kafka.reading import READER_GROUP, START_TIMEOUT_S, read_to_end
from branchline.kafka.record import Record
from branchline.kafka.topics import OWN_ACKS, Topics
from branchline.routing.codes import Rejection
from branchline.routing.control import Identity, Number, Status
from branchline.routing.overlay.rebuilding import Rebuilt, Recorded

Report = Callable[[str], None]
Offsets: TypeAlias = Mapping[str, Mapping[str, int]]
"""The next offset to be read, by topic and partition."""

TELL_EVERY = 100_000
"""Records read, after which progress is told."""

FLUSH_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Positions:
    """How far a job had read, as it said last, and whether a broker of it had joined."""

    offsets: Offsets
    joined: bool
    at_ms: int


def encode_positions(
    brokers: Sequence[str], positions: Offsets, joined: int, at_ms: int
) -> tuple[bytes, bytes]:
    """Key and value of a job's record on `positions`."""
    fields = {"version": FORMAT_VERSION, "job": "router", "brokers": list(brokers), "at_ms": at_ms}
    return f"router/{brokers[0]}".encode(), dump({**fields, "joined": joined, "positions": positions})


def read_positions(cluster: Cluster, topics: Topics, brokers: Iterable[str]) -> Positions | None:
    """How far a job that served some of these brokers had read, by its last word; None if there is none.

    A job that is rebuilt may have another first broker than before, and so another name.
    """
    served, newest = set(brokers), None
    if topics.positions in list_topics(cluster):
        for record in read_to_end(cluster, topics.positions, hint=NO_NAMESPACE):
            told = _positions(record, served)
            if told is not None and (newest is None or told.at_ms >= newest.at_ms):
                newest = told
    return newest


def _positions(record: Record, served: set[str]) -> Positions | None:
    """What a job said that served some of these brokers; None if it is another's, or no word of ours."""
    try:
        said = _object(read_json(record.value or b"", STATS_MAX_FIELDS))
        if not served & set(items(said["brokers"])):
            return None
        offsets = {
            topic: {number: counted(at) for number, at in _object(each).items()}
            for topic, each in _object(said["positions"]).items()
        }
        return Positions(offsets, counted(said["joined"]) > 0, counted(said["at_ms"]))
    except UNFIT:
        return None


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def read_recorded(cluster: Cluster, topics: Topics, report: Report) -> Recorded:
    """All that `filters` has, up to its end."""
    recorded = Recorded()
    for count, record in enumerate(read_to_end(cluster, topics.filters, hint=NO_NAMESPACE), 1):
        if count % TELL_EVERY == 0:
            report(f"filters: {count:,} records read, {len(recorded.changes):,} subscriptions")
        if record.value is None:
            identity, advert = _identity(record), identity_of_key(record.key or b"")
            if identity is not None:
                recorded.forget(identity)
            if advert is not None:
                recorded.forget_advert(advert)
            continue
        told = decode_recorded(record.value)
        if isinstance(told, Rejection):
            # To leave it out might leave out a subscription.
            raise JobFailed(
                f"{topics.filters} has a record at offset {record.place.offset} that cannot be read: "
                f"{told.reason}",
                hint="rebuild with the version of branchline that wrote it; if it is none of ours, write "
                f"a record without a value under its key {(record.key or b'').decode(errors='replace')!r}",
            )
        recorded.add(told)
    return recorded


def _identity(record: Record) -> Identity | None:
    """Whose tombstone it is."""
    parts = (record.key or b"").decode(errors="replace").split("/")
    return None if record.key == TOPOLOGY_KEY or len(parts) != len(Identity._fields) else Identity(*parts)


def read_in_force(cluster: Cluster, topics: Topics, report: Report) -> set[tuple[Identity, Number]]:
    """The subscriptions that were answered to be in force, as far as `acks` still has it."""
    known = set()
    names = [topics.acks, *topics.of_kind(OWN_ACKS, list_topics(cluster))]
    records = chain.from_iterable(read_to_end(cluster, name, hint=NO_NAMESPACE) for name in names)
    for count, record in enumerate(records, 1):
        if count % TELL_EVERY == 0:
            report(f"acks: {count:,} records read")
        try:
            said = _object(read_json(record.value or b"", STATS_MAX_FIELDS))
            if said["status"] == Status.IN_FORCE:
                identity = Identity(said["home"], said["subscriber"], said["id"])
                known.add((identity, Number(*said["number"])))
        except UNFIT:
            continue  # no ack of ours
    return known


def bounds_of(cluster: Cluster, names: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """The first and the next offset of each partition of those topics that there are."""
    every = list_topics(cluster)
    return offsets(cluster, {name: every[name] for name in names if name in every})


def offsets_since(cluster: Cluster, bounds: Mapping[str, list[tuple[int, int]]], at_ms: int) -> Offsets:
    """In each partition, where the first record of that time or later is; its end if there is none."""
    places = [
        TopicPartition(name, number, at_ms) for name, each in bounds.items() for number in range(len(each))
    ]
    consumer = cluster.consumer(group_id=READER_GROUP)
    try:
        found = consumer.offsets_for_times(places, timeout=START_TIMEOUT_S) if places else []
    finally:
        consumer.close()
    since: dict[str, dict[str, int]] = {}
    for place in found:
        if place.error is not None:
            raise ClusterUnreachable(
                f"no answer about {place.topic}: {place.error}", hint="check the cluster"
            )
        end = bounds[place.topic][place.partition][1]
        since.setdefault(place.topic, {})[str(place.partition)] = place.offset if place.offset >= 0 else end
    return since


def write_rebuilt(
    cluster: Cluster,
    topics: Topics,
    rebuilt: Rebuilt,
    held: Iterable[tuple[str, Record]],
    now_ms: int,
) -> None:
    """Write what the rebuilt job has to say before it goes on.

    Copies that were held come again, to the brokers that they are for. A tick makes a batch that every
    shard has a part in, so that all take up their state at once.
    """
    wanted = {
        name: kind
        for neighbour in {letter.to for letter in rebuilt.letters}
        for name, kind in topics.of_neighbour(neighbour).items()
    }
    ensure_topics(cluster, wanted)
    own = topics.of_kind(OWN_ACKS, {acks_of(topics, ack) for ack in rebuilt.acks})
    # As in the job: an answer that only its subscriber may read is dropped if there is no topic for it.
    unanswered = create_topics(cluster, dict.fromkeys(own, OWN_ACKS)) if own else {}
    producer = cluster.producer(message_timeout_ms=int(FLUSH_TIMEOUT_S * 1000))
    failures: list[str] = []

    def write(topic: str, key: bytes | str | None, value: bytes | None, headers: Any = ()) -> None:
        def told(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(f"{topic}: {error.str()}")

        while True:
            try:
                producer.produce(topic, value, key, headers=list(headers), on_delivery=told)
                producer.poll(0)
                return
            except BufferError:
                producer.poll(0.1)

    def flush() -> None:
        left = producer.flush(FLUSH_TIMEOUT_S)
        if failures or left:
            reason = failures[0] if failures else f"{left} records not confirmed"
            raise PublishFailed(f"Kafka did not take what the rebuild wrote: {reason}", hint="run it again")

    for recorded in rebuilt.filters:
        write(topics.filters, *encode_recorded(recorded))
    for broker, record in held:
        write(topics.broker(broker), record.key, record.value, record.headers)
    flush()
    for letter in rebuilt.letters:
        for key, value in encode_letter(letter):
            write(topics.link(letter.to), key, value)
    for ack in rebuilt.acks:
        topic = acks_of(topics, ack)
        if topic not in unanswered:
            write(topic, ack.subscriber, encode_ack(ack, None, now_ms))
    write(topics.control, "rebuild", encode_tick())
    flush()
