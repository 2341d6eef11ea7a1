"""Asking a broker to refresh: what is written, what is waited for, and who looks at the clock."""

from collections.abc import Callable, Iterator

import pytest

from branchline.kafka import refreshing
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import RequestRefused, WaitExpired
from branchline.kafka.messages import decode_control, encode_ack
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Ack, Status
from branchline.routing.overlay.letters import Refresh

TOPICS = Topics("t")
NOWHERE = Cluster("localhost:1", {})
PLACE = Place(TOPICS.acks, 0, 0, 1)
Answering = Callable[[list[Refresh]], list[Ack]]


class _Consumer:
    def close(self) -> None:
        pass


def ack(asked: Refresh, status: Status, note: str | None = None) -> Ack:
    why = Rejection(Code.HOME_UNKNOWN, "no such broker") if status is Status.REFUSED else None
    return Ack(None, status, None, None, asked.broker, None, asked.request, why, note)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answering], list[Refresh]]]:
    """Somebody who answers what was written so far, again and again, after each look at the topic."""

    def install(answering: Answering) -> list[Refresh]:
        asked: list[Refresh] = []

        def write(cluster: Cluster, topics: Topics, value: bytes) -> None:
            message = decode_control(value)
            assert isinstance(message, Refresh)
            asked.append(message)

        def follow(consumer: object) -> Iterator[Record | None]:
            while True:
                for each in answering(asked):
                    yield Record(PLACE, None, encode_ack(each, None, 1))
                yield None

        monkeypatch.setattr(refreshing, "open_topic", lambda *_, **__: _Consumer())
        monkeypatch.setattr(refreshing, "write_control", write)
        monkeypatch.setattr(refreshing, "follow", follow)
        return asked

    yield install


def test_the_last_answer_is_waited_for(written: Callable[[Answering], list[Refresh]]) -> None:
    """Not the first, which says that the broker has begun; nor somebody else's."""
    asked = written(
        lambda came: [
            ack(Refresh("a", 1, "other"), Status.REFRESHED),
            ack(came[0], Status.ACCEPTED),
            ack(came[0], Status.REFRESHED, "3 filters"),
        ]
    )
    answer = refreshing.refresh(NOWHERE, TOPICS, "a", 30.0)
    assert (answer.status, answer.note) == (Status.REFRESHED, "3 filters")
    assert [(each.broker, each.timeout_ms, each.give_up) for each in asked] == [("a", 30_000, False)]


def test_whoever_asks_looks_at_the_clock(written: Callable[[Answering], list[Refresh]]) -> None:
    """When its time is over, it tells the broker to wait no longer, and gets the answer then."""
    asked = written(lambda came: [ack(came[0], Status.REFRESHED)] if came[-1].give_up else [])
    assert refreshing.refresh(NOWHERE, TOPICS, "a", 0.0).status is Status.REFRESHED
    assert [each.give_up for each in asked] == [False, True]


def test_a_refusal_is_an_error_and_so_is_silence(
    written: Callable[[Answering], list[Refresh]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the code of the refusal; of silence, with what to look at."""
    written(lambda came: [ack(came[0], Status.REFUSED)])
    with pytest.raises(RequestRefused) as refused:
        refreshing.refresh(NOWHERE, TOPICS, "z", 30.0)
    assert refused.value.code == Code.HOME_UNKNOWN
    monkeypatch.setattr(refreshing, "GIVEN_UP_WITHIN_S", 0.0)
    written(lambda came: [])
    with pytest.raises(WaitExpired):
        refreshing.refresh(NOWHERE, TOPICS, "a", 0.0)


def test_giving_up_is_answered_at_once(written: Callable[[Answering], list[Refresh]]) -> None:
    """It is accepted, and nothing more comes of it for whoever wrote it."""
    asked = written(lambda came: [ack(came[0], Status.ACCEPTED)])
    assert refreshing.refresh(NOWHERE, TOPICS, "a", 1.0, give_up=True).status is Status.ACCEPTED
    assert [each.give_up for each in asked] == [True]
