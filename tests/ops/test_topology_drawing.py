"""Pictures of topologies say what the topology is: they are read back and compared with it."""

import re
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from random_overlays import overlays

from branchline.kafka.errors import ConfigError
from branchline.ops.overlay import small_overlay
from branchline.ops.topology_picture import draw_picture, places
from branchline.ops.topology_text import MIDDLE_SOUGHT_MOST, draw, spanning
from branchline.routing.overlay.topology import Link, Topology, founded, link

_BROKER = re.compile(r"(?P<indent>(?:│  |   )*)(?:[├└]─(?P<cost>\d+)─ )?(?P<name>[a-z0-9-]+)(?P<notes>  .+)?")
_FURTHER = re.compile(r"  (\S+) ─(\d+)─ (\S+)")


def read_back(picture: str) -> tuple[list[tuple[int, str, str]], set[Link], set[Link]]:
    """Depth, name and notes of each broker in a picture, the links of its tree, and the further ones."""
    brokers: list[tuple[int, str, str]] = []
    tree: set[Link] = set()
    above: list[str] = []
    drawn, _, named = picture.partition("\nfurther links:\n")
    for line in drawn.splitlines():
        found = _BROKER.fullmatch(line)
        assert found is not None, line
        depth = 0 if found["cost"] is None else len(found["indent"]) // 3 + 1
        above[depth:] = [found["name"]]
        if depth:
            tree.add(link(above[depth - 1], found["name"], int(found["cost"])))
        brokers.append((depth, found["name"], (found["notes"] or "").strip()))
    further = [_FURTHER.fullmatch(line) for line in named.splitlines()]
    return brokers, tree, {link(each[1], each[3], int(each[2])) for each in further if each is not None}


def distances(topology: Topology, root: str) -> dict[str, int]:
    """What the cheapest path to each broker costs that runs through no leaving one, tried again and again."""
    leaving = {member.name for member in topology.members if member.leaving}
    found = {root: 0}
    for _ in topology.members:
        for one, other, cost in topology.links:
            for here, there in ((one, other), (other, one)):
                if here in found and here not in leaving:
                    found[there] = min(found.get(there, found[here] + cost), found[here] + cost)
    return found


@given(overlays())
def test_a_picture_shows_every_broker_once_and_every_link_once(topology: Topology) -> None:
    """What is read back from the text is the topology: brokers, notes, links and costs."""
    notes = {topology.members[0].name: "joining"}
    brokers, tree, further = read_back(draw(topology, notes))
    assert sorted(name for _, name, _ in brokers) == sorted(member.name for member in topology.members)
    assert not tree & further and tree | further == set(topology.links)
    several = len({member.cluster for member in topology.members}) > 1
    for _, name, said in brokers:
        member = topology.member(name)
        assert member is not None
        assert ("leaving" in said) == member.leaving
        assert ("joining" in said) == (name in notes)
        assert (f"on {member.cluster}" in said) == several
    assert max(map(len, draw(topology).splitlines())) < 110


@given(overlays())
def test_the_tree_has_the_shortest_paths_and_nothing_below_who_leaves(topology: Topology) -> None:
    """The way to each broker in the tree costs what the cheapest path does, and no tree is lower."""
    tree = spanning(topology)
    owed = distances(topology, tree.root)
    for name in owed:
        cost, here = 0, name
        while here != tree.root:
            here, more = tree.parents[here]
            member = topology.member(here)
            cost += more
            assert member is not None and not member.leaving
        assert cost == owed[name]
    assert len(owed) == len(topology.members)


def test_the_middle_of_a_line_is_the_root() -> None:
    """So the picture of thirty brokers in a line is half as wide as it could be."""
    names = [f"b{number:02}" for number in range(30)]
    line = founded(names, [link(*pair) for pair in pairwise(names)])
    assert spanning(line).root == "b14"
    assert max(map(len, draw(line).splitlines())) < 60


def test_very_many_brokers_are_drawn_from_the_first() -> None:
    """Looking for the middle would take long."""
    names = [f"b{number}" for number in range(MIDDLE_SOUGHT_MOST + 1)]
    line = founded(names, [link(*pair) for pair in pairwise(names)])
    assert spanning(line).root == "b0"


def test_the_documented_picture_is_drawn() -> None:
    """A small overlay looks as docs/commands.md shows it."""
    doc = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = doc.partition("```text picture\n")[2].partition("\n```")[0]
    pictured = small_overlay(5, "main").linked("main", "b3", 5).linked("b4", "b5", 2).left("b4")
    assert draw(pictured) == shown


@given(overlays())
def test_lines_of_the_tree_do_not_cross_in_a_file(topology: Topology) -> None:
    """Each broker has a place of its own, and between two columns the lines keep the order of their ends."""
    tree = spanning(topology)
    found = places(topology, tree)
    assert len(set(found.values())) == len(found) == len(topology.members)
    lines = [(found[parent], found[child]) for child, (parent, _) in tree.parents.items()]
    assert all(start[0] + 1 == end[0] for start, end in lines)
    for (start, end), (other_start, other_end) in combinations(lines, 2):
        if start[0] == other_start[0] and start[1] != other_start[1]:
            assert (start[1] < other_start[1]) == (end[1] < other_end[1])


def test_a_file_has_all_names_and_costs_and_the_same_bytes_again(tmp_path: Path) -> None:
    """SVG and PNG are drawn; anything else is refused."""
    topology = small_overlay(7, "main").linked("b4", "b7", 12).left("b6")
    for file in (tmp_path / "one.svg", tmp_path / "two.svg", tmp_path / "three.png"):
        draw_picture(topology, file, {"b3": "joining"})
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    for text in (*(member.name for member in topology.members), "12", "joining", "leaving", "topology 3"):
        assert f"<!-- {text} -->" in drawn or f"<!-- {text.split()[0]}" in drawn, text
    with pytest.raises(ConfigError, match="neither an SVG nor a PNG"):
        draw_picture(topology, tmp_path / "four.pdf")
