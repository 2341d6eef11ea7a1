"""The messages of the control plane as JSON: requests, acks, and changes.

Requests and acks are what any Kafka client may write and read by hand; `docs/messages.md` is their
description. Changes are what `filters` and `link.<broker>` carry, and what the router keeps in its state.
Reading is strict: an unknown field, a missing one or one of the wrong type is a rejection that says which,
so that a misspelt field is never ignored in silence.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from branchline.kafka.assisting import (
    ANSWER,
    ANSWER_MAX_BYTES,
    ASSIST,
    answering_from_fields,
    assist_from_fields,
)
from branchline.kafka.claiming import FIXED_SET, ask_set_from_fields, claimed_fields, claimed_from_fields
from branchline.kafka.explaining import EXPLAIN, EXPLAIN_MAX_BYTES, Asked, asked_from_fields
from branchline.kafka.fields import (
    FORMAT_VERSION,
    UNFIT,
    boolean,
    check_known,
    check_version,
    counted,
    dump,
    glance,
    items,
    members,
    name,
    read_object,
    text,
    too_large,
    unfit,
)
from branchline.kafka.record import Place
from branchline.kafka.topics import is_name
from branchline.kafka.topologies import TOPOLOGY_FIELDS, topology_fields, topology_from_fields
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import (
    ADVERTISING,
    Ack,
    Change,
    Ended,
    Forgotten,
    Identity,
    Number,
    Operation,
    Request,
    Subscribed,
)
from branchline.routing.limits import CONTROL_MAX_BYTES
from branchline.routing.offloading.assisting import Helping
from branchline.routing.overlay.letters import Propose, Refresh

DEFAULT_ID = "default"
"""The id of a subscription whose request names none."""

REQUEST_ID_MAX_CHARS = 100
"""A request's own id: it is kept in the state and comes back in every answer."""

CHANGE_MAX_BYTES = 64 * 1024
"""A change: a filter and the remembered request ids, every character of them escaped."""

LETTER_MAX_BYTES = 512 * 1024
"""A letter, or a topology: half of what a Kafka record holds by default."""

LETTER_MAX_FIELDS = 20_000
"""Leaf fields of a letter or a topology: a few thousand links, or subscriptions that are reported."""

TOPOLOGY, TICK, REFRESH = "topology", "tick", "refresh"
"""The operations of operators and of the router itself, which are no subscriber's."""

OPERATIONS = (
    *(operation.value for operation in Operation),
    *(ASSIST, ANSWER, FIXED_SET, TOPOLOGY, TICK, REFRESH, EXPLAIN),
)

_MAX_BYTES = {
    TOPOLOGY: LETTER_MAX_BYTES,
    TICK: LETTER_MAX_BYTES,
    REFRESH: CONTROL_MAX_BYTES,
    EXPLAIN: EXPLAIN_MAX_BYTES,
    ASSIST: CONTROL_MAX_BYTES,
    ANSWER: ANSWER_MAX_BYTES,
    FIXED_SET: CONTROL_MAX_BYTES,
}
"""Of the control messages that are no subscriber's request; some may be larger."""

_ASKING = {"version", "op", "subscriber", "id", "home", "request"}
_ADVERTISING = {*_ASKING - {"subscriber"}, "publisher"}
REQUEST_FIELDS = {
    Operation.SUBSCRIBE: {*_ASKING, "spelling", "filter", "lease_ms", "claims"},
    Operation.UNSUBSCRIBE: {*_ASKING, "all"},
    Operation.RENEW: {*_ASKING, "lease_ms"},
    Operation.SUSPEND: {*_ASKING - {"id"}, "all"},
    Operation.ADVERTISE: {*_ADVERTISING, "spelling", "filter"},
    Operation.UNADVERTISE: _ADVERTISING,
}
_NEEDED = {
    Operation.SUBSCRIBE: ("filter",),
    Operation.SUSPEND: ("all",),
    Operation.ADVERTISE: ("filter",),
}
"""Fields that a request must have, beside who asks."""
PROPOSAL_FIELDS = {"version", "op", "request", "topology"}
REFRESH_FIELDS = {"version", "op", "request", "broker", "timeout_ms", "give_up"}
TICK_FIELDS = {"version", "op"}

