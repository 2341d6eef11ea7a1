"""Questions about events, and their answers, as JSON.

Whoever asks has read the event's record, and sends all of it: a job that does not serve the broker where the
event entered could not find it, and one that does need not. Bytes stand in base64. Lists in answers are cut,
since an answer is one record; `left_out` says by how much.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from branchline.kafka.fields import (
    FORMAT_VERSION,
    boolean,
    check_known,
    dump,
    glance,
    integer,
    items,
    name,
    text,
)
from branchline.kafka.headers import read_place
from branchline.kafka.record import Place, Record
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Identity, Status
from branchline.routing.overlay.denying import Denial
from branchline.routing.overlay.explaining import Explained, Onward
from branchline.routing.overlay.hops import LISTS, Hop
from branchline.routing.prefix.header import Header, decode, encode

EXPLAIN = "explain"
"""The operation."""

EXPLAIN_MAX_BYTES = 768 * 1024
"""A question: an event of full size with its headers, in base64, fits; so does a large key."""

EXPLAINED_MAX_BYTES = 900 * 1024
"""An answer: less than what a Kafka record holds by default."""

EXPLAINED_MAX_NAMES = 100
"""Names in one list of an answer, lines of a path, subscriptions that are denied."""

EXPLAIN_FIELDS = {
    *("version", "op", "request", "broker", "place", "key", "value", "headers"),
    *("prefix", "from", "subscriber", "follow"),
}

_LINE_MOST = 500
"""Characters of a line of a path."""
_FAILURES_MOST = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about an event at a broker; the place of its record is that of its publication."""

    broker: str
    record: Record
    header: Header | None = None
    """What the copy carries; None for an event that enters at the broker."""
    sender: str | None = None
    subscriber: str | None = None
    follow: bool = True
    request: str | None = None


def encode_asked(asked: Asked) -> bytes:
    """The control message that asks."""
    record = asked.record
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": EXPLAIN,
            "request": asked.request,
            "broker": asked.broker,
            "place": str(record.place),
            "key": _encoded(record.key),
            "value": _encoded(record.value),
            # Names as bytes too: one may hold half of a surrogate pair, which JSON cannot carry.
            "headers": [
                [_encoded(header.encode(errors="surrogatepass")), _encoded(value)]
                for header, value in record.headers
            ]
            or None,
            "prefix": None if asked.header is None else _encoded(encode(asked.header)),
            "from": asked.sender,
            "subscriber": asked.subscriber,
            "follow": None if asked.follow else False,
        }
    )


def asked_from_fields(fields: Mapping[str, Any]) -> Asked:
    """The inverse of `encode_asked`; raises `UNFIT` on anything else."""
    check_known(fields, EXPLAIN_FIELDS)
    place = read_place(text(fields["place"]))
    if place is None:
        raise ValueError(f"{glance(fields['place'])} is not a place: topic:partition:offset:timestamp")
    headers = tuple(_header(each) for each in items(fields.get("headers", [])))
    prefix = fields.get("prefix")
    return Asked(
        name(fields["broker"]),
        Record(place, _bytes(fields.get("key")), _bytes(fields.get("value")), headers),
        None if prefix is None else _prefix(prefix),
        None if "from" not in fields else name(fields["from"]),
        None if "subscriber" not in fields else name(fields["subscriber"]),
        boolean(fields.get("follow", True)),
        None if "request" not in fields else text(fields["request"]),
    )


def encode_explained(answer: Explained, place: Place | None, now_ms: int) -> bytes:
    """The ack that answers the control message at `place`."""
    refused = answer.refused
    if refused is None:
        encoded = dump(_ack(answer, Status.EXPLAINED, place, now_ms, _answer_fields(answer)))
        if len(encoded) <= EXPLAINED_MAX_BYTES:
            return encoded
        refused = Rejection(
            Code.CONTROL_TOO_LARGE,
            f"the explanation has {len(encoded)} bytes; the limit is {EXPLAINED_MAX_BYTES}",
        )
    why = {"code": refused.code, "reason": refused.reason}
    return dump(_ack(answer, Status.REFUSED, place, now_ms, why))


