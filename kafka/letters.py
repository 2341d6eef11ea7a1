"""What brokers tell each other, and what `filters` records, as JSON.

A letter is a record on `link.<broker>` of the broker that it is for; who sent it stands in it as `from`, and
`state` says what it tells. On `filters`, subscriptions stand under their identities and the newest topology
under the key `topology`; advertisements have keys of their own. The router keeps its facts in the same forms.
Reading is strict, as for requests.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from branchline.kafka.advertisements import ADVERT_FIELDS, advert_fields, advert_from_fields, advert_key
from branchline.kafka.exchanges import EXCHANGE_FIELDS, exchange_fields, exchange_from_fields
from branchline.kafka.fields import (
    FORMAT_VERSION,
    UNFIT,
    check_known,
    check_version,
    counted,
    dump,
    glance,
    integer,
    items,
    name,
    read_object,
    text,
    unfit,
)
from branchline.kafka.messages import (
    CHANGE_FIELDS,
    LETTER_MAX_BYTES,
    LETTER_MAX_FIELDS,
    change_fields,
    change_from_fields,
    encode_change,
    number_from,
)
from branchline.kafka.topologies import TOPOLOGY_FIELDS, topology_fields, topology_from_fields
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Change, Forgotten, Identity
from branchline.routing.dissemination import pulling, telling
from branchline.routing.dissemination.adverts import AdvertChange, Advertised, Unadvertised, Unremembered
from branchline.routing.optimise.learned import Learned, readable
from branchline.routing.overlay.letters import Body, Complete, Due, Expire, Letter, Report
from branchline.routing.overlay.recording import Recorded
from branchline.routing.overlay.topology import Topology

Told: TypeAlias = Change | AdvertChange | Body
"""All that is told or recorded."""

REPORT_PIECE = 1_000
"""Subscriptions in one letter that reports: a batch may bring more than a record can hold."""

TOPOLOGY_KEY = b"topology"
"""The key of the topology on `filters`; an identity has slashes, so it is none."""

_FIELDS = {
    "report": {"home", "reporter", "topology", "has"},
    "topology": TOPOLOGY_FIELDS,
    "complete": set[str](),
    "due": set[str](),
    "learned": {"number", "events", "entries", "counted"},
    "expire": {"home", "subscriber", "id", "number", "until_ms"},
    **EXCHANGE_FIELDS,
}
_STATES = CHANGE_FIELDS.keys() | ADVERT_FIELDS.keys() | _FIELDS.keys()


def told_fields(told: Told) -> dict[str, Any]:
    """Something told as JSON fields; `state` says what it is."""
    state = {"state": type(told).__name__.lower()}
    match told:
        case Report():
            assert all(identity.home == told.home for identity, _ in told.has), "a report is about one home"
            has = [[identity.subscriber, identity.id, *number] for identity, number in told.has]
            return {
                **state,
                "home": told.home,
                "reporter": told.reporter,
                "topology": list(told.topology),
                "has": has,
            }
        case Topology():
            return state | topology_fields(told)
        case Complete() | Due():
            return state
        case Learned():
            counted_ = {"events": told.events, "entries": told.entries}
            return {**state, "number": told.number, **counted_, "counted": b64encode(told.counted).decode()}
        case Expire():
            until = {"number": list(told.number), "until_ms": told.until_ms}
            return {**state, **told.identity._asdict(), **until}
        case telling.Told() | telling.Settled() | telling.Ask() | pulling.Pull() | pulling.Reply():
            return state | exchange_fields(told)
        case Advertised() | Unadvertised() | Unremembered():
            return advert_fields(told)
        case _:
            return change_fields(told)


def told_from_fields(fields: Mapping[str, Any]) -> Told:
    """The inverse of `told_fields`; raises `UNFIT` on anything else."""
    state = fields["state"]
    if not isinstance(state, str) or state not in _STATES:
        raise ValueError(f"state {glance(state)} is unknown")
    if state in ADVERT_FIELDS:
        return advert_from_fields(fields)
    if state in CHANGE_FIELDS:
        return change_from_fields(fields)
    check_known(fields, _FIELDS[state] | {"state"})
    match state:
        case "report":
            home = name(fields["home"])
            number, digest = items(fields["topology"])
            has = tuple(_had(home, each) for each in items(fields["has"]))
            return Report(home, name(fields["reporter"]), (counted(number), integer(digest)), has)
        case "topology":
            return topology_from_fields(fields)
        case "complete":
            return Complete()
        case "due":
            return Due()
        case "told" | "settled" | "ask" | "pull" | "reply":
            return exchange_from_fields(state, fields)
        case "learned":
            counts = readable(b64decode(text(fields["counted"]), validate=True))
            return Learned(
                counted(fields["number"]), _some(fields["events"]), counted(fields["entries"]), counts
            )
        case _:
            identity = Identity(*(name(fields[part]) for part in Identity._fields))
            return Expire(identity, number_from(fields["number"]), counted(fields["until_ms"]))


def _some(value: Any) -> int:
    if counted(value) == 0:
        raise ValueError("nothing is learned from no events")
    return counted(value)


def _had(home: str, value: Any) -> tuple[Identity, Any]:
    subscriber, id_, *number = items(value)
    return Identity(home, name(subscriber), name(id_)), number_from(number)


def encode_letter(letter: Letter) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of the letter's records: one, or several for a report of very much."""
    for body in _pieces(letter.body):
        fields = {"version": FORMAT_VERSION, "from": letter.sender, **told_fields(body)}
        yield letter.sender.encode(), dump(fields)


