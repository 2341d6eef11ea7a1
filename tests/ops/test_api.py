"""The Python API against the running `branchline up`."""

import time

import pytest
from machines import Machine

from branchline.kafka import client
from branchline.kafka.client import Delivered, Publisher, Subscriber
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, PublishFailed, RequestRefused, TopicMissing, WaitExpired
from branchline.kafka.headers import ID
from branchline.kafka.topics import Topics
from branchline.ops.running import running_bootstrap
from branchline.routing.codes import Code
from branchline.routing.control import Status

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def bootstrap(up: Machine) -> str:
    return str(running_bootstrap(up.home))


def take(subscriber: Subscriber, count: int) -> list[Delivered]:
    """So many deliveries, or as many as come before a deadline."""
    deadline, found = time.monotonic() + 60, []
    for event in subscriber.poll_events():
        if event is not None:
            found.append(event)
        if len(found) == count or time.monotonic() > deadline:
            break
    return found


def test_what_is_published_reaches_the_subscriber(bootstrap: str) -> None:
    """Subscribe waits until it is in force, flush until Kafka has it all, and the event arrives whole."""
    with Subscriber(bootstrap, "api") as api, Publisher(bootstrap) as publisher:
        answer = api.subscribe("api > 1")
        assert answer is not None and answer.status is Status.IN_FORCE
        publisher.publish({"api": 1}, key="k")
        publisher.publish({"api": 2, "to": "Málaga"}, key="k", headers=[("source", "test")])
        publisher.publish(b'{"api":3}', key="k")
        publisher.flush()
        first, second = take(api, 2)
    assert (first.key, first.json()) == (b"k", {"api": 2, "to": "Málaga"})
    assert first.headers == (("source", b"test"),)
    assert second.value == b'{"api":3}'
    assert first.id.endswith(":api") and first.id != second.id


def test_a_refusal_is_raised_with_its_code_and_place(bootstrap: str) -> None:
    """A filter that cannot be read, and an end of what does not stand, raise what the broker answered."""
    nobody = Subscriber(bootstrap, "api-nobody")
    with pytest.raises(RequestRefused) as refused:
        nobody.subscribe("price <")
    assert (refused.value.code, refused.value.line, refused.value.column) == (Code.FILTER_SYNTAX, 1, 8)
    with pytest.raises(RequestRefused) as refused:
        nobody.unsubscribe()
    assert refused.value.code == Code.SUBSCRIPTION_UNKNOWN
    with pytest.raises(TopicMissing, match="api-nobody"):
        next(nobody.events())


def test_repeats_are_dropped_within_a_bounded_window(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of records with one id the first is given; ids beyond the window are forgotten, oldest first."""
    subscriber = Subscriber(bootstrap, "api-repeats")
    subscriber.subscribe("never = FALSE")
    producer = Cluster(bootstrap).producer()
    for name in ("a", "b", "a", "b", "c", "d", "a", "end"):
        producer.produce(Topics().out("api-repeats"), name, headers=[(ID, name.encode())])
    assert producer.flush(30) == 0
    assert [event.value for event in take(subscriber, 5)] == [b"a", b"b", b"c", b"d", b"end"]
    monkeypatch.setattr(client, "REPEAT_WINDOW", 2)
    # c pushes b out of the window (a was seen again before), d pushes a out: a second a is new again.
    assert [event.value for event in take(subscriber, 6)] == [b"a", b"b", b"c", b"d", b"a", b"end"]


def test_what_cannot_work_fails_at_once(bootstrap: str) -> None:
    """A missing entry topic, a bad name, a value that is no JSON and an oversize event are told at once."""
    with pytest.raises(TopicMissing, match=r"branchline\.in\.nowhere"):
        Publisher(bootstrap, broker="nowhere")
    with pytest.raises(ConfigError, match="not allowed as a name"):
        Subscriber(bootstrap, "No.Dots")
    with Publisher(bootstrap) as publisher:
        with pytest.raises(ValueError, match="JSON"):
            publisher.publish({"price": float("nan")})
        with pytest.raises(PublishFailed, match="too large"):
            publisher.publish(b"x" * 2_000_000)


def test_without_a_router_the_wait_expires(bootstrap: str) -> None:
    """A request nobody handles is written, and the error says so and what to do."""
    from branchline.kafka.admin import ensure_topics

    ensure_topics(Cluster(bootstrap), Topics("lonely").of_broker("main"))
    with pytest.raises(WaitExpired) as expired:
        Subscriber(bootstrap, "api", namespace="lonely").subscribe("TRUE", timeout_s=0.5)
    assert "branchline up" in expired.value.hint
