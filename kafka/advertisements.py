"""Advertisements as JSON: how `filters` records them, under keys of their own, and the state keeps them."""

from collections.abc import Mapping
from typing import Any

from branchline.kafka.fields import boolean, check_known, counted, items, name, text
from branchline.routing.control import Identity, Number
from branchline.routing.dissemination.adverts import AdvertChange, Advertised, Unadvertised, Unremembered

ADVERT_KEY = b"advertisement/"
"""What the key of an advertisement on `filters` begins with; an identity has fewer slashes, so it is none."""

_IDENTITY = {"state", "home", "publisher", "id", "number"}
ADVERT_FIELDS = {
    "advertised": {*_IDENTITY, "spelling", "filter", "requests", "revision", "own"},
    "unadvertised": {*_IDENTITY, "at_ms", "requests", "revision", "own"},
    "unremembered": _IDENTITY,
}


def advert_key(identity: Identity) -> bytes:
    """The key of the advertisement on `filters`."""
    return ADVERT_KEY + str(identity).encode()


def identity_of_key(key: bytes) -> Identity | None:
    """Whose key it is; None if it is none of an advertisement."""
    parts = key.removeprefix(ADVERT_KEY).decode(errors="replace").split("/")
    is_one = key.startswith(ADVERT_KEY) and len(parts) == len(Identity._fields)
    return Identity(*parts) if is_one else None


def advert_fields(change: AdvertChange) -> dict[str, Any]:
    """A change of an advertisement as JSON fields; what is as it is by default is left out."""
    home, publisher, id_ = change.identity
    fields: dict[str, Any] = {
        "state": type(change).__name__.lower(),
        "home": home,
        "publisher": publisher,
        "id": id_,
        "number": list(change.number),
    }
    if isinstance(change, Unremembered):
        return fields
    if isinstance(change, Advertised):
        fields |= {"spelling": change.spelling, "filter": change.filter}
    else:
        fields["at_ms"] = change.at_ms
    added = {"revision": change.revision or None, "own": change.own or None}
    fields["requests"] = list(change.requests)
    return fields | {part: value for part, value in added.items() if value is not None}


def advert_from_fields(fields: Mapping[str, Any]) -> AdvertChange:
    """The inverse of `advert_fields`; raises `UNFIT` on anything else."""
    check_known(fields, ADVERT_FIELDS[fields["state"]])
    identity = Identity(*(name(fields[part]) for part in ("home", "publisher", "id")))
    incarnation, counter = items(fields["number"])
    number = Number(counted(incarnation), counted(counter))
    if fields["state"] == "unremembered":
        return Unremembered(identity, number)
    requests = tuple(text(item) for item in items(fields["requests"]))
    more = requests, counted(fields.get("revision", 0)), boolean(fields.get("own", False))
    if fields["state"] == "unadvertised":
        return Unadvertised(identity, number, counted(fields["at_ms"]), *more)
    return Advertised(identity, number, text(fields["spelling"]), text(fields["filter"]), *more)
