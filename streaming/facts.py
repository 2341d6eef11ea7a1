"""A shard's state as bytes: one JSON object, in which what the Tree Optimizer told stands as base64.

Facts that are also told between brokers are written as letters write them, the others in the same way:
`state` says what a fact is. An event that is held is its record, whole, and what was read of its headers.
Only our own program writes and reads this, so what cannot be read is a fault of ours, and raises.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from branchline.kafka.arrivals import Received, received
from branchline.kafka.fields import dump
from branchline.kafka.headers import read_place
from branchline.kafka.letters import told_fields, told_from_fields
from branchline.kafka.messages import number_from
from branchline.kafka.record import Headers, Place, Record
from branchline.routing.control import Identity, Number
from branchline.routing.dissemination.adverts import AdvertAwaited, Gated, Lingering, Withdrawn
from branchline.routing.dissemination.link_facts import (
    Answered,
    Confirmed,
    Deferred,
    Heard,
    Owed,
    Sent,
    Spared,
)
from branchline.routing.dissemination.pulling import Concluded, Pull, Pulled, Replied, Reply
from branchline.routing.dissemination.telling import Ask, Marks, Settled, Told
from branchline.routing.offloading.facts import (
    Assigned,
    Began,
    Placed,
    Queue,
    RoundOver,
    Table,
    Volunteered,
    Waits,
    Worked,
)
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.facts import Fact, Held, Kept, Lapsed, Limited, Released, Removed, Vacant
from branchline.routing.overlay.letters import Due, Expire, Report
from branchline.routing.overlay.pending import Awaited
from branchline.routing.prefix import header, telling
from branchline.routing.shard import ShardState
from branchline.streaming.facts_of_offloading import STATES, offloaded_fields, offloaded_from_fields


def pack(state: ShardState) -> bytes:
    """A log entry, or a whole snapshot, as bytes."""
    return dump(
        {
            "told": [_encoded(telling.encode(told)) for told in state.told],
            "facts": [[broker, fact_fields(fact)] for broker, fact in state.facts],
        }
    )


def unpack(entry: bytes) -> ShardState:
    """The inverse of `pack`."""
    fields: dict[str, Any] = json.loads(entry)
    told = [telling.decode(b64decode(each)) for each in fields["told"]]
    assert None not in told, "the state has what was encoded"
    return ShardState(
        tuple(each for each in told if each is not None),
        tuple((broker, fact_from_fields(fact)) for broker, fact in fields["facts"]),
    )


def fact_fields(fact: Fact) -> dict[str, Any]:
    """A fact as JSON fields."""
    state: dict[str, Any] = {"state": type(fact).__name__.lower()}
    match fact:
        case Number():
            return {**state, "number": list(fact)}
        case Awaited():
            return {
                **state,
                **fact.identity._asdict(),
                "number": list(fact.number),
                "requests": list(fact.requests),
                **({} if fact.marks is None else {"marks": _marks_fields(fact.marks)}),
                **({"after": fact.after} if fact.after else {}),
            }
        case Heard():
            return {**state, "sender": fact.sender, "told": told_fields(fact.told)}
        case Sent():
            return {**state, "to": fact.to, "told": told_fields(fact.told)}
        case Confirmed():
            return {**state, "sender": fact.sender, "settled": told_fields(fact.settled)}
        case Owed():
            return {**state, "to": fact.to, "number": fact.number, "marks": _marks_fields(fact.marks)}
        case Answered():
            return {**state, "to": fact.to, "number": fact.number}
        case Pulled():
            issued = {"issuer": fact.issuer, "number": fact.number, "timeout_ms": fact.timeout_ms}
            asked = {"asker": fact.asker, "requests": list(fact.requests), "filters": fact.filters}
            return state | issued | asked
        case Replied():
            return {**state, "issuer": fact.issuer, "sender": fact.sender, "given_up": fact.given_up}
        case Concluded():
            return {**state, "issuer": fact.issuer}
        case Kept():
            return {**state, "report": told_fields(fact.report)}
        case Lapsed():
            return {**state, "until_ms": fact.until_ms}
        case Limited():
            return {**state, "subscriptions": fact.subscriptions}
        case Vacant():
            own = {"own": True} if fact.own else {}
            return {**state, "subscriber": fact.subscriber, "since_ms": fact.since_ms, **own}
        case Removed():
            return {**state, "subscriber": fact.subscriber}
        case Held():
            return state | _arrival_fields(fact.arrival)
        case Released():
            return state
        case Lingering():
            return {
                **state,
                "spelling": fact.spelling,
                "filter": fact.filter,
                "until_ms": fact.until_ms,
            }
        case Withdrawn():
            return {**state, "until_ms": fact.until_ms}
        case Gated():
            return {**state, "gated": fact.gated}
        case AdvertAwaited():
            return {**state, "awaited": fact_fields(fact.awaited)}
        case (
            Volunteered()
            | Waits()
            | Began()
            | Worked()
            | Placed()
            | RoundOver()
            | Table()
            | Queue()
            | Assigned()
            | Spared()
            | Deferred()
        ):
            return state | offloaded_fields(fact)
        case _:
            return told_fields(fact)


def fact_from_fields(fields: Mapping[str, Any]) -> Fact:
    """The inverse of `fact_fields`."""
    match fields["state"]:
        case "number":
            return number_from(fields["number"])
        case "awaited":
            identity = Identity(*(fields[part] for part in Identity._fields))
            marks = _marks(fields["marks"]) if "marks" in fields else None
            known = number_from(fields["number"]), tuple(fields["requests"]), marks
            return Awaited(identity, *known, fields.get("after", 0))
        case "heard" | "sent":
            told = told_from_fields(fields["told"])
            assert isinstance(told, Told), "only what was told is heard and sent"
            return Heard(fields["sender"], told) if "sender" in fields else Sent(fields["to"], told)
        case "confirmed":
            settled = told_from_fields(fields["settled"])
            assert isinstance(settled, Settled), "only answers are confirmed"
            return Confirmed(fields["sender"], settled)
        case "owed":
            return Owed(fields["to"], fields["number"], _marks(fields["marks"]))
        case "answered":
            return Answered(fields["to"], fields["number"])
        case "pulled":
            issued = fields["issuer"], fields["number"], fields["timeout_ms"]
            return Pulled(*issued, fields.get("asker"), tuple(fields["requests"]), fields["filters"])
        case "replied":
            return Replied(fields["issuer"], fields["sender"], fields["given_up"])
        case "concluded":
            return Concluded(fields["issuer"])
        case "kept":
            report = told_from_fields(fields["report"])
            assert isinstance(report, Report), "only reports are kept"
            return Kept(report)
        case "lapsed":
            return Lapsed(fields["until_ms"])
        case "limited":
            return Limited(fields["subscriptions"])
        case "vacant":
            return Vacant(fields["subscriber"], fields["since_ms"], fields.get("own", False))
        case "removed":
            return Removed(fields["subscriber"])
        case "held":
            return Held(_arrival(fields))
        case "released":
            return Released()
        case "lingering":
            return Lingering(fields["spelling"], fields["filter"], fields["until_ms"])
        case "withdrawn":
            return Withdrawn(fields["until_ms"])
        case "gated":
            return Gated(fields["gated"])
        case "advertawaited":
            awaited = fact_from_fields(fields["awaited"])
            assert isinstance(awaited, Awaited), "only what waits is awaited"
            return AdvertAwaited(awaited)
        case state if state in STATES:
            return offloaded_from_fields(fields)
        case _:
            fact = told_from_fields(fields)
            assert not isinstance(fact, Expire | Due | Told | Settled | Ask), "what is only told is no fact"
            assert not isinstance(fact, Pull | Reply), "nor is what is asked along a tree"
            return fact


def _marks_fields(marks: Marks) -> list[list[Any]]:
    return [list(mark) for mark in marks]


def _marks(value: Any) -> Marks:
    return tuple((name, number) for name, number in value)


def _arrival_fields(arrival: Arrival) -> dict[str, Any]:
    content = received(arrival)
    record = content.record
    return {
        "place": str(record.place),
        "key": _encoded(record.key),
        "value": _encoded(record.value),
        # Names as bytes too: one may hold half of a surrogate pair, which JSON cannot carry.
        "headers": [
            [_encoded(name.encode(errors="surrogatepass")), _encoded(value)] for name, value in record.headers
        ],
        "origin": str(content.origin),
        "only": arrival.only,
        "header": None if arrival.header is None else _encoded(header.encode(arrival.header)),
    }


def _arrival(fields: Mapping[str, Any]) -> Arrival:
    headers: Headers = tuple(
        ((_decoded(name) or b"").decode(errors="surrogatepass"), _decoded(value))
        for name, value in fields["headers"]
    )
    record = Record(_place(fields["place"]), _decoded(fields["key"]), _decoded(fields["value"]), headers)
    told = None if fields["header"] is None else header.decode(b64decode(fields["header"]))
    return Arrival(Received(record, _place(fields["origin"])), told, fields["only"])


def _place(text: str) -> Place:
    place = read_place(text)
    assert place is not None, "our own places read back"
    return place


def _encoded(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


def _decoded(value: str | None) -> bytes | None:
    return None if value is None else b64decode(value)
