"""A topology as JSON: what an operator writes, what brokers tell each other, and what `filters` keeps.

Only the form and the size of numbers are checked here; whether it can be a topology, and the next one, the
broker says.
"""

from collections.abc import Mapping
from typing import Any

from branchline.kafka.fields import boolean, items, members, name, within
from branchline.routing.overlay.topology import (
    BROKER_NUMBER_MAX,
    FIRST,
    LINK_COST_MAX,
    TOPOLOGY_NUMBER_MAX,
    Link,
    Member,
    Topology,
)

TOPOLOGY_FIELDS = {"number", "brokers", "links", "retired"}
_BROKER_FIELDS = {"name", "number", "cluster", "since", "leaving"}
_LINK_FIELDS = {"between", "cost"}
_RETIRED_FIELDS = {"name", "number"}


def topology_fields(topology: Topology) -> dict[str, Any]:
    """A topology as JSON fields."""
    return {
        "number": topology.number,
        "brokers": [_broker(member) for member in topology.members],
        "links": [{"between": [one, other], "cost": cost} for one, other, cost in topology.links],
        "retired": [{"name": name, "number": number} for name, number in topology.retired],
    }


def topology_from_fields(fields: Mapping[str, Any]) -> Topology:
    """The inverse of `topology_fields`; raises `UNFIT` on anything else."""
    return Topology(
        within(fields["number"], FIRST, TOPOLOGY_NUMBER_MAX),
        tuple(_member(each) for each in items(fields["brokers"])),
        tuple(_link(each) for each in items(fields["links"])),
        tuple(_retired(each) for each in items(fields["retired"])),
    )


def _broker(member: Member) -> dict[str, Any]:
    fields = {
        "name": member.name,
        "number": member.number,
        "cluster": member.cluster,
        "since": member.since,
    }
    return {**fields, "leaving": True} if member.leaving else fields


def _member(value: Any) -> Member:
    fields = members(value, _BROKER_FIELDS)
    return Member(
        name(fields["name"]),
        within(fields["number"], 0, BROKER_NUMBER_MAX),
        name(fields["cluster"]),
        within(fields["since"], FIRST, TOPOLOGY_NUMBER_MAX),
        boolean(fields.get("leaving", False)),
    )


def _link(value: Any) -> Link:
    fields = members(value, _LINK_FIELDS)
    one, other = items(fields["between"])
    return Link(name(one), name(other), within(fields["cost"], 1, LINK_COST_MAX))


def _retired(value: Any) -> tuple[str, int]:
    fields = members(value, _RETIRED_FIELDS)
    return name(fields["name"]), within(fields["number"], 0, BROKER_NUMBER_MAX)
