"""What the commands on the topology wait for, read and refuse: all but the cluster."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from random_overlays import overlays

from branchline.kafka.errors import ConfigError
from branchline.kafka.topologies import topology_fields
from branchline.ops.changing import awaited, unserved
from branchline.ops.cli import main
from branchline.ops.overlay import read_topology
from branchline.ops.sites import Look, Served, behind, served
from branchline.ops.status import SILENT_AFTER_S
from branchline.ops.topology import as_fields, notes, waiting
from branchline.routing.overlay.letters import Complete, Letter
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.shard import EventBatch, Job, Shard
from branchline.streaming.standing import standing

PAIR = founded(["a", "b"], [link("a", "b")])
HAS = Served("a", "main", "running", 1)

# Files


def as_toml(topology: Topology) -> str:
    brokers = [
        f'"{member.name}"'
        if member.cluster == "main"
        else f'{{name="{member.name}", cluster="{member.cluster}"}}'
        for member in topology.members
    ]
    links = [
        f'["{other}", "{one}"]' if cost == 1 else f'["{one}", "{other}", {cost}]'
        for one, other, cost in topology.links
    ]
    return f"links = [{', '.join(links)}]\nbrokers = [{', '.join(brokers)}]\n"


@given(topology=overlays(first=True))
def test_both_forms_of_a_file_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, topology: Topology
) -> None:
    """A topology to begin with can be written for people, and reads as its JSON form does."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "overlay.toml").write_text(as_toml(topology))
    (folder / "overlay.json").write_text(json.dumps(topology_fields(topology)))
    assert read_topology(folder / "overlay.toml") == read_topology(folder / "overlay.json") == topology


def test_the_documented_file_is_one(tmp_path: Path) -> None:
    """The example in docs/commands.md is the topology that the JSON beside it is."""
    doc = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    for form in ("toml", "json"):
        file = tmp_path / f"overlay.{form}"
        file.write_text(doc.partition(f"```{form} overlay\n")[2].partition("```")[0])
        assert read_topology(file) == founded(["dublin", "virginia"], [link("dublin", "virginia")])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'brokers'"),
        ("brokers", "not TOML"),
        ('brokers = "a"', "not a list"),
        ("brokers = [1]", "not an object"),
        ('brokers = ["A b"]', "not a name"),
        ('brokers = [{name = "a", number = 1}]', "unknown field 'number'"),
        ('brokers = ["a"]\nnumber = 2', "unknown field 'number'"),
        ('brokers = ["a", "b"]\nlinks = [["a"]]', "ValueError"),
        ('brokers = ["a", "b"]\nlinks = [["a", "b", 1, 2]]', "two brokers and perhaps a cost"),
        ('brokers = ["a", "b"]\nlinks = [["a", "b", 0]]', "not from 1"),
        ('brokers = ["a", "b"]\nlinks = [["a", "b", "1"]]', "not an integer"),
    ],
)
def test_a_toml_file_that_is_no_topology_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """The error names the file and what is wrong, and the hint shows how it is written."""
    file = tmp_path / "overlay.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says) as refused:
        read_topology(file)
    assert str(file) in str(refused.value) and "links = " in refused.value.hint


def check(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["topology", "check", *arguments], catch_exceptions=False)
    return result.exit_code, result.output


def test_a_file_is_checked_and_drawn_before_a_job_uses_it(tmp_path: Path) -> None:
    """It is drawn, or printed in JSON; one that cannot stand is refused with the reason."""
    file = tmp_path / "overlay.toml"
    file.write_text('brokers = ["a", "b", {name = "c", cluster = "eu"}]\nlinks = [["a", "b"], ["b", "c", 3]]')
    code, told = check(str(file), "--picture", str(tmp_path / "overlay.svg"))
    assert code == 0 and "├─1─ a  on main, number 0" in told and "└─3─ c  on eu, number 2" in told
    assert (tmp_path / "overlay.svg").exists()
    code, told = check(str(file), "--json")
    assert json.loads(told) == topology_fields(read_topology(file))
    file.write_text('brokers = ["a", "b"]')
    code, told = check(str(file))
    assert code == 2 and "no path" in told
    assert check(str(tmp_path / "nowhere.toml"))[0] == 2


# What is waited for


@st.composite
def looks(draw: st.DrawFn) -> Look:
    """Any overlay, and any mixture of what jobs may have said of its brokers."""
    topology = draw(overlays(8))
    said: dict[str, Served] = {}
    for member in topology.members:
        if draw(st.integers(0, 4)):
            said[member.name] = Served(
                member.name,
                member.cluster,
                draw(st.sampled_from(("running", "failed", "stopped", "silent"))),
                draw(st.sampled_from((None, 0, topology.number - 1, topology.number, topology.number + 1))),
                draw(st.booleans()),
            )
    return Look(topology, said, frozenset(draw(st.sets(st.sampled_from(("main", "eu", "us"))))))


@given(looks())
def test_what_is_waited_for_is_every_broker_without_the_topology(look: Look) -> None:
    """One reason for each broker that has not said that it has it and is no longer joining, and no other."""
    lacking = [
        member.name
        for member in look.topology.members
        if member.name not in look.served
        or (look.served[member.name].topology or 0) < look.topology.number
        or look.served[member.name].joining
    ]
    reasons = awaited(look)
    assert len(reasons) == len(lacking)
    for name, reason in zip(lacking, reasons, strict=True):
        assert reason.startswith((f"{name}:", f"{name} is joining"))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "b: no job on the cluster main serves it"),
        ({"b": replace(HAS, topology=None)}, "b: its job a has handled nothing since it started"),
        ({"b": replace(HAS, topology=0)}, "b: it has no topology"),
        ({"b": replace(HAS, topology=1)}, "b: it has topology 1"),
        ({"b": replace(HAS, state="silent")}, "b: its job a is silent"),
        (
            {"b": replace(HAS, topology=2, joining=True)},
            "b is joining: no neighbour has told it everything yet",
        ),
    ],
)
def test_the_reason_says_what_is_missing(said: dict[str, Served], reason: str) -> None:
    """In words that tell an operator where to look."""
    look = Look(PAIR.linked("a", "b", 2), {"a": replace(HAS, topology=2), **said})
    assert awaited(look) == [reason]


