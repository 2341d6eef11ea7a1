"""Shapes of overlays: which brokers there are, and which of them are linked.

[overlay]
shape = "random-tree"       # line, star, balanced-tree, random-tree, random-graph or file
brokers = 27
arity = 3                   # balanced-tree: children of each broker
more_links = 5              # random-graph: links beyond those of a random tree
links = [["b0", "b1", 1]]   # file: names and a cost for each link, in place of `brokers`
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from branchline.ops.simulation.config import Section
from branchline.routing.overlay.topology import Link, Topology, fault, founded, link

BROKERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape, and how large it is."""

    shape: str
    brokers: int
    arity: int = 2
    more_links: int = 0
    links: tuple[Link, ...] = ()

    def topology(self, random: Random) -> Topology:
        """An overlay of this shape; of those that chance makes, the one of this random source."""
        if self.links:
            names = sorted({name for each in self.links for name in each[:2]})
            return founded(names, self.links)
        names = [f"b{number}" for number in range(self.brokers)]
        return founded(names, _SHAPES[self.shape](self, names, random))


def _line(shape: Shape, names: list[str], random: Random) -> list[Link]:
    return [link(names[place - 1], names[place]) for place in range(1, len(names))]


def _star(shape: Shape, names: list[str], random: Random) -> list[Link]:
    return [link(names[0], name) for name in names[1:]]


def _balanced_tree(shape: Shape, names: list[str], random: Random) -> list[Link]:
    return [link(names[(place - 1) // shape.arity], names[place]) for place in range(1, len(names))]


def _random_tree(shape: Shape, names: list[str], random: Random) -> list[Link]:
    return [link(names[random.randrange(place)], names[place]) for place in range(1, len(names))]


def _random_graph(shape: Shape, names: list[str], random: Random) -> list[Link]:
    made = {each[:2]: each for each in _random_tree(shape, names, random)}
    most = len(names) * (len(names) - 1) // 2
    while len(made) < min(most, len(names) - 1 + shape.more_links):
        one, other = random.sample(names, 2)
        each = link(one, other)
        made.setdefault(each[:2], each)
    return list(made.values())


_SHAPES: Mapping[str, Callable[[Shape, list[str], Random], list[Link]]] = {
    "line": _line,
    "star": _star,
    "balanced-tree": _balanced_tree,
    "random-tree": _random_tree,
    "random-graph": _random_graph,
}


def read_shape(section: Section) -> Shape:
    """The shape that a table describes."""
    shape = section.choice("shape", [*_SHAPES, "file"])
    if shape == "file":
        made = Shape(shape, 0, links=_read_links(section))
        wrong = fault(made.topology(Random(0)))
        if wrong is not None:
            section.wrong("links", f"not an overlay: {wrong}", "every broker must be reached")
    else:
        made = Shape(
            shape,
            section.integer("brokers", 1, BROKERS_MAX),
            section.integer("arity", 1, BROKERS_MAX, 2),
            section.integer("more_links", 0, BROKERS_MAX, 0),
        )
    section.done()
    return made


def _read_links(section: Section) -> tuple[Link, ...]:
    given = section.value("links")
    what = 'a list of links, each with two names and a cost: [["dublin", "virginia", 1]]'
    if not isinstance(given, list) or not given:
        section.wrong("links", "missing" if given is None else f"not {given!r}", f"it must be {what}")
    found: dict[tuple[str, ...], Link] = {}
    for each in given:
        match each:
            case [str(one), str(other), int(cost)] if one != other and cost >= 1 and type(cost) is not bool:
                found[tuple(sorted((one, other)))] = link(one, other, cost)
            case _:
                section.wrong("links", f"not {each!r}", f"it must be {what}")
    return tuple(found.values())
