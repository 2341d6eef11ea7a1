"""Proposals and what stands on `filters`, on real Kafka; the router's part is played by hand."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from branchline.kafka import proposing
from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import RequestRefused, WaitExpired
from branchline.kafka.letters import encode_recorded
from branchline.kafka.messages import decode_control, encode_ack
from branchline.kafka.proposing import newest_topology, propose, record_first
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Ack, Status
from branchline.routing.overlay.letters import Propose
from branchline.routing.overlay.topology import Topology, founded, link

pytestmark = pytest.mark.kafka

PAIR = founded(["a", "b"], [link("a", "b")])
NEXT, OTHER = PAIR.linked("a", "b", 2), PAIR.linked("a", "b", 3)


@pytest.fixture
def topics(cluster: Cluster, namespace: str) -> Topics:
    topics = Topics(namespace)
    ensure_topics(cluster, topics.of_brokers(("a", "b")))
    return topics


def write(cluster: Cluster, topic: str, value: bytes | None, key: bytes | None = None) -> None:
    producer = cluster.producer(enable_idempotence=False, acks="all")
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def record(cluster: Cluster, topics: Topics, *topologies: Topology) -> None:
    for each in topologies:
        key, value = encode_recorded(each)
        write(cluster, topics.filters, value, key)


Answer = Callable[[Propose, int], Status | None]
"""What is answered to a proposal that comes for the so-manieth time."""


@contextmanager
def answering(cluster: Cluster, topics: Topics, answer: Answer) -> Iterator[list[Propose]]:
    """Answer what is proposed; all proposals that came."""
    consumer = open_topic(cluster, topics.control, from_beginning=False, hint="")
    stop, came = threading.Event(), list[Propose]()

    def run() -> None:
        for read in follow(consumer):
            if stop.is_set():
                return
            asked = decode_control(read.value) if read is not None else None
            if isinstance(asked, Propose):
                came.append(asked)
                status = answer(asked, len(came))
                if status is not None:
                    wrong = Rejection(Code.TOPOLOGY_INVALID, "its number is known already")
                    ack = Ack(0, status, None, None, "a", None, asked.request, wrong)
                    write(cluster, topics.acks, encode_ack(ack, None, 1))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield came
    finally:
        stop.set()
        thread.join()
        consumer.close()


def test_the_newest_of_all_records_stands(cluster: Cluster, topics: Topics) -> None:
    """Whoever lags writes older ones; the first is written only where there is none."""
    assert newest_topology(cluster, topics) is None
    record_first(cluster, topics, PAIR)
    assert newest_topology(cluster, topics) == PAIR
    higher = max(NEXT, OTHER, key=lambda each: each.order)
    record(cluster, topics, NEXT, OTHER, PAIR)
    write(cluster, topics.filters, b"no topology", b"topology")
    record_first(cluster, topics, founded(["z"]))
    assert newest_topology(cluster, topics) == higher


def test_a_proposal_is_written_again_until_somebody_answers(
    cluster: Cluster, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under one id; refused because it was taken before the answer got lost, it counts as accepted."""
    monkeypatch.setattr(proposing, "ASK_AGAIN_S", 0.3)
    record(cluster, topics, PAIR)

    def lost_at_first(asked: Propose, time: int) -> Status | None:
        if time == 1:
            record(cluster, topics, asked.topology)
            return None
        return Status.REFUSED

    with answering(cluster, topics, lost_at_first) as came:
        assert propose(cluster, topics, NEXT, 30) == NEXT
    assert len(came) >= 2 and len({each.request for each in came}) == 1
    assert {each.topology for each in came} == {NEXT}


def test_another_operators_topology_is_told(cluster: Cluster, topics: Topics) -> None:
    """Of one number, whether this one was refused or taken and lost against the higher digest."""
    lower, higher = sorted((NEXT, OTHER), key=lambda each: each.order)
    for status, recorded in ((Status.REFUSED, (higher,)), (Status.ACCEPTED, (lower, higher))):

        def answer(
            _: Propose, __: int, status: Status = status, recorded: tuple[Topology, ...] = recorded
        ) -> Status:
            record(cluster, topics, *recorded)
            return status

        with (
            answering(cluster, topics, answer),
            pytest.raises(RequestRefused, match="another operator's topology 2 stands") as refused,
        ):
            propose(cluster, topics, lower, 30)
        assert refused.value.code == "topology-invalid"


def test_what_is_built_on_it_at_once_is_no_loss(cluster: Cluster, topics: Topics) -> None:
    """Another operator may have gone on from the topology that was accepted."""
    later = NEXT.linked("a", "b", 7)

    def answer(_: Propose, __: int) -> Status:
        record(cluster, topics, NEXT, later)
        return Status.ACCEPTED

    with answering(cluster, topics, answer):
        assert propose(cluster, topics, NEXT, 30) == later


def test_without_an_answer_the_wait_ends(cluster: Cluster, topics: Topics) -> None:
    """And says that the proposal may still be taken; a refusal says why."""
    record(cluster, topics, PAIR)
    with pytest.raises(WaitExpired, match="nobody has answered"):
        propose(cluster, topics, NEXT, 0.3)
    with (
        answering(cluster, topics, lambda _, __: Status.REFUSED),
        pytest.raises(RequestRefused, match="its number is known"),
    ):
        propose(cluster, topics, NEXT, 30)
