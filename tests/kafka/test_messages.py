"""The messages of the control plane read back, and whatever is none is a rejection with the right code."""

import json
from typing import Any

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.messages import (
    DEFAULT_ID,
    LETTER_MAX_BYTES,
    OPERATIONS,
    REQUEST_FIELDS,
    REQUEST_ID_MAX_CHARS,
    BadRequest,
    Tick,
    change_fields,
    change_from_fields,
    decode_change,
    decode_control,
    decode_request,
    encode_ack,
    encode_change,
    encode_proposal,
    encode_refresh,
    encode_request,
    encode_tick,
)
from branchline.kafka.record import Place
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import (
    Ack,
    Change,
    Ended,
    Forgotten,
    Identity,
    Number,
    Operation,
    Request,
    Status,
    Subscribed,
)
from branchline.routing.limits import CONTROL_MAX_BYTES, FILTER_MAX_BYTES, REQUESTS_REMEMBERED
from branchline.routing.overlay.letters import Propose, Refresh
from branchline.routing.overlay.topology import founded
from branchline.routing.shard import EventBatch, Shard, alone

SUBSCRIBE: dict[str, Any] = {"version": 1, "op": "subscribe", "subscriber": "alice", "filter": "a = 1"}
UNSUBSCRIBE: dict[str, Any] = {"version": 1, "op": "unsubscribe", "subscriber": "alice"}
RENEW: dict[str, Any] = {"version": 1, "op": "renew", "subscriber": "alice"}
PLACE = Place("branchline.control", 0, 7, 1_700_000_000_000)