def explained_from_fields(fields: Mapping[str, Any]) -> Explained:
    """What an ack answers; raises `UNFIT` on anything but what `encode_explained` writes."""
    status, asker = Status(fields["status"]), (fields.get("request"), fields.get("subscriber"))
    if status is Status.REFUSED:
        # A question that could not be read names no broker.
        named = (fields.get("broker", ""), fields.get("cluster", ""))
        return Explained(*named, *asker, refused=Rejection(Code(fields["code"]), text(fields["reason"])))
    return Explained(
        fields["broker"],
        fields["cluster"],
        *asker,
        tuple(_hop(each) for each in fields["hops"]),
        tuple(
            Onward(each["to"], each.get("cluster"), each["from"], _prefix(each["prefix"]))
            for each in fields["onward"]
        ),
        boolean(fields.get("delivered", False)),
        tuple((each["home"], each.get("cluster")) for each in fields.get("homes", ())),
        tuple(_denial(each) for each in fields.get("denials", ())),
        integer(fields.get("more_denials", 0)),
    )


def hop_fields(hop: Hop) -> dict[str, Any]:
    """A hop as JSON fields."""
    fields = {
        "broker": hop.broker,
        "from": hop.sender,
        "topology": hop.topology,
        "how": hop.how,
        **{each: list(getattr(hop, each)) for each in LISTS},
        "copies": [{"to": to, "scope": list(scope)} for to, scope in hop.copies],
        "stopped": hop.stopped,
        "knows": hop.knows,
        "left_out": dict(hop.left_out) or None,
    }
    return {part: value for part, value in fields.items() if value is not None}


def _hop(fields: Mapping[str, Any]) -> Hop:
    lists = {each: tuple(fields[each]) for each in LISTS}
    return Hop(
        fields["broker"],
        fields.get("from"),
        fields.get("topology"),
        how=fields["how"],
        **lists,
        copies=tuple((each["to"], tuple(each["scope"])) for each in fields["copies"]),
        stopped=fields.get("stopped"),
        knows=fields.get("knows"),
        left_out=tuple(fields.get("left_out", {}).items()),
    )


def _answer_fields(answer: Explained) -> dict[str, Any]:
    most = EXPLAINED_MAX_NAMES
    fields: dict[str, Any] = {
        "hops": [hop_fields(hop.cut(most, _LINE_MOST)) for hop in answer.hops],
        "onward": [
            _present(
                to=each.to,
                cluster=each.cluster,
                **{"from": each.sender},
                prefix=_encoded(encode(each.header)),
            )
            for each in answer.onward
        ],
    }
    if answer.subscriber is not None:
        fields |= {
            "delivered": answer.delivered,
            "homes": [_present(home=home, cluster=cluster) for home, cluster in answer.homes[:most]],
            "denials": [_denial_fields(each) for each in answer.denials[:most]],
            "more_denials": max(len(answer.denials) - most, 0) + answer.more_denials or None,
        }
    return fields


def _denial_fields(denial: Denial) -> dict[str, Any]:
    return {
        "subscription": str(denial.subscription),
        "filter": denial.filter,
        "matches": denial.matches,
        "failures": list(denial.failures[:_FAILURES_MOST]),
        "waits_for": list(denial.waits_for[:EXPLAINED_MAX_NAMES]),
    }


def _denial(fields: Mapping[str, Any]) -> Denial:
    home, subscriber, id_ = fields["subscription"].split("/")
    return Denial(
        Identity(home, subscriber, id_),
        text(fields["filter"]),
        boolean(fields["matches"]),
        tuple(fields["failures"]),
        tuple(fields["waits_for"]),
    )


def _ack(
    answer: Explained, status: Status, place: Place | None, now_ms: int, more: Mapping[str, Any]
) -> dict[str, Any]:
    asked = place and {"topic": place.topic, "partition": place.partition, "offset": place.offset}
    return {
        "version": FORMAT_VERSION,
        "status": status,
        "broker": answer.broker,
        "cluster": answer.cluster,
        "subscriber": answer.subscriber,
        "request": answer.request,
        **more,
        "place": asked,
        "at_ms": now_ms,
    }


def _header(value: Any) -> tuple[str, bytes | None]:
    header, content = items(value)
    return (_bytes(text(header)) or b"").decode(errors="surrogatepass"), _bytes(content)


def _prefix(value: Any) -> Header:
    header = decode(_bytes(text(value)) or b"")
    if header is None:
        raise ValueError(f"{glance(value)} is not a prefix as we write it")
    return header


def _bytes(value: Any) -> bytes | None:
    return None if value is None else b64decode(text(value), validate=True)


def _encoded(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


def _present(**fields: Any) -> dict[str, Any]:
    return {part: value for part, value in fields.items() if value is not None}
