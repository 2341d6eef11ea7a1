"""A table flattened into layers, and these into slices, kept up to date while the table changes.

Theory of operation. A filter's layer is the length of the longest way down to it from a root. The table notes
which filters came, left or have others above them than before; only these, and whatever lies below a filter
whose layer changes, are looked at again. Within a layer filters are kept in slices of a given size, and what
a slice lists is the same object as before if nothing came to it or left. So a new round costs a step for each
slice, and not for each filter.

Invariants: every filter of the table is in exactly one slice, of its own layer; no slice is empty or above
its size. Slices are not joined when filters leave, but one with room is filled before another is begun.

Cost of a change: a step for each link of each filter whose layer changes.
"""

from heapq import heapify, heappop, heappush

from branchline.routing.offloading.messages import SLICE_MAX, Listed
from branchline.routing.posets.graph import Graph


class Slice:
    """Some filters of one layer."""

    __slots__ = ("_listed", "layer", "members", "number")

    def __init__(self, number: int, layer: int) -> None:
        self.number = number
        self.layer = layer
        self.members: dict[int, Listed] = {}
        self._listed: tuple[Listed, ...] | None = None

    def listed(self) -> tuple[Listed, ...]:
        if self._listed is None:
            self._listed = tuple(self.members.values())
        return self._listed

    def add(self, listed: Listed) -> None:
        self.members[listed.number] = listed
        self._listed = None

    def drop(self, number: int) -> Listed:
        self._listed = None
        return self.members.pop(number)


class Layers:
    """The layers of a table."""

    def __init__(self, graph: Graph, slice_size: int) -> None:
        assert 1 <= slice_size <= SLICE_MAX, f"a slice has at most {SLICE_MAX} filters"
        self._graph = graph
        self._size = slice_size
        self._next = 0
        self._layer: dict[int, int] = {}
        self._slice_of: dict[int, Slice] = {}
        self._slices: dict[int, Slice] = {}
        self._open: dict[int, dict[int, Slice]] = {}
        """Of each layer, the slices that have room."""
        graph.touched = set(graph)
        self.settle()

    def __len__(self) -> int:
        """How many layers there are."""
        return 1 + max((each.layer for each in self._slices.values()), default=-1)

    def layer(self, number: int) -> int:
        return self._layer[number]

    def slices(self) -> list[Slice]:
        return list(self._slices.values())

    def settle(self) -> int:
        """Take over what has changed in the table; how many filters were looked at."""
        graph, layer = self._graph, self._layer
        assert graph.touched is not None, "somebody else has asked for what is touched"
        pending = [(layer.get(number, 0), number) for number in graph.touched]
        graph.touched.clear()
        heapify(pending)
        looked = 0
        while pending:
            _, number = heappop(pending)
            looked += 1
            if not graph.has(number):
                self._forget(number)
                continue
            entry = graph.entry(number)
            found = 1 + max((layer.get(each, 0) for each in entry.above), default=-1)
            if layer.get(number) != found:
                self._move(number, found)
                for each in entry.below:
                    heappush(pending, (layer.get(each, 0), each))
        return looked

    def _move(self, number: int, layer: int) -> None:
        self._forget(number)
        self._layer[number] = layer
        room = self._open.setdefault(layer, {})
        at = next(iter(room.values()), None)
        if at is None:
            at = Slice(self._next, layer)
            self._next += 1
            self._slices[at.number] = room[at.number] = at
        at.add(Listed(number, self._graph.entry(number).filter))
        self._slice_of[number] = at
        if len(at.members) == self._size:
            del room[at.number]

    def _forget(self, number: int) -> None:
        at = self._slice_of.pop(number, None)
        if at is None:
            return
        del self._layer[number]
        at.drop(number)
        if at.members:
            self._open[at.layer][at.number] = at
        else:
            del self._slices[at.number]
            self._open[at.layer].pop(at.number, None)


def cut(graph: Graph, size: int) -> list[list[int]]:
    """The slices of a table as it is, whatever it was before: a step for each filter and each link."""
    above = {number: len(graph.entry(number).above) for number in graph}
    layer = sorted(graph.roots)
    slices: list[list[int]] = []
    while layer:
        slices += [layer[at : at + size] for at in range(0, len(layer), size)]
        after = []
        for number in layer:
            for each in graph.entry(number).below:
                above[each] -= 1
                if not above[each]:
                    after.append(each)
        layer = sorted(after)
    return slices
