"""Volunteers, tasks and answers as records: what is written is read, and all else is a rejection."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_filters import filters_in, sql

from branchline.kafka.assisting import (
    ANSWER_MAX_BYTES,
    decode_task,
    encode_answering,
    encode_assist,
    encode_work,
)
from branchline.kafka.messages import BadRequest, decode_control, encode_refresh
from branchline.kafka.record import Place, Record
from branchline.kafka.speaking import spoken_by
from branchline.routing.codes import Code
from branchline.routing.dissemination.summaries import hides
from branchline.routing.offloading.assisting import Answering, Assist
from branchline.routing.offloading.client import answer
from branchline.routing.offloading.messages import BATCH_MAX, Answer, Between, Dispatch, Listed, Task
from branchline.routing.offloading.offloader import SLICE, Work
from branchline.routing.overlay.letters import Refresh

FILTERS = filters_in(sql("x > 1", "x > 5", "y = 'a' AND x = 7", "TRUE"))
TASK = Task(17, 2, (Listed(4, FILTERS[0]), Listed(9, FILTERS[3])), tuple(FILTERS[1:3]))
DONE = Answering(answer(TASK, "alice", hides), "dublin")
numbers = st.lists(st.integers(0, 2**53), max_size=4).map(tuple)


def record(value: bytes | None) -> Record:
    return Record(Place("b.acks", 0, 1, 1), b"alice", value)


@pytest.mark.parametrize(
    "assist", [Assist("alice", "dublin", 60_000, "r1"), Assist("alice", "dublin", 0), Assist("a", "b", 1)]
)
def test_an_offer_to_work_reads_back(assist: Assist) -> None:
    """And an end of it; by an own topic it is that subscriber's alone."""
    assert decode_control(encode_assist(assist)) == assist
    own = spoken_by(assist.subscriber, assist)
    assert isinstance(own, Assist) and own.own
    other = spoken_by("bob", assist)
    assert isinstance(other, BadRequest) and other.rejection.code is Code.NOT_YOURS


@given(st.integers(0, 2**53), st.integers(0, 99), st.lists(numbers, max_size=3).map(tuple))
def test_an_answer_reads_back(round_: int, slice_: int, above: tuple[tuple[int, ...], ...]) -> None:
    """Whatever it claims: that is the broker's to check."""
    order = tuple(Between(each, each) for each in above)
    done = Answering(Answer(round_, slice_, "alice", above, above, order), "dublin")
    assert decode_control(encode_answering(done)) == done


def test_a_subscriber_answers_for_itself_alone_on_its_own_topic() -> None:
    """Whatever the message says."""
    own = spoken_by("alice", DONE)
    assert isinstance(own, Answering) and own.own
    refused = spoken_by("bob", DONE)
    assert isinstance(refused, BadRequest) and refused.rejection.code is Code.NOT_YOURS
    assert isinstance(spoken_by("bob", Refresh("dublin", 1)), BadRequest)
    assert decode_control(encode_refresh(Refresh("dublin", 1))) == Refresh("dublin", 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"subscriber": "Alice"},
        {"subscriber": None},
        {"home": 5},
        {"for_ms": 0},
        {"for_ms": -1},
        {"for_ms": "60000"},
        {"for_ms": 2**60},
        {"stop": True},
        {"stop": "yes"},
        {"request": "x" * 101},
        {"more": 1},
    ],
)
def test_an_offer_of_another_form_is_invalid(fields: dict[str, Any]) -> None:
    """Reading is strict; who asks is kept for the answer."""
    whole = json.loads(encode_assist(Assist("alice", "dublin", 60_000, "r1"))) | fields
    bad = decode_control(json.dumps(whole).encode())
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID


@pytest.mark.parametrize(
    "fields",
    [
        {"round": -1},
        {"slice": None},
        {"above": 5},
        {"above": [5]},
        {"above": [[-1]]},
        {"above": [["a"]]},
        {"below": [[1.5]]},
        {"below": [[2**60]]},
        {"order": [[]]},
        {"order": [[[], [], []]]},
        {"order": [[[0], {}]]},
        {"subscriber": ""},
        {"home": None},
        {"claims": []},
    ],
)
def test_an_answer_of_another_form_is_invalid(fields: dict[str, Any]) -> None:
    """It is a rejection like any other bad control, and never an exception."""
    whole = json.loads(encode_answering(DONE)) | fields
    bad = decode_control(json.dumps(whole).encode())
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID


def test_an_answer_has_a_limit_of_its_own() -> None:
    """The fullest answer to the fullest task fits; what is larger is refused with the limit."""
    all_of_them = tuple(range(10**6, 10**6 + SLICE))
    every = tuple(tuple(range(BATCH_MAX)) for _ in range(BATCH_MAX))
    order = tuple(Between(each, each) for each in every)
    full = Answer(2**53, 10**5, "a" * 63, (all_of_them,) * BATCH_MAX, (all_of_them,) * BATCH_MAX, order)
    encoded = encode_answering(Answering(full, "b" * 63))
    assert len(encoded) <= ANSWER_MAX_BYTES
    assert decode_control(encoded) == Answering(full, "b" * 63)
    bad = decode_control(encoded + b" " * (ANSWER_MAX_BYTES - len(encoded) + 1))
    assert isinstance(bad, BadRequest) and bad.rejection.code is Code.CONTROL_TOO_LARGE
    assert str(ANSWER_MAX_BYTES) in bad.rejection.reason


def test_a_task_reads_back_for_whom_it_is() -> None:
    """Whoever else reads the same topic passes it over, and so does who works for another broker."""
    value = encode_work(Work("dublin", Dispatch("alice", TASK), False), 5)
    assert decode_task(record(value), "alice", "dublin") == TASK
    assert decode_task(record(value), "bob", "dublin") is None
    assert decode_task(record(value), "alice", "virginia") is None


@pytest.mark.parametrize(
    "fields",
    [{"numbers": [1]}, {"numbers": "4"}, {"table": "?"}, {"batch": 5}, {"round": -1}, {"status": "accepted"}],
)
def test_what_is_no_task_is_passed_over(fields: dict[str, Any]) -> None:
    """A volunteer does not fall over what somebody has written."""
    whole = json.loads(encode_work(Work("dublin", Dispatch("alice", TASK), False), 5) or b"") | fields
    assert decode_task(record(json.dumps(whole).encode()), "alice", "dublin") is None
    assert decode_task(record(None), "alice", "dublin") is None


def test_a_task_that_fits_no_record_is_given_to_nobody() -> None:
    """Then the broker compares that slice by itself, when the time is over."""

    def task(count: int) -> Task:
        wide = filters_in(sql(*(f"x = '{at}{'b' * 4_000}'" for at in range(count))))
        return Task(1, 1, tuple(map(Listed, range(count), wide[BATCH_MAX:])), tuple(wide[:BATCH_MAX]))

    assert encode_work(Work("dublin", Dispatch("alice", task(SLICE + BATCH_MAX)), False), 5) is not None
    assert encode_work(Work("dublin", Dispatch("alice", task(4 * SLICE)), False), 5) is None