identities = st.builds(Identity, our.legal_names, our.legal_names, our.legal_names)
request_ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=REQUEST_ID_MAX_CHARS)
leases = st.none() | st.integers(-1, 2**60)
whole_requests = st.one_of(
    st.builds(
        Request,
        st.just(Operation.SUBSCRIBE),
        our.legal_names,
        our.legal_names,
        st.none() | our.legal_names,
        our.texts,
        our.texts,
        st.none() | request_ids,
        leases,
    ),
    st.builds(
        Request,
        st.just(Operation.UNSUBSCRIBE),
        our.legal_names,
        our.legal_names,
        st.none() | our.legal_names,
        request=st.none() | request_ids,
    ),
    st.builds(
        Request,
        st.just(Operation.UNSUBSCRIBE),
        our.legal_names,
        st.just(""),
        st.none() | our.legal_names,
        request=st.none() | request_ids,
        all=st.just(True),
    ),
    st.builds(
        Request,
        st.just(Operation.RENEW),
        our.legal_names,
        our.legal_names,
        st.none() | our.legal_names,
        request=st.none() | request_ids,
        lease_ms=leases,
    ),
    st.builds(
        Request,
        st.just(Operation.ADVERTISE),
        our.legal_names,
        our.legal_names,
        st.none() | our.legal_names,
        our.texts,
        our.texts,
        st.none() | request_ids,
    ),
    st.builds(
        Request,
        st.just(Operation.UNADVERTISE),
        our.legal_names,
        our.legal_names,
        st.none() | our.legal_names,
        request=st.none() | request_ids,
    ),
)
asked_before = st.lists(request_ids, max_size=3).map(tuple)
times = st.integers(0, 2**50)
revisions = st.integers(0, 3)
whole_changes = st.one_of(
    st.builds(
        Subscribed,
        identities,
        our.numbers,
        our.texts,
        our.texts,
        asked_before,
        revisions,
        st.none() | times,
        st.none() | times,
        st.booleans(),
    ),
    st.builds(Ended, identities, our.numbers, times, asked_before, st.booleans(), revisions, st.booleans()),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def message(base: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({**base, **fields}).encode()


def without(base: dict[str, Any], name: str) -> bytes:
    return json.dumps({field: value for field, value in base.items() if field != name}).encode()


def code_of(value: bytes | None) -> Code:
    bad = decode_request(value)
    assert isinstance(bad, BadRequest), bad
    return bad.rejection.code


# Requests


@given(whole_requests)
def test_a_request_reads_back(request: Request) -> None:
    """What `encode_request` writes is what `decode_request` reads."""
    assert decode_request(encode_request(request)) == request
    assert decode_control(encode_request(request)) == request


def test_a_publishers_request_names_a_publisher() -> None:
    """And no subscriber; so do its answers, also those to what cannot be read."""
    request = Request(Operation.ADVERTISE, "shop", "one", filter="x > 1", request="r")
    fields = json.loads(encode_request(request))
    assert fields["publisher"] == "shop" and "subscriber" not in fields
    assert code_of(message({**fields, "subscriber": "shop"})) is Code.CONTROL_INVALID
    bad = decode_request(message({**fields, "filter": 5}))
    assert isinstance(bad, BadRequest) and (bad.subscriber, bad.advert) == ("shop", True)
    ack = Ack(0, Status.IN_FORCE, "shop", "one", "main", Number(1, 2), "r", advert=True)
    told = json.loads(encode_ack(ack, PLACE, 5))
    assert told["publisher"] == "shop" and "subscriber" not in told


def test_what_is_left_out_has_its_default() -> None:
    """The shortest request has the default id, spelling sql, and no home or request id."""
    assert decode_request(message(SUBSCRIBE)) == Request(
        Operation.SUBSCRIBE, "alice", DEFAULT_ID, None, "sql", "a = 1", None
    )


@pytest.mark.parametrize(
    "value", [None, b"", b" \n", b"{", b"nonsense", b"\xff\xfe", b"[]", b'"text"', b"1", b"null"]
)
def test_what_is_no_json_object_is_invalid(value: bytes | None) -> None:
    """A null, empty or unreadable value, and any JSON but an object."""
    assert code_of(value) is Code.CONTROL_INVALID


@pytest.mark.parametrize("version", [True, 1.0, "1", 0, 2, None, [1], {}])
def test_another_version_is_refused(version: Any) -> None:
    """Only the integer 1 is version 1: not true, 1.0 or text."""
    assert code_of(message(SUBSCRIBE, version=version)) is Code.CONTROL_VERSION


def test_a_missing_version_is_refused() -> None:
    """A message without a version is not guessed at."""
    assert code_of(without(SUBSCRIBE, "version")) is Code.CONTROL_VERSION


@pytest.mark.parametrize("operation", [None, "", "Subscribe", "renews", 1, True, ["subscribe"], {}])
def test_another_operation_is_refused(operation: Any) -> None:
    """What is asked for must be one of the operations, as text; the reason names them all."""
    value = message(SUBSCRIBE, op=operation)
    assert code_of(value) is Code.CONTROL_OPERATION
    bad = decode_control(value)
    assert isinstance(bad, BadRequest)
    assert all(each in bad.rejection.reason for each in OPERATIONS)


@pytest.mark.parametrize(
    ("base", "field"),
    [(SUBSCRIBE, "subscriber"), (SUBSCRIBE, "filter"), (UNSUBSCRIBE, "subscriber"), (RENEW, "subscriber")],
)
def test_a_missing_field_is_named(base: dict[str, Any], field: str) -> None:
    """A field that must be there is missing: invalid, and the reason says which."""
    bad = decode_request(without(base, field))
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID
    assert f'"{field}"' in bad.rejection.reason


@pytest.mark.parametrize(
    ("base", "field"),
    [
        (SUBSCRIBE, "fitler"),
        (SUBSCRIBE, ""),
        (UNSUBSCRIBE, "filter"),
        (UNSUBSCRIBE, "spelling"),
        (UNSUBSCRIBE, "lease_ms"),
        (RENEW, "filter"),
        (RENEW, "spelling"),
    ],
)
def test_an_unknown_field_is_named(base: dict[str, Any], field: str) -> None:
    """A field that the operation does not take is never ignored in silence."""
    bad = decode_request(message(base, **{field: "TRUE"}))
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID
    assert repr(field) in bad.rejection.reason


@pytest.mark.parametrize("field", ["subscriber", "id", "home", "spelling", "filter", "request"])
@pytest.mark.parametrize("value", [None, 1, 1.5, True, [], ["alice"], {}])
def test_a_field_of_the_wrong_type_is_named(field: str, value: Any) -> None:
    """Every field but the version and the lease is text; null is not the same as absent."""
    bad = decode_request(message(SUBSCRIBE, **{field: value}))
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID
    assert f'"{field}"' in bad.rejection.reason


@pytest.mark.parametrize("base", [SUBSCRIBE, RENEW])
@pytest.mark.parametrize("value", [None, "1000", 1000.0, True, [], {}])
def test_a_lease_is_an_integer(base: dict[str, Any], value: Any) -> None:
    """Milliseconds as a whole number; how long it may be is for the home to say."""
    bad = decode_request(message(base, lease_ms=value))
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID
    assert '"lease_ms"' in bad.rejection.reason
    request = decode_request(message(base, lease_ms=-5))
    assert isinstance(request, Request) and request.lease_ms == -5


@pytest.mark.parametrize("value", [None, False, "true", 1, [], {}])
def test_all_is_true_or_left_out(value: Any) -> None:
    """And it excludes an id: which of the two is meant would be a guess. Only an unsubscription has it."""
    assert code_of(message(UNSUBSCRIBE, all=value)) is Code.CONTROL_INVALID
    assert code_of(message(UNSUBSCRIBE, all=True, id="one")) is Code.CONTROL_INVALID
    assert code_of(message(SUBSCRIBE, all=True)) is Code.CONTROL_INVALID


@pytest.mark.parametrize("field", ["subscriber", "id", "home"])
@pytest.mark.parametrize("name", ["", "-a", "A", "a.b", "a_b", "a/b", "a b", "a\n", "é", "x" * 64])
def test_a_bad_name_is_refused(field: str, name: str) -> None:
    """Brokers, subscribers and subscriptions are named by the one rule."""
    assert code_of(message(SUBSCRIBE, **{field: name})) is Code.NAME_INVALID


def test_a_long_request_id_is_refused() -> None:
    """A request id as long as allowed passes; one character more does not."""
    assert isinstance(decode_request(message(SUBSCRIBE, request="x" * REQUEST_ID_MAX_CHARS)), Request)
    assert code_of(message(SUBSCRIBE, request="x" * (REQUEST_ID_MAX_CHARS + 1))) is Code.CONTROL_INVALID


def test_an_oversize_message_is_refused() -> None:
    """A message of the limit's size passes; one byte more does not, and limit and size are named."""
    room = CONTROL_MAX_BYTES - len(message(SUBSCRIBE, filter=""))
    assert isinstance(decode_request(message(SUBSCRIBE, filter="x" * room)), Request)
    bad = decode_request(message(SUBSCRIBE, filter="x" * (room + 1)))
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_TOO_LARGE
    assert str(CONTROL_MAX_BYTES) in bad.rejection.reason
    assert str(CONTROL_MAX_BYTES + 1) in bad.rejection.reason


def test_a_bad_request_carries_its_asker() -> None:
    """As much of the asker as is text is kept, cut short, so that the refusal can reach it."""
    bad = decode_request(message(SUBSCRIBE, subscriber="A" * 200, id=5, request="r1"))
    assert isinstance(bad, BadRequest)
    assert (bad.subscriber, bad.id, bad.request) == ("A" * REQUEST_ID_MAX_CHARS, None, "r1")


def test_a_request_takes_only_so_many_bytes_where_topologies_may_have_more() -> None:
    """On `control` too a request has its own limit, and the asker is told; a topology may be larger."""
    room = CONTROL_MAX_BYTES - len(message(SUBSCRIBE, filter=""))
    assert isinstance(decode_control(message(SUBSCRIBE, filter="x" * room)), Request)
    bad = decode_control(message(SUBSCRIBE, filter="x" * (room + 1)))
    assert isinstance(bad, BadRequest)
    assert (bad.rejection.code, bad.subscriber) == (Code.CONTROL_TOO_LARGE, "alice")
    bad = decode_control(b" " * LETTER_MAX_BYTES + b"{}")
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_TOO_LARGE


@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_garbage_never_raises(value: bytes) -> None:
    """Random bytes and random JSON are rejected, as a request, as any control message and as a change."""
    assert isinstance(decode_request(value), BadRequest)
    assert isinstance(decode_control(value), BadRequest)
    assert isinstance(decode_change(value), Rejection)


@given(
    st.sampled_from([SUBSCRIBE, UNSUBSCRIBE, RENEW]),
    st.dictionaries(
        st.sampled_from([*sorted(REQUEST_FIELDS[Operation.SUBSCRIBE]), "topology", "x"]),
        json_values,
        min_size=1,
        max_size=3,
    ),
)
def test_a_request_with_random_fields_never_raises(base: dict[str, Any], fields: dict[str, Any]) -> None:
    """A request with some fields replaced is a request or a bad one, and either can be answered."""
    decoded = decode_request(message(base, **fields))
    assert decode_control(message(base, **fields)) == decoded
    if isinstance(decoded, Request):
        assert decode_request(encode_request(decoded)) == decoded
    else:
        ack = Ack(0, Status.REFUSED, decoded.subscriber, decoded.id, "dublin", rejection=decoded.rejection)
        assert json.loads(encode_ack(ack, PLACE, 1))["code"] == decoded.rejection.code


@pytest.mark.parametrize("filler", ["x", "é", '"', "\\", "\n", "\x01"])
def test_a_filter_of_full_size_fits_a_message(filler: str) -> None:
    """CONTROL_MAX_BYTES leaves room for a filter of FILTER_MAX_BYTES, whatever of it JSON must escape."""
    text = "a = '" + filler * ((FILTER_MAX_BYTES - 6) // len(filler.encode())) + "'"
    request = Request(Operation.SUBSCRIBE, "alice", "default", filter=text)
    assert decode_request(encode_request(request)) == request


# Topologies, refreshes and ticks on control


@pytest.mark.parametrize(
    "refresh", [Refresh("dublin", 30_000, "r1"), Refresh("dublin", 0, give_up=True), Refresh("b", 1)]
)
def test_a_request_to_refresh_reads_back(refresh: Refresh) -> None:
    """With and without an id; and is no subscriber's."""
    assert decode_control(encode_refresh(refresh)) == refresh
    assert isinstance(decode_request(encode_refresh(refresh)), BadRequest)


@pytest.mark.parametrize(
    "fields",
    [
        {"broker": None},
        {"broker": "Dublin"},
        {"timeout_ms": -1},
        {"timeout_ms": "5"},
        {"give_up": 1},
        {"request": "x" * (REQUEST_ID_MAX_CHARS + 1)},
        {"subscriber": "alice"},
    ],
)
def test_a_request_to_refresh_of_another_form_is_invalid(fields: dict[str, Any]) -> None:
    """As strict as any other."""
    whole = json.loads(encode_refresh(Refresh("dublin", 30_000, "r1"))) | fields
    bad = decode_control(json.dumps(whole).encode())
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID


PROPOSAL = Propose(founded(["dublin", "virginia"]).joined("oregon", {"dublin": 2}), "r1")


def test_a_topology_reads_back() -> None:
    """An operator's topology and request id, with and without one."""
    for propose in (PROPOSAL, Propose(PROPOSAL.topology)):
        assert decode_control(encode_proposal(propose)) == propose
        bad = decode_request(encode_proposal(propose))
        assert isinstance(bad, BadRequest), "it is no request of a subscriber"
        assert bad.rejection.code is Code.CONTROL_OPERATION


@pytest.mark.parametrize(
    "fields",
    [
        {"topology": None},
        {"topology": []},
        {"topology": {}},
        {"request": 5},
        {"request": None},
        {"request": "x" * (REQUEST_ID_MAX_CHARS + 1)},
        {"subscriber": "alice"},
    ],
)
def test_a_proposal_of_another_form_is_invalid(fields: dict[str, Any]) -> None:
    """Reading is strict for operators too, and what names the asker is kept for the answer."""
    bad = decode_control(message(json.loads(encode_proposal(PROPOSAL)), **fields))
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_INVALID
    assert "request" in fields or bad.request == "r1"


@pytest.mark.parametrize("operation", ["topology", "tick"])
@pytest.mark.parametrize("version", [None, True, 2, "1"])
def test_operators_write_the_version_too(operation: str, version: Any) -> None:
    """Every control message has the one version."""
    bad = decode_control(json.dumps({"version": version, "op": operation}).encode())
    assert isinstance(bad, BadRequest)
    assert bad.rejection.code is Code.CONTROL_VERSION


def test_a_tick_asks_for_nothing() -> None:
    """It is the operation alone; with a further field it is invalid."""
    assert decode_control(encode_tick()) == Tick()
    assert json.loads(encode_tick()) == {"version": 1, "op": "tick"}
    bad = decode_control(b'{"version": 1, "op": "tick", "subscriber": "alice"}')
    assert isinstance(bad, BadRequest)
    assert (bad.rejection.code, bad.subscriber) == (Code.CONTROL_INVALID, "alice")


# Changes


@given(whole_changes)
def test_a_change_reads_back_from_filters(change: Change) -> None:
    """Key and value on `filters`: the identity, and the change itself."""
    key, value = encode_change(change)
    assert key.decode() == "/".join(change.identity)
    assert decode_change(value) == change


@given(whole_changes | st.builds(Forgotten, identities, our.numbers))
def test_a_change_reads_back_from_its_fields(change: Change) -> None:
    """`change_from_fields` is the inverse of `change_fields`, also by way of JSON."""
    assert change_from_fields(change_fields(change)) == change
    assert change_from_fields(json.loads(json.dumps(change_fields(change)))) == change


@given(st.builds(Forgotten, identities, our.numbers))
def test_a_forgotten_subscription_is_a_tombstone(change: Forgotten) -> None:
    """On `filters` it is the key alone, so that compaction drops it."""
    assert encode_change(change) == (str(change.identity).encode(), None)


@pytest.mark.parametrize("filler", ["x", "\x01"])
def test_whatever_is_accepted_reads_back_from_filters(filler: str) -> None:
    """The largest subscription that requests can make, with all their ids, is not too large to read."""
    ids = [
        (f"{count}" + "\x01" * REQUEST_ID_MAX_CHARS)[:REQUEST_ID_MAX_CHARS]
        for count in range(REQUESTS_REMEMBERED)
    ]
    shard = Shard(alone("dublin"), 0)
    wrapping = len(
        encode_request(Request(Operation.SUBSCRIBE, "alice", "default", filter="", request=ids[0]))
    )
    room = min(FILTER_MAX_BYTES - 10, (CONTROL_MAX_BYTES - wrapping - 20) // (len(json.dumps(filler)) - 2))
    for count, request_id in enumerate(ids):
        text = f"a = '{count}" + filler * room + "'"
        request = decode_request(
            encode_request(Request(Operation.SUBSCRIBE, "alice", "default", filter=text, request=request_id))
        )
        assert isinstance(request, Request)
        (change,) = shard.handle(1, [], [request], EventBatch()).filters
        assert isinstance(change, Subscribed)
        assert decode_change(encode_change(change)[1]) == change


ALICE = Identity("dublin", "alice", "default")
CHANGE = {"version": 1, **change_fields(Subscribed(ALICE, Number(1, 2), "sql", "TRUE"))}
END = {"version": 1, **change_fields(Ended(ALICE, Number(1, 2), 3))}


def test_what_is_as_by_default_is_not_written() -> None:
    """So records that were written before there were leases still read, and read as written."""
    assert not {"revision", "lease_ms", "until_ms"} & CHANGE.keys()
    assert not {"revision", "expired"} & END.keys()
    leased = Subscribed(ALICE, Number(1, 2), "sql", "TRUE", (), 3, 60_000, 99)
    assert change_fields(leased).items() >= {"revision": 3, "lease_ms": 60_000, "until_ms": 99}.items()
    expired = Ended(ALICE, Number(1, 2), 3, (), True, 2)
    assert change_fields(expired).items() >= {"expired": True, "revision": 2}.items()


@pytest.mark.parametrize(
    ("base", "field"),
    [(CHANGE, "revision"), (CHANGE, "lease_ms"), (CHANGE, "until_ms"), (END, "revision"), (END, "expired")],
)
@pytest.mark.parametrize("value", [None, 1.5, "1", [1], {}])
def test_what_may_be_left_out_must_be_right_if_it_is_there(
    base: dict[str, Any], field: str, value: Any
) -> None:
    """Null, or another type, is not the default."""
    rejection = decode_change(message(base, **{field: value}))
    assert isinstance(rejection, Rejection), rejection
    assert rejection.code is Code.CONTROL_INVALID


WRONG = (None, True, 1.5, [True, 1], [1], [1, 2, 3], {}, {"a": 1})
PARTS = [(base, field) for base in (CHANGE, END) for field in base if field != "version"]
RULED = [(base, field) for base, field in PARTS if field not in ("spelling", "filter")]


@pytest.mark.parametrize(
    ("base", "field", "value"),
    [(*part, value) for part in PARTS for value in WRONG] + [(*part, "No Such") for part in RULED],
)
def test_a_change_with_a_wrong_field_is_rejected(base: dict[str, Any], field: str, value: Any) -> None:
    """A field of the wrong type, or text where there is a rule that it breaks, is a rejection."""
    rejection = decode_change(message(base, **{field: value}))
    assert isinstance(rejection, Rejection), rejection
    assert rejection.code is Code.CONTROL_INVALID


@pytest.mark.parametrize(("base", "field"), PARTS)
def test_a_change_with_a_missing_field_is_rejected(base: dict[str, Any], field: str) -> None:
    """Nothing that a change always had has a default."""
    rejection = decode_change(without(base, field))
    assert isinstance(rejection, Rejection)
    assert field in rejection.reason


def test_a_change_with_an_unknown_field_is_rejected() -> None:
    """Reading is strict for changes as for requests."""
    assert isinstance(decode_change(message(CHANGE, expired=True)), Rejection)
    assert isinstance(decode_change(message(END, lease_ms=5)), Rejection)


@pytest.mark.parametrize("version", [None, True, 1.0, "1", 2])
def test_a_change_of_another_version_is_rejected(version: Any) -> None:
    """Changes carry the version of all messages."""
    rejection = decode_change(message(CHANGE, version=version))
    assert isinstance(rejection, Rejection)
    assert rejection.code is Code.CONTROL_VERSION


@pytest.mark.parametrize("field", ["home", "state", "spelling"])
def test_a_reason_is_short(field: str) -> None:
    """A reason becomes a header and a line for people: what was found is cut, not quoted in full."""
    rejection = decode_change(message(CHANGE, **{field: ["x" * 10_000]}))
    assert isinstance(rejection, Rejection)
    assert len(rejection.reason) < 500


# Acks


def test_an_ack_has_the_documented_fields() -> None:
    """An answer says what stands, for whom, under which number, and which message it answers."""
    ack = Ack(0, Status.IN_FORCE, "alice", "default", "dublin", Number(5, 2), "r1")
    assert json.loads(encode_ack(ack, PLACE, 99)) == {
        "version": 1,
        "status": "in-force",
        "subscriber": "alice",
        "id": "default",
        "home": "dublin",
        "number": [5, 2],
        "request": "r1",
        "place": {"topic": "branchline.control", "partition": 0, "offset": 7},
        "at_ms": 99,
    }


def test_an_ack_that_answers_no_message_has_no_place() -> None:
    """An expiry, or a subscription that is in force later, was asked for in another batch or not at all."""
    ack = Ack(None, Status.EXPIRED, "alice", "default", "dublin", Number(5, 2))
    assert json.loads(encode_ack(ack, None, 99)) == {
        "version": 1,
        "status": "expired",
        "subscriber": "alice",
        "id": "default",
        "home": "dublin",
        "number": [5, 2],
        "at_ms": 99,
    }


def test_a_refusal_has_code_reason_and_place_in_the_text() -> None:
    """A refusal has these and no number; what is not known of the asker is left out."""
    rejection = Rejection(Code.FILTER_SYNTAX, "größe", 2, 6)
    ack = Ack(0, Status.REFUSED, None, None, "dublin", rejection=rejection)
    assert json.loads(encode_ack(ack, PLACE, 99)) == {
        "version": 1,
        "status": "refused",
        "home": "dublin",
        "code": "filter-syntax",
        "reason": "größe",
        "line": 2,
        "column": 6,
        "place": {"topic": "branchline.control", "partition": 0, "offset": 7},
        "at_ms": 99,
    }