_IDENTITY = {"state", "home", "subscriber", "id", "number"}
CHANGE_FIELDS = {
    "subscribed": {*_IDENTITY, "spelling", "filter", "requests", "revision", "lease_ms", "until_ms", "own"},
    "ended": {*_IDENTITY, "at_ms", "requests", "expired", "revision", "own"},
    "forgotten": _IDENTITY,
}


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing is asked for: a batch is wanted, because a lease may be over."""


@dataclass(frozen=True, slots=True)
class BadRequest:
    """A control message that is no request, with as much of the asker as could be read."""

    rejection: Rejection
    subscriber: str | None = None
    id: str | None = None
    request: str | None = None
    advert: bool = False
    """It is about an advertisement, and the subscriber a publisher."""


Message: TypeAlias = Request | Propose | Refresh | Asked | Helping | Tick | BadRequest
"""What a control message may be."""


def encode_request(request: Request) -> bytes:
    """The control message for a request."""
    filtered = request.operation in (Operation.SUBSCRIBE, Operation.ADVERTISE)
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": request.operation,
            _asker(request.operation): request.subscriber,
            "id": None if request.all else request.id,
            "all": request.all or None,
            "home": request.home,
            "spelling": request.spelling if filtered else None,
            "filter": request.filter if filtered else None,
            "request": request.request,
            "lease_ms": request.lease_ms,
            "claims": request.claimed and claimed_fields(request.claimed),
        }
    )


def _asker(operation: Operation) -> str:
    """The field that names who asks."""
    return "publisher" if operation in ADVERTISING else "subscriber"


def encode_proposal(propose: Propose) -> bytes:
    """The control message of an operator who asks for a topology."""
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": TOPOLOGY,
            "request": propose.request,
            "topology": topology_fields(propose.topology),
        }
    )


def encode_refresh(refresh: Refresh) -> bytes:
    """The control message of an operator who asks a broker what is still wanted."""
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": REFRESH,
            "request": refresh.request,
            "broker": refresh.broker,
            "timeout_ms": refresh.timeout_ms,
            "give_up": refresh.give_up or None,
        }
    )


def encode_tick() -> bytes:
    """The control message that asks for nothing."""
    return dump({"version": FORMAT_VERSION, "op": TICK})


def decode_control(value: bytes | None) -> Message:
    """What a control message asks for, or why it asks for nothing that we know."""
    fields = read_object(value, max(_MAX_BYTES.values()), LETTER_MAX_FIELDS)
    if isinstance(fields, Rejection):
        return BadRequest(fields)
    operation = fields.get("op")
    limit = _MAX_BYTES.get(operation) if isinstance(operation, str) else None
    if value and len(value) > (limit or CONTROL_MAX_BYTES):
        return _bad(too_large(value, limit or CONTROL_MAX_BYTES), fields)
    if limit is None:
        return _request(fields)
    rejection = check_version(fields)
    if rejection is not None:
        return _bad(rejection, fields)
    if operation == TOPOLOGY:
        return _proposal(fields)
    if operation == EXPLAIN:
        return _question(fields)
    if operation == REFRESH:
        return _refresh(fields)
    if operation in _READERS:
        return _helping(fields)
    if fields.keys() != TICK_FIELDS:
        return _bad(_unknown_field(fields, TICK, TICK_FIELDS), fields)
    return Tick()


def decode_request(value: bytes | None) -> Request | BadRequest:
    """A subscriber's request, or why the message is none."""
    fields = read_object(value, CONTROL_MAX_BYTES)
    return BadRequest(fields) if isinstance(fields, Rejection) else _request(fields)


def _request(fields: dict[str, Any]) -> Request | BadRequest:
    rejection = check_version(fields) or _check_request(fields)
    if rejection is not None:
        return _bad(rejection, fields)
    try:
        claimed = claimed_from_fields(fields["claims"]) if "claims" in fields else None
    except UNFIT as error:
        return _bad(unfit("claims", error), fields)
    return Request(
        Operation(fields["op"]),
        fields[_asker(Operation(fields["op"]))],
        "" if "all" in fields else fields.get("id", DEFAULT_ID),
        fields.get("home"),
        fields.get("spelling", "sql"),
        fields.get("filter", ""),
        fields.get("request"),
        fields.get("lease_ms"),
        "all" in fields,
        claimed=claimed,
    )


