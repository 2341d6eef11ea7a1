"""Fixed sets of brokers, and what subscriptions claim of them, as JSON (`docs/messages.md`).

A subscriber asks for the fixed set of its home, and gets it where its acks come. Its subscriptions then say
where their filters go in it. Reading is strict; what is claimed the broker checks.
"""

from collections.abc import Mapping
from typing import Any

from branchline.kafka.assisting import TASK_MAX_BYTES, between_from
from branchline.kafka.exchanges import filters_from_text, filters_text
from branchline.kafka.fields import (
    FORMAT_VERSION,
    UNFIT,
    check_known,
    counted,
    dump,
    items,
    members,
    name,
    text,
)
from branchline.kafka.jsontext import read_json
from branchline.kafka.record import Record
from branchline.routing.control import Status
from branchline.routing.offloading.assigner import NO_SET, Given
from branchline.routing.offloading.assisting import AskSet
from branchline.routing.offloading.messages import FIXED_MAX, Assignment, Claimed

FIXED_SET = "fixed-set"
"""The operation."""

SET_MAX_FIELDS = 500_000
"""Leaf fields of a fixed set: of the largest, each filter may be right above and below many others."""

ASK_SET_FIELDS = {"version", "op", "subscriber", "home", "request"}
_CLAIM_FIELDS = {"set", "places"}


def encode_ask_set(asked: AskSet) -> bytes:
    """The control message of a subscriber that wants to know the fixed set of its home."""
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": FIXED_SET,
            "subscriber": asked.subscriber,
            "home": asked.home,
            "request": asked.request,
        }
    )


def ask_set_from_fields(fields: Mapping[str, Any]) -> AskSet:
    """The inverse; raises `UNFIT` on anything else."""
    check_known(fields, ASK_SET_FIELDS)
    request = text(fields["request"]) if "request" in fields else None
    return AskSet(name(fields["subscriber"]), name(fields["home"]), request)


def claimed_fields(claimed: Claimed) -> dict[str, Any]:
    """What a subscription claims, as fields."""
    return {"set": claimed.version, "places": claimed.places}


def claimed_from_fields(value: Any) -> Claimed:
    """The inverse; raises `UNFIT` on anything else."""
    fields = members(value, _CLAIM_FIELDS)
    return Claimed(counted(fields["set"]), tuple(map(between_from, items(fields["places"]))))


def assignment_fields(assignment: Assignment) -> dict[str, Any]:
    """A fixed set, as fields."""
    return {
        "set": assignment.version,
        "filters": filters_text(assignment.filters),
        "order": assignment.order,
    }


def assignment_from_fields(fields: Mapping[str, Any]) -> Assignment:
    """The inverse; raises `UNFIT` on anything else."""
    filters = filters_from_text(fields["filters"])
    order = tuple(map(between_from, items(fields["order"])))
    if not len(filters) == len(order) <= FIXED_MAX:
        raise ValueError(f"{len(filters)} filters and an order of {len(order)}")
    if any(place >= len(filters) for between in order for places in between for place in places):
        raise ValueError("the order names a place that is not in the set")
    return Assignment(counted(fields["set"]), filters, order)


def encode_given(given: Given, now_ms: int) -> bytes:
    """The record of a fixed set; of one that has too many bytes for a record, an empty one."""
    said = {
        "version": FORMAT_VERSION,
        "status": Status.FIXED_SET,
        "subscriber": given.subscriber,
        "home": given.home,
        "request": given.request,
    }
    encoded = dump({**said, **assignment_fields(given.assignment), "at_ms": now_ms})
    if len(encoded) <= TASK_MAX_BYTES:
        return encoded
    return dump({**said, **assignment_fields(NO_SET), "at_ms": now_ms})


def decode_given(record: Record, request: str) -> Assignment | None:
    """The fixed set that answers this request; None if the record of acks does not hold it."""
    fields = read_json(record.value or b"", SET_MAX_FIELDS)
    if not isinstance(fields, dict) or fields.get("status") != Status.FIXED_SET:
        return None
    if fields.get("request") != request:
        return None
    try:
        return assignment_from_fields(fields)
    except UNFIT:
        return None
