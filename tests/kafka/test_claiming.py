"""Fixed sets and claims as records: what is written is read, and all else is a rejection."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_filters import filters_in, sql

from branchline.kafka.assisting import TASK_MAX_BYTES
from branchline.kafka.claiming import decode_given, encode_ask_set, encode_given
from branchline.kafka.messages import BadRequest, decode_control, encode_request
from branchline.kafka.record import Place, Record
from branchline.kafka.speaking import spoken_by
from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request
from branchline.routing.dissemination.summaries import hides
from branchline.routing.offloading.assigner import NO_SET, Given
from branchline.routing.offloading.assisting import AskSet
from branchline.routing.offloading.client import claimed, order_of
from branchline.routing.offloading.messages import FIXED_MAX, Assignment, Between, Claimed

FILTERS = tuple(filters_in(sql("x > 1", "x > 5", "y = 'a' AND x = 7")))
SET = Assignment(17, FILTERS, order_of(FILTERS, hides))
SUBSCRIBE = Request(Operation.SUBSCRIBE, "alice", "one", "dublin", filter="x > 6")
places = st.lists(st.integers(0, 2**53), max_size=4).map(tuple)


def record(value: bytes | None) -> Record:
    return Record(Place("b.acks", 0, 1, 1), b"alice", value)


def given_set(assignment: Assignment) -> Given:
    return Given("alice", "dublin", assignment, "r1", False)


def test_a_request_for_a_set_reads_back() -> None:
    """By an own topic it is that subscriber's alone."""
    asked = AskSet("alice", "dublin", "r1")
    assert decode_control(encode_ask_set(asked)) == asked
    own = spoken_by("alice", asked)
    assert isinstance(own, AskSet) and own.own
    other = spoken_by("bob", asked)
    assert isinstance(other, BadRequest) and other.rejection.code is Code.NOT_YOURS


@pytest.mark.parametrize("fields", [{"home": "No Name"}, {"more": 1}, {"request": 7}, {"subscriber": None}])
def test_a_request_for_a_set_is_read_strictly(fields: dict[str, Any]) -> None:
    """Everything else is a rejection that says what it is about."""
    whole = json.loads(encode_ask_set(AskSet("alice", "dublin"))) | fields
    bad = decode_control(json.dumps(whole).encode())
    assert isinstance(bad, BadRequest) and "a request for a fixed set" in bad.rejection.reason


@given(st.integers(0, 2**53), st.lists(st.builds(Between, places, places), max_size=3).map(tuple))
def test_claims_read_back(version: int, said: tuple[Between, ...]) -> None:
    """Whatever they say: that is the broker's to check."""
    request = Request(
        Operation.SUBSCRIBE, "alice", "one", "dublin", filter="x > 6", claimed=Claimed(version, said)
    )
    assert decode_control(encode_request(request)) == request


@pytest.mark.parametrize(
    "claims",
    [
        7,
        {},
        {"set": 1},
        {"set": -1, "places": []},
        {"set": 1, "places": [[1]]},
        {"set": 1, "places": [[[], ["a"]]]},
    ],
)
def test_claims_are_read_strictly(claims: Any) -> None:
    """What is none is refused with the subscription."""
    whole = json.loads(encode_request(SUBSCRIBE)) | {"claims": claims}
    bad = decode_control(json.dumps(whole).encode())
    assert isinstance(bad, BadRequest) and bad.rejection.code is Code.CONTROL_INVALID
    assert "claims" in bad.rejection.reason and bad.subscriber == "alice"


def test_only_a_subscription_claims_anything() -> None:
    """Elsewhere the field is unknown."""
    whole = {"version": 1, "op": "unsubscribe", "subscriber": "alice", "claims": {"set": 1, "places": []}}
    bad = decode_control(json.dumps(whole).encode())
    assert isinstance(bad, BadRequest) and "claims" in bad.rejection.reason


def test_a_set_reads_back_for_whom_it_is() -> None:
    """And for nobody else who reads the same acks."""
    encoded = encode_given(given_set(SET), 5)
    assert decode_given(record(encoded), "r1") == SET
    assert decode_given(record(encoded), "r2") is None
    assert decode_given(record(b'{"status": "accepted", "request": "r1"}'), "r1") is None
    assert decode_given(record(None), "r1") is None


def test_a_set_that_makes_no_sense_is_not_believed() -> None:
    """A place that is in no set would trip whoever claims."""
    fields = json.loads(encode_given(given_set(SET), 5))
    for order in ([[[9], []]] * 3, [[[], []]], "x"):
        assert decode_given(record(json.dumps(fields | {"order": order}).encode()), "r1") is None


def test_a_set_that_is_too_large_is_given_as_an_empty_one() -> None:
    """Nobody can claim anything of it, and the broker places filters by itself."""
    long = filters_in(sql(*(f"x = '{str(number) * 400}'" for number in range(1_000, 1_000 + FIXED_MAX))))
    order = tuple(Between((), ()) for _ in long)
    large = Assignment(3, tuple(long), order)
    encoded = encode_given(given_set(large), 5)
    assert len(encoded) <= TASK_MAX_BYTES
    assert decode_given(record(encoded), "r1") == NO_SET
    assert claimed(NO_SET, FILTERS, hides).version == 0
