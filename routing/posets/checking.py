"""What must always be true of a poset or a forest, found out by comparing every filter with every other.

Quadratic, or worse: for tests, and for simulations that check their small cases.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from branchline.routing.filters import Filter, covers
from branchline.routing.posets.forest import INDEXED, Forest, Variant
from branchline.routing.posets.graph import Graph, Source
from branchline.routing.posets.poset import Poset


def minimal_cover(filters: Iterable[Filter]) -> set[Filter]:
    """The filters that no other one covers."""
    distinct = set(filters)
    return {one for one in distinct if not any(covers(other, one) for other in distinct if other != one)}


def immediate_pairs(filters: Iterable[Filter]) -> set[tuple[Filter, Filter]]:
    """All pairs of which the first covers the second and no third lies between."""
    distinct = set(filters)
    below = {one: {other for other in distinct if other != one and covers(one, other)} for one in distinct}
    return {
        (one, other)
        for one, others in below.items()
        for other in others
        if not any(other in below[between] for between in others)
    }


def poset_faults(poset: Poset) -> list[str]:
    """What is wrong with a poset; nothing, if it is one."""
    filters = [poset.entry(number).filter for number in poset]
    links = {(poset.entry(one).filter, poset.entry(other).filter) for one, other in _links(poset)}
    wanted = immediate_pairs(filters)
    found = [f"{one} does not cover {other} immediately" for one, other in links - wanted]
    found += [f"no link from {one} to {other}" for one, other in wanted - links]
    return [*found, *_common_faults(poset), *_redundant(poset)]


def forest_faults(forest: Forest) -> list[str]:
    """What is wrong with a forest: a node above two, siblings that cover each other, a wrong index."""
    found = _common_faults(forest)
    for number in forest:
        entry = forest.entry(number)
        if len(entry.above) > 1:
            found.append(f"{entry.filter} hangs below {len(entry.above)}")
        found += _impure(forest, entry.below)
        if forest.variant in INDEXED:
            counted = Counter(
                source for each in forest.all_below([number]) for source in forest.entry(each).sources
            )
            if counted != forest.index(number):
                found.append(f"the index of {entry.filter} is {forest.index(number)}, not {counted}")
    found += _impure(forest, forest.roots)
    return [*found, *_redundant(forest)] if forest.variant is Variant.NON_REDUNDANT else found


def link_faults(graph: Graph) -> list[str]:
    """What could lose an event: a link to a filter that is not covered, or a filter that no root covers."""
    found = []
    for one, other in _links(graph):
        if not covers(graph.entry(one).filter, graph.entry(other).filter):
            found.append(f"{graph.entry(one).filter} stands above {graph.entry(other).filter}")
    reached = graph.all_below(graph.roots)
    found += [f"no root is above {graph.entry(number).filter}" for number in graph if number not in reached]
    return found


def _common_faults(graph: Graph) -> list[str]:
    found = link_faults(graph)
    for number in graph:
        entry = graph.entry(number)
        if not entry.sources:
            found.append(f"nobody asks for {entry.filter}")
        if graph.number(entry.filter) != number:
            found.append(f"{entry.filter} is not found by its hash")
        if any(number not in graph.entry(each).below for each in entry.above):
            found.append(f"{entry.filter} is not below what is above it")
        if any(number not in graph.entry(each).above for each in entry.below):
            found.append(f"{entry.filter} is not above what is below it")
    cover = minimal_cover(graph.entry(number).filter for number in graph)
    if graph.root_filters() != cover:
        found.append(f"the roots are {graph.root_filters()}, the minimal cover is {cover}")
    return found


def _links(graph: Graph) -> Iterator[tuple[int, int]]:
    return ((number, each) for number in graph for each in graph.entry(number).below)


def _impure(forest: Forest, siblings: set[int]) -> list[str]:
    filters = [forest.entry(each).filter for each in siblings]
    return [
        f"{one} covers its sibling {other}"
        for one in filters
        for other in filters
        if one != other and covers(one, other)
    ]


def _redundant(graph: Graph) -> list[str]:
    of_source: dict[Source, list[Filter]] = {}
    for number in graph:
        for source in graph.entry(number).sources:
            of_source.setdefault(source, []).append(graph.entry(number).filter)
    return [
        f"{source} asks for {one} and for {other}, which it covers"
        for source, filters in of_source.items()
        for one in filters
        for other in filters
        if one != other and covers(one, other)
    ]
