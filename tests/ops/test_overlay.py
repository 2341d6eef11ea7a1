"""Topologies for the router commands: from a file, and for trying out."""

import json
from pathlib import Path

import pytest

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError
from branchline.kafka.topologies import topology_fields
from branchline.ops.overlay import SMALL_MOST, read_topology, small_overlay
from branchline.routing.overlay.topology import fault, founded, link
from branchline.streaming.router import RouterConfig

DOC = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
PAIR = founded(["dublin", "virginia"], [link("dublin", "virginia")])


def test_a_topology_is_read_from_a_file(tmp_path: Path) -> None:
    """What a control message has under `topology` is what the file has."""
    file = tmp_path / "overlay.json"
    file.write_text(json.dumps(topology_fields(PAIR)))
    assert read_topology(file) == PAIR


def test_the_documented_file_is_one(tmp_path: Path) -> None:
    """The example in docs/commands.md is a topology for the job in the command above it."""
    file = tmp_path / "overlay.json"
    file.write_text(DOC.partition("```json overlay\n")[2].partition("```")[0])
    assert read_topology(file) == PAIR
    RouterConfig(Cluster(""), "", brokers=("dublin", "virginia"), topology=read_topology(file))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no value"),
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "'number'"),
        (json.dumps({"version": 1, "op": "topology", "topology": topology_fields(PAIR)}), "unknown field"),
        (json.dumps({**topology_fields(PAIR), "number": "1"}), "not an integer"),
        (json.dumps({**topology_fields(PAIR), "links": [{"between": ["dublin"], "cost": 1}]}), "ValueError"),
    ],
    ids=["empty", "cut off", "a list", "no fields", "a control message", "a text", "half a link"],
)
def test_a_file_that_is_no_topology_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """The error names the file and what is wrong with it."""
    file = tmp_path / "overlay.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says) as refused:
        read_topology(file)
    assert str(file) in str(refused.value) and "docs/messages.md" in refused.value.hint


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """So is one that cannot be read."""
    for file in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_topology(file)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, SMALL_MOST])
def test_a_small_overlay_is_a_balanced_tree(count: int) -> None:
    """It can be a topology, has a link less than brokers, and nobody has more than three neighbours."""
    overlay = small_overlay(count, "main")
    names = [member.name for member in overlay.members]
    assert fault(overlay) is None
    assert names[0] == "main" and len(names) == count == len(overlay.links) + 1
    assert max(len(overlay.neighbours(name)) for name in names) <= 3
