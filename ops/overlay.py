"""Topologies for the router commands: one from a file, or a small one for trying out."""

from pathlib import Path

from branchline.kafka.errors import ConfigError
from branchline.kafka.fields import UNFIT, members, read_object, unfit
from branchline.kafka.messages import LETTER_MAX_BYTES, LETTER_MAX_FIELDS
from branchline.kafka.topologies import TOPOLOGY_FIELDS, topology_from_fields
from branchline.routing.codes import Rejection
from branchline.routing.overlay.topology import Topology, founded, link

SMALL_MOST = 16
"""Brokers of a small overlay: each has three topics of its own, which one machine serves."""


def read_topology(file: Path) -> Topology:
    """The topology in a file, as a control message has it; whether it can be one, the job says."""
    try:
        value = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", hint="check --topology") from None
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


def small_overlay(count: int, cluster: str) -> Topology:
    """A balanced tree of brokers: `main` at its root, then `b2`, `b3` and so on, two below each."""
    names = ["main", *(f"b{number}" for number in range(2, count + 1))]
    links = [link(names[(place - 1) // 2], names[place]) for place in range(1, count)]
    return founded(names, links, cluster)
