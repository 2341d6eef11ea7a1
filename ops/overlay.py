"""Topologies for the router commands: one from a file, or a small one for trying out.

A file for people is TOML; brokers get their numbers in its order:

    brokers = ["dublin", {name = "virginia", cluster = "us"}, "lisbon"]
    links = [["dublin", "virginia", 5], ["dublin", "lisbon"]]

A broker is on the cluster `main`, and a link costs 1, unless told otherwise. Any other file is JSON, as
control messages have it.
"""

from pathlib import Path
from typing import Any

from branchline.kafka.errors import ConfigError
from branchline.kafka.fields import UNFIT, check_known, items, members, name, read_object, unfit, within
from branchline.kafka.messages import LETTER_MAX_BYTES, LETTER_MAX_FIELDS
from branchline.kafka.topologies import TOPOLOGY_FIELDS, topology_from_fields
from branchline.ops.toml_files import read_toml
from branchline.routing.codes import Rejection
from branchline.routing.overlay.topology import FIRST, LINK_COST_MAX, Link, Member, Topology, founded, link

_TOML_HINT = 'it must be like this: brokers = ["a", "b"] and links = [["a", "b", 5]]'

SMALL_MOST = 16
"""Brokers of a small overlay: each has three topics of its own, which one machine serves."""


def read_topology(file: Path) -> Topology:
    """The topology in a file, in TOML or as a control message has it; whether it can be one, the job says."""
    try:
        if file.suffix == ".toml":
            return _read_toml(file)
        with file.open("rb") as opened:
            value = opened.read(LETTER_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", hint="check its path") from None
    fields = read_object(value, LETTER_MAX_BYTES, LETTER_MAX_FIELDS)
    try:
        if isinstance(fields, dict):
            return topology_from_fields(members(fields, TOPOLOGY_FIELDS))
    except UNFIT as error:
        fields = unfit("a topology", error)
    assert isinstance(fields, Rejection)
    raise ConfigError(
        f"{file}: {fields.reason}", hint='it must be the object that "topology" is in docs/messages.md'
    )


def _read_toml(file: Path) -> Topology:
    tables = read_toml(file, hint=_TOML_HINT)
    try:
        check_known(tables, {"brokers", "links"})
        brokers = [_member(number, each) for number, each in enumerate(items(tables["brokers"]))]
        links = sorted(_link(each) for each in items(tables.get("links", [])))
    except UNFIT as error:
        raise ConfigError(f"{file}: {unfit('a topology', error).reason}", hint=_TOML_HINT) from None
    return Topology(FIRST, tuple(brokers), tuple(links))


def _member(number: int, value: Any) -> Member:
    if isinstance(value, str):
        return Member(name(value), number)
    fields = members(value, {"name", "cluster"})
    return Member(
        name(fields["name"]), number, name(fields.get("cluster", Member._field_defaults["cluster"]))
    )


def _link(value: Any) -> Link:
    one, other, *cost = items(value)
    if len(cost) > 1:
        raise ValueError("a link is two brokers and perhaps a cost")
    return link(name(one), name(other), within(cost[0], 1, LINK_COST_MAX) if cost else 1)


def small_overlay(count: int, cluster: str) -> Topology:
    """A balanced tree of brokers: `main` at its root, then `b2`, `b3` and so on, two below each."""
    names = ["main", *(f"b{number}" for number in range(2, count + 1))]
    links = [link(names[(place - 1) // 2], names[place]) for place in range(1, count)]
    return founded(names, links, cluster)