def test_a_newcomer_is_linked_only_when_its_job_waits_for_it() -> None:
    """A job that is not there is waited for; one that began alone, or elsewhere, never will do."""
    waits = Served("c", "main", "running", 0, waiting=True)

    def why(said: Served | None) -> str | None:
        return unserved(Look(PAIR, {} if said is None else {"c": said}), "c", "main")

    assert why(waits) is None
    assert "--broker c --join" in str(why(None))
    assert "is stopped" in str(why(replace(waits, state="stopped")))
    assert "has handled nothing" in str(why(replace(waits, topology=None)))
    assert "no job serves c" in str(why(replace(waits, cluster="eu", state="stopped")))
    with pytest.raises(ConfigError, match="topology of its own"):
        why(replace(waits, topology=1, waiting=False))
    with pytest.raises(ConfigError, match="on the cluster 'eu'"):
        why(replace(waits, cluster="eu"))


# What jobs say


def stats(at_s: float, *brokers: str, state: str = "running", **more: Any) -> tuple[str, Mapping[str, Any]]:
    said = {"broker": brokers[0], "brokers": list(brokers), "state": state, "at_ms": at_s * 1000, **more}
    return "main", said


def test_a_broker_is_served_by_the_job_that_runs() -> None:
    """Of two jobs that name it, the one that runs counts, else the last; one that is quiet is silent."""
    now = 1_000.0
    said = served(
        [
            stats(now - 1, "old", "b", state="stopped", topologies={"b": 1}),
            stats(now - 2, "a", "b", topologies={"a": 3, "b": 2}, joining=["b"], positions={"t": {"0": 5}}),
            stats(now - SILENT_AFTER_S - 1, "c", "d", topologies={}, waiting=["d"]),
            stats(now - SILENT_AFTER_S - 1, "e", state="stopped"),
        ],
        now,
    )
    assert (said["b"].job, said["b"].topology, said["b"].joining) == ("a", 2, True)
    assert said["b"].positions == {"t": {0: 5}}
    assert (said["a"].topology, said["a"].joining) == (3, False)
    assert (said["c"].state, said["d"].waiting, said["d"].topology) == ("silent", True, 0)
    assert (said["e"].state, said["e"].topology) == ("stopped", None)


_OFFSETS = st.dictionaries(st.sampled_from(("t", "u")), st.dictionaries(st.integers(0, 2), st.integers(0, 5)))


@given(_OFFSETS, _OFFSETS)
def test_a_topic_is_read_when_each_partition_is(positions: Any, ends: Any) -> None:
    """What is not read is counted record by record."""
    unread = {
        topic: sum(
            offset >= positions.get(topic, {}).get(partition, 0)
            for partition, end in partitions.items()
            for offset in range(end)
        )
        for topic, partitions in ends.items()
    }
    assert behind(positions, ends) == {topic: count for topic, count in unread.items() if count}


def test_a_shard_says_how_its_brokers_stand() -> None:
    """A broker waits, then joins, then is in; one that is retired neither waits nor joins."""
    shard = Shard(Job(("c",)), 0)

    def positions() -> dict[str, Any]:
        return {name: standing(shard, 4)[name] for name in ("topologies", "joining", "waiting")}

    assert positions() == {"topologies": {}, "joining": [], "waiting": ["c"]}
    joined = PAIR.joined("c", {"a": 1})
    shard.handle(1, [], [Letter("c", "a", PAIR)], EventBatch())
    assert positions() == {"topologies": {"c": 1}, "joining": [], "waiting": ["c"]}
    shard.handle(2, [], [Letter("c", "a", joined)], EventBatch())
    assert positions() == {"topologies": {"c": 2}, "joining": ["c"], "waiting": []}
    shard.handle(3, [], [Letter("c", "a", Complete())], EventBatch())
    assert positions() == {"topologies": {"c": 2}, "joining": [], "waiting": []}
    shard.handle(4, [], [Letter("c", "a", joined.left("c").without("c"))], EventBatch())
    assert positions() == {"topologies": {"c": 4}, "joining": [], "waiting": []}


def test_what_is_shown_tells_states_jobs_and_who_waits() -> None:
    """Each broker's state, job and topology; names that wait; clusters that cannot be seen."""
    topology = PAIR.joined("c", {"b": 4}, "eu").left("a").without("a").left("b")
    look = Look(
        topology,
        {
            "a": Served("a", "main", "running", 5),
            "b": Served("a", "main", "running", 5),
            "c": Served("c", "eu", "running", 2, joining=True),
            "d": Served("d", "main", "running", 0, waiting=True),
        },
        frozenset({"eu"}),
    )
    shown = as_fields(look)
    assert [(each["name"], each["state"], each["job"], each["topology"]) for each in shown["brokers"]] == [
        ("b", "leaving", "a", 5),
        ("c", "joining", "c", 2),
    ]
    assert (shown["number"], shown["unseen"], waiting(look)) == (5, ["eu"], ["d"])
    assert shown["retired"] == [{"name": "a", "number": 0}]
    assert notes(look) == {"c": "joining, has topology 2"}
