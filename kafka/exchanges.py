"""What neighbours on a tree tell each other of filters, as JSON fields (`routing/dissemination/telling.py`).

A set of filters is one text: base64 of the table of kin that its constraints refer to, its length before it,
and the filters one behind the other, as a stored table has them. Reading is strict: what no filter in normal
form is, is no letter.
"""

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from branchline.kafka.fields import boolean, counted, integer, items, name, text
from branchline.routing.dissemination.pulling import Pull, Reply
from branchline.routing.dissemination.telling import Ask, Exchange, Settled, Stream, Told
from branchline.routing.filters import Filter, conjoin
from branchline.routing.prefix.keyed import Kins, read_filters, read_kins
from branchline.routing.prefix.possible import is_constraint
from branchline.routing.prefix.varints import put, take

EXCHANGE_FIELDS = {
    "told": {"stream", "number", "wanted", "advertised", "whole", "complete"},
    "settled": {"stream", "number"},
    "ask": {"topology"},
    "pull": {"topology", "issuer", "number", "timeout_ms"},
    "reply": {"topology", "issuer", "number"},
}

Exchanged: TypeAlias = Told | Settled | Ask | Pull | Reply


def exchange_fields(told: Exchanged) -> dict[str, Any]:
    """The fields, but for the one that says what it is."""
    match told:
        case Told():
            return {
                "stream": _stream_fields(told.stream),
                "number": told.number,
                "wanted": [filters_text(each) for each in told.wanted],
                "advertised": [filters_text(each) for each in told.advertised],
                "whole": told.whole,
                "complete": told.complete,
            }
        case Settled():
            return {"stream": _stream_fields(told.stream), "number": told.number}
        case Ask():
            return {"topology": list(told.topology)}
        case Pull() | Reply():
            asked = {"topology": list(told.topology), "issuer": told.issuer, "number": told.number}
            return asked | ({"timeout_ms": told.timeout_ms} if isinstance(told, Pull) else {})


def exchange_from_fields(state: str, fields: Mapping[str, Any]) -> Exchanged:
    """The inverse; raises one of `UNFIT` on anything else."""
    match state:
        case "told":
            return Told(
                _stream(fields["stream"]),
                counted(fields["number"]),
                _exchange(fields["wanted"]),
                _exchange(fields["advertised"]),
                boolean(fields["whole"]),
                boolean(fields["complete"]),
            )
        case "settled":
            return Settled(_stream(fields["stream"]), counted(fields["number"]))
        case "ask":
            return Ask(_order(fields["topology"]))
        case _:
            asked = _order(fields["topology"]), name(fields["issuer"]), counted(fields["number"])
            return Pull(*asked, counted(fields["timeout_ms"])) if state == "pull" else Reply(*asked)


def filters_text(filters: Iterable[Filter]) -> str:
    """A set of filters as text; an empty one is the empty text."""
    kins = Kins()
    data = b"".join(map(kins.filter, filters))
    if not data:
        return ""
    table, out = kins.packed(), bytearray()
    put(out, len(table))
    return b64encode(bytes(out) + table + data).decode()


def filters_from_text(value: Any) -> tuple[Filter, ...]:
    """The inverse; raises a ValueError on anything else."""
    if not text(value):
        return ()
    try:
        data = memoryview(b64decode(value, validate=True))
        length, at = take(data, 0)
        made = tuple(read_filters(data[at + length :], read_kins(data[at : at + length])))
        fits = all(is_constraint(each) for filter_ in made for each in filter_)
        if fits and all(conjoin(filter_) == filter_ for filter_ in made):
            return made
    except (IndexError, ValueError, struct.error) as error:
        raise ValueError("not a set of filters") from error
    raise ValueError("not a set of filters in normal form")


def _exchange(value: Any) -> Exchange:
    added, removed = items(value)
    return Exchange(filters_from_text(added), filters_from_text(removed))


def _stream_fields(stream: Stream) -> list[int]:
    return [*stream.topology, stream.start_ms]


def _stream(value: Any) -> Stream:
    *order, start_ms = items(value)
    return Stream(_order(order), counted(start_ms))


def _order(value: Any) -> tuple[int, int]:
    number, digest = items(value)
    return counted(number), integer(digest)
