"""Topologies for the router commands: from a file, and for trying out."""

import json
from pathlib import Path
from typing import Any

import pytest
from machines import START_DEADLINE_S, STOP_DEADLINE_S, Machine, linked_home
from waiting import wait_until

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError
from branchline.kafka.topologies import topology_fields
from branchline.ops.overlay import SMALL_MOST, read_topology, small_overlay
from branchline.ops.running import running_bootstrap
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


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_up_serves_a_small_overlay(up: Machine, tmp_path: Path) -> None:
    """With `--brokers 3` an event that enters at one broker reaches a subscriber at home with another."""
    where = ("--bootstrap", str(running_bootstrap(up.home)), "--namespace", "small")
    small = Machine(linked_home(tmp_path / "home"))
    with (tmp_path / "output").open("wb") as output:
        process = small.popen("up", *where, "--brokers", "3", stdout=output, stderr=output)

    def router() -> dict[str, Any]:
        jobs: list[dict[str, Any]] = small.ask("status", *where)[0]["jobs"]
        return next(each for each in jobs if each["job"] == "router")

    try:
        said = (tmp_path / "output").read_text
        wait_until(
            lambda: "router: running (" in said() or process.poll() is not None, START_DEADLINE_S, "it runs"
        )
        assert "brokers main, b2, b3" in said(), said()
        assert small.ask("subscribe", "ann", "n > 0", *where, exit_code=5)[0]["code"] == "home-missing"
        small.ask("subscribe", "ann", "n > 0", "--home", "b3", *where)
        small.ask("publish", '{"n": 1}', "--broker", "b2", *where)
        small.ask("publish", '{"n": 2}', *where)
        got = small.ask("consume", "ann", "--from-beginning", "--count", "2", "--timeout", "60", *where)
        assert {json.loads(event["value"])["n"] for event in got} == {1, 2}
        wait_until(lambda: (router()["counts"] or {}).get("accepted", 0) == 2, 30, "it is told")
        job = router()
        assert job["brokers"] == ["main", "b2", "b3"]
        told = small.run("status", *where).stdout
        assert "router of brokers main, b2, b3: running" in told and "topology 1" in told
        assert job["topologies"] == dict.fromkeys(job["brokers"], 1) and job["joining"] == []
        assert job["pending"] == {"count": 0, "first": []} and len(job["tree"]) == 1
        assert job["topology"] == 1 and job["rates"]["60s"]["accepted"] > 0
    finally:
        process.terminate()
        process.wait(STOP_DEADLINE_S)
