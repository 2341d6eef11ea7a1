"""What a router job may be told, and which checkpoint it may go on with."""

import json
from dataclasses import replace
from typing import Any

import pytest

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import CheckpointDiffers, ConfigError
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.streaming.checkpoint import Made, begin, go_on, load
from branchline.streaming.router import RouterConfig

PAIR = founded(["dublin", "virginia"], [link("dublin", "virginia")])
MADE = Made("branchline", "main", 2, ("dublin", "virginia"), PAIR)


def config(*brokers: str, topology: Topology | None = None, **more: Any) -> RouterConfig:
    return RouterConfig(Cluster(""), "", brokers=brokers, topology=topology, **more)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"brokers": ()}, "no broker is named"),
        ({"brokers": ("dublin", "dublin")}, "named twice"),
        ({"brokers": ("Dub.lin",)}, "broker 'Dub.lin'"),
        ({"cluster_name": "Dub.lin"}, "cluster 'Dub.lin'"),
        ({"topology": founded(["dublin", "virginia"])}, "no path"),
        ({"brokers": ("lisbon",), "topology": PAIR}, "none of the brokers"),
        ({"brokers": ("dublin",), "topology": PAIR, "cluster_name": "eu"}, "on the cluster 'main'"),
        ({"brokers": ("dublin",), "topology": PAIR, "join": True}, "are told of its topology"),
        ({"shards": 0}, "shards is 0"),
    ],
    ids=lambda given: given if isinstance(given, str) else None,
)
def test_what_a_job_cannot_be_told(settings: dict[str, Any], says: str) -> None:
    """A wrong setting is refused with what is wrong and what to do, before anything is started."""
    with pytest.raises(ConfigError, match=says) as refused:
        RouterConfig(Cluster(""), "", **settings)
    assert refused.value.hint


def test_a_job_serves_brokers_in_and_outside_of_its_topology() -> None:
    """Some of the topology's brokers may be served elsewhere, and some served may have yet to join it."""
    assert config("dublin", topology=PAIR).name == "dublin"
    assert config("virginia", "lisbon", topology=PAIR).name == "virginia"


def test_a_new_checkpoint_begins_as_the_job_is_told() -> None:
    """One broker without a topology is alone on its cluster; several wait to be told."""
    lone = begin(Made("branchline", "eu", 2, ("dublin",)))
    assert lone.topology == founded(["dublin"], cluster="eu")
    assert begin(replace(MADE, topology=None)).topology is None
    assert begin(MADE) == MADE


def test_a_broker_that_joins_waits_to_be_told() -> None:
    """It begins with no topology, and goes on like that; a checkpoint that began with one cannot join."""
    joining = Made("branchline", "main", 2, ("dublin",), join=True)
    begun = begin(joining)
    assert begun.topology is None
    for again in (joining, replace(joining, join=False)):
        assert go_on(again, load(begun.dump()), "there").topology is None
    with pytest.raises(CheckpointDiffers, match="topology of its own") as refused:
        go_on(joining, begin(replace(joining, join=False)), "there")
    assert "without --join" in refused.value.hint


@pytest.mark.parametrize("made", [MADE, replace(MADE, topology=None), begin(Made("n", "eu", 4, ("a",)))])
def test_what_a_checkpoint_was_made_for_reads_back(made: Made) -> None:
    """The file gives back what was written to it."""
    assert load(made.dump()) == made


def test_a_file_that_knows_one_broker_is_read() -> None:
    """It was made for that broker alone."""
    fields = {"namespace": "branchline", "broker": "main", "shards": 2}
    assert load(json.dumps(fields)) == begin(Made("branchline", "main", 2, ("main",)))


def test_further_brokers_go_on_with_the_topology_of_the_beginning() -> None:
    """A start may add names and leave the topology out or repeat it; the first one stays."""
    more = replace(MADE, brokers=("dublin", "virginia", "lisbon"))
    assert go_on(more, MADE, "there") == more
    assert go_on(replace(more, topology=None), MADE, "there") == more
    assert go_on(MADE, MADE, "there") == MADE


@pytest.mark.parametrize(
    ("ours", "says", "to_do"),
    [
        (replace(MADE, brokers=("dublin", "lisbon")), "broker virginia", "--broker dublin --broker virginia"),
        (replace(MADE, topology=PAIR.linked("dublin", "virginia", 3)), "another topology", "control message"),
        (replace(MADE, layout=3), "another layout", "the version of branchline that wrote it"),
        (replace(MADE, shards=4), "shards 2", "--checkpoint"),
        (replace(MADE, namespace="other"), "namespace 'branchline'", "--checkpoint"),
        (replace(MADE, cluster="eu"), "cluster 'main'", "--checkpoint"),
    ],
    ids=["a broker left out", "topology", "layout", "shards", "namespace", "cluster"],
)
def test_a_checkpoint_made_for_something_else_is_refused(ours: Made, says: str, to_do: str) -> None:
    """The job is told what differs and what to do; nothing is changed."""
    with pytest.raises(CheckpointDiffers, match=says) as refused:
        go_on(ours, MADE, "there")
    assert to_do in refused.value.hint


def test_a_topology_given_late_is_refused() -> None:
    """Brokers that began without one have been told of theirs by control messages."""
    with pytest.raises(CheckpointDiffers, match="began with no topology"):
        go_on(MADE, replace(MADE, topology=None), "there")


def test_a_checkpoint_of_another_layout_is_refused_before_anything_runs() -> None:
    """With the command that makes it anew."""
    ours = replace(MADE, layout=3)
    with pytest.raises(CheckpointDiffers, match="another layout") as refused:
        go_on(ours, replace(MADE, layout=2), "there")
    assert "branchline rebuild --from there" in refused.value.hint
    assert go_on(ours, ours, "there") == ours


def test_a_rebuilt_checkpoint_is_gone_on_with_whatever_topology_the_job_once_began_with() -> None:
    """Its seed has the newest one; what it is to read and begin with stays in the file."""
    rebuilt = replace(MADE, topology=None, starts={"branchline.control": {"0": 4}}, seed="branchline-1.state")
    assert load(rebuilt.dump()) == rebuilt
    assert go_on(MADE, rebuilt, "there") == rebuilt