def _pieces(body: Body) -> Iterator[Body]:
    if not isinstance(body, Report) or len(body.has) <= REPORT_PIECE:
        yield body
        return
    for start in range(0, len(body.has), REPORT_PIECE):
        yield replace(body, has=body.has[start : start + REPORT_PIECE])


def decode_letter(to: str, value: bytes | None) -> Letter | Rejection:
    """The letter to this broker, or why the record is none."""
    fields = read_object(value, LETTER_MAX_BYTES, LETTER_MAX_FIELDS)
    rejection = fields if isinstance(fields, Rejection) else check_version(fields)
    if rejection is not None:
        return rejection
    assert isinstance(fields, dict)
    try:
        sender = name(fields["from"])
        body = told_from_fields({part: each for part, each in fields.items() if part not in _AROUND})
    except UNFIT as error:
        return unfit("a letter", error)
    if isinstance(body, Forgotten):
        return Rejection(Code.CONTROL_INVALID, "not a letter: what is forgotten is told to nobody")
    if isinstance(body, AdvertChange):
        return Rejection(Code.CONTROL_INVALID, "not a letter: advertisements are told by their filters")
    return Letter(to, sender, body)


_AROUND = ("version", "from")


def encode_recorded(recorded: Recorded) -> tuple[bytes, bytes | None]:
    """Key and value of the record on `filters`; what is forgotten is a tombstone."""
    if isinstance(recorded, Unremembered):
        return advert_key(recorded.identity), None
    if isinstance(recorded, Advertised | Unadvertised):
        value = dump({"version": FORMAT_VERSION, **advert_fields(recorded)})
        return advert_key(recorded.identity), value
    if isinstance(recorded, Topology):
        return TOPOLOGY_KEY, dump({"version": FORMAT_VERSION, **told_fields(recorded)})
    return encode_change(recorded)


def decode_recorded(value: bytes | None) -> Recorded | Rejection:
    """What a record on `filters` says, or why it says nothing."""
    fields = read_object(value, LETTER_MAX_BYTES, LETTER_MAX_FIELDS)
    rejection = fields if isinstance(fields, Rejection) else check_version(fields)
    if rejection is not None:
        return rejection
    assert isinstance(fields, dict)
    try:
        told = told_from_fields({part: each for part, each in fields.items() if part != "version"})
    except UNFIT as error:
        return unfit("a record of filters", error)
    if isinstance(told, Change | AdvertChange | Topology):
        return told
    return Rejection(Code.CONTROL_INVALID, f"not a record of filters: {fields['state']}")