def _proposal(fields: dict[str, Any]) -> Propose | BadRequest:
    try:
        check_known(fields, PROPOSAL_FIELDS)
        topology = topology_from_fields(members(fields["topology"], TOPOLOGY_FIELDS))
        request = text(fields["request"]) if "request" in fields else None
    except UNFIT as error:
        return _bad(unfit("a topology", error), fields)
    rejection = _check_request_id(fields)
    return Propose(topology, request) if rejection is None else _bad(rejection, fields)


def _refresh(fields: dict[str, Any]) -> Refresh | BadRequest:
    try:
        check_known(fields, REFRESH_FIELDS)
        broker, timeout_ms = name(fields["broker"]), counted(fields["timeout_ms"])
        request = text(fields["request"]) if "request" in fields else None
        give_up = boolean(fields.get("give_up", False))
    except UNFIT as error:
        return _bad(unfit("a request to refresh", error), fields)
    rejection = _check_request_id(fields)
    return Refresh(broker, timeout_ms, request, give_up) if rejection is None else _bad(rejection, fields)


_READERS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Helping]]] = {
    ASSIST: ("an offer to work", assist_from_fields),
    ANSWER: ("an answer to a task", answering_from_fields),
    FIXED_SET: ("a request for a fixed set", ask_set_from_fields),
}
"""Operations of subscribers that spare their home work: what each is, and how it is read."""


def _helping(fields: dict[str, Any]) -> Helping | BadRequest:
    what, reads = _READERS[fields["op"]]
    try:
        message = reads(fields)
    except UNFIT as error:
        return _bad(unfit(what, error), fields)
    rejection = _check_request_id(fields)
    return message if rejection is None else _bad(rejection, fields)


def _question(fields: dict[str, Any]) -> Asked | BadRequest:
    try:
        asked = asked_from_fields(fields)
    except UNFIT as error:
        return _bad(unfit("a question about an event", error), fields)
    rejection = _check_request_id(fields)
    return asked if rejection is None else _bad(rejection, fields)


def _bad(rejection: Rejection, fields: Mapping[str, Any]) -> BadRequest:
    """A rejection with as much of the asker as can be read."""
    advert = fields.get("op") in [operation.value for operation in ADVERTISING]
    asker, id_, request = (
        _text_or_none(fields, part) for part in ("publisher" if advert else "subscriber", "id", "request")
    )
    return BadRequest(rejection, asker, id_, request, advert)


def encode_ack(ack: Ack, place: Place | None, now_ms: int) -> bytes:
    """The answer to the control message at `place`, None if it answers none of this batch."""
    rejection = ack.rejection
    asked = place and {"topic": place.topic, "partition": place.partition, "offset": place.offset}
    return dump(
        {
            "version": FORMAT_VERSION,
            "status": ack.status,
            "publisher" if ack.advert else "subscriber": ack.subscriber,
            "id": ack.id,
            "home": ack.home,
            "number": ack.number,
            "request": ack.request,
            "code": rejection and rejection.code,
            "reason": rejection and rejection.reason,
            "line": rejection and rejection.line,
            "column": rejection and rejection.column,
            "note": ack.note,
            "place": asked,
            "at_ms": now_ms,
        }
    )


def change_fields(change: Change) -> dict[str, Any]:
    """A change as JSON fields; what is as it is by default is left out."""
    fields: dict[str, Any] = {
        "state": type(change).__name__.lower(),
        **change.identity._asdict(),
        "number": list(change.number),
    }
    added: dict[str, Any] = {}
    match change:
        case Subscribed():
            fields |= {
                "spelling": change.spelling,
                "filter": change.filter,
                "requests": list(change.requests),
            }
            added = {
                "revision": change.revision or None,
                "lease_ms": change.lease_ms,
                "until_ms": change.until_ms,
                "own": change.own or None,
            }
        case Ended():
            fields |= {"at_ms": change.at_ms, "requests": list(change.requests)}
            added = {
                "expired": change.expired or None,
                "revision": change.revision or None,
                "own": change.own or None,
            }
        case Forgotten():
            pass
    return fields | {part: value for part, value in added.items() if value is not None}


def change_from_fields(fields: Mapping[str, Any]) -> Change:
    """The inverse of `change_fields`; raises `UNFIT` on anything else."""
    identity = Identity(*(name(fields[part]) for part in Identity._fields))
    number = number_from(fields["number"])
    state = fields["state"]
    if not isinstance(state, str) or state not in CHANGE_FIELDS:
        raise ValueError(f"state {glance(state)} is unknown")
    check_known(fields, CHANGE_FIELDS[state])
    if state == "forgotten":
        return Forgotten(identity, number)
    requests = tuple(text(item) for item in items(fields["requests"]))
    revision, own = counted(fields.get("revision", 0)), boolean(fields.get("own", False))
    if state == "ended":
        expired = boolean(fields.get("expired", False))
        return Ended(identity, number, counted(fields["at_ms"]), requests, expired, revision, own)
    lease_ms, until_ms = (
        counted(fields[part]) if part in fields else None for part in ("lease_ms", "until_ms")
    )
    spelling, filter_ = text(fields["spelling"]), text(fields["filter"])
    return Subscribed(identity, number, spelling, filter_, requests, revision, lease_ms, until_ms, own)


def number_from(value: Any) -> Number:
    """The number of a change; raises `UNFIT` on anything else."""
    incarnation, counter = items(value)
    return Number(counted(incarnation), counted(counter))


def encode_change(change: Change) -> tuple[bytes, bytes | None]:
    """Key and value of the change on `filters`; a forgotten subscription is a tombstone."""
    key = str(change.identity).encode()
    if isinstance(change, Forgotten):
        return key, None
    return key, dump({"version": FORMAT_VERSION, **change_fields(change)})


def decode_change(value: bytes | None) -> Change | Rejection:
    """A change read from `filters`, or why it is none."""
    fields = read_object(value, CHANGE_MAX_BYTES)
    rejection = fields if isinstance(fields, Rejection) else check_version(fields)
    if rejection is not None:
        return rejection
    assert isinstance(fields, dict)
    try:
        return change_from_fields({part: each for part, each in fields.items() if part != "version"})
    except UNFIT as error:
        return unfit("a change", error)


def _check_request(fields: dict[str, Any]) -> Rejection | None:
    if fields.get("op") not in [operation.value for operation in Operation]:
        return Rejection(Code.CONTROL_OPERATION, f'"op" must be one of {", ".join(OPERATIONS)}')
    operation = Operation(fields["op"])
    if fields.keys() - REQUEST_FIELDS[operation]:
        return _unknown_field(fields, operation, REQUEST_FIELDS[operation])
    more = _NEEDED.get(operation, ())
    for part in (_asker(operation), *more):
        if part not in fields:
            return Rejection(Code.CONTROL_INVALID, f'"{part}" is missing')
    for part, value in fields.items():
        if part == "lease_ms":
            if type(value) is not int:
                return Rejection(Code.CONTROL_INVALID, '"lease_ms" must be an integer')
        elif part == "all":
            if value is not True:
                return Rejection(Code.CONTROL_INVALID, '"all" must be true, or left out')
            if "id" in fields:
                return Rejection(Code.CONTROL_INVALID, '"all" and "id" exclude each other')
        elif part not in ("version", "claims") and not isinstance(value, str):
            return Rejection(Code.CONTROL_INVALID, f'"{part}" must be a string')
    for part in ("subscriber", "publisher", "id", "home"):
        if part in fields and not is_name(fields[part]):
            return Rejection(
                Code.NAME_INVALID,
                f'"{part}" must be 1 to 63 of a-z, 0-9 and "-", not beginning with "-": '
                f"{fields[part][:70]!r}",
            )
    return _check_request_id(fields)


def _unknown_field(fields: Mapping[str, Any], operation: str, known: set[str]) -> Rejection:
    unknown = min(fields.keys() - known)
    return Rejection(
        Code.CONTROL_INVALID,
        f"unknown field {unknown[:40]!r}; {operation} takes " + ", ".join(sorted(known)),
    )


def _check_request_id(fields: Mapping[str, Any]) -> Rejection | None:
    length = len(fields.get("request", ""))
    if length <= REQUEST_ID_MAX_CHARS:
        return None
    return Rejection(
        Code.CONTROL_INVALID, f'"request" has {length} characters; the limit is {REQUEST_ID_MAX_CHARS}'
    )


def _text_or_none(fields: Mapping[str, Any], part: str) -> str | None:
    value = fields.get(part)
    return value[:REQUEST_ID_MAX_CHARS] if isinstance(value, str) else None
