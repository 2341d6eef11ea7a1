"""Bugs planted in prefix forwarding, each of which the random scripts must find.

Each plants one small mistake that somebody could make. The same scripts are played with it and without: with
it at least one of them fails, without it none does. So the checks of `prefix_runs.py` see what they are for.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from prefix_bugs import close_old_places, place_in_newest_version_only, walk_unknown_versions
from prefix_runs import Run
from prefix_scripts import seeded

from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix import inserting, optimizer, trees, vocabulary
from branchline.routing.prefix.inserting import Stop
from branchline.routing.prefix.matching import Entries, Matched
from branchline.routing.prefix.optimizer import _Part
from branchline.routing.prefix.places import Owner, Places
from branchline.routing.prefix.tree import ROOT, Tree
from branchline.routing.prefix.trees import PartPrefix, Trees
from branchline.routing.prefix.updates import Update
from branchline.routing.prefix.vocabulary import Changes, Fit, Vocabulary

SEEDS = range(100)
Patch = pytest.MonkeyPatch


def drop_the_count(patch: Patch) -> None:
    """Who leaves for one reason leaves for all."""
    original = Places.remove

    def remove(self: Places, filter_: Filter, owner: Owner) -> None:
        if owner in self._owners.get(filter_, ()):
            self._owners[filter_][owner] = 1
            original(self, filter_, owner)

    patch.setattr(Places, "remove", remove)


def reuse_child_numbers(patch: Patch) -> None:
    """A child gets the lowest number that no living child has."""
    original = Tree.attach

    def attach(self: Tree, parent: int, node: int, clock: int, number: int | None = None) -> int:
        if number is None:
            taken = {self.number(edge) for edges in self.children(parent).values() for edge in edges}
            number = next(each for each in range(len(taken) + 1) if each not in taken)
        return original(self, parent, node, clock, number)

    patch.setattr(Tree, "attach", attach)


def forget_versions_too_early(patch: Patch) -> None:
    """The edges that died are let go of with the next update."""
    original = Tree.forget
    patch.setattr(Tree, "forget", lambda self, oldest: original(self, oldest + 1))


def lose_old_edges(patch: Patch) -> None:
    """An edge that dies is taken out of the earlier versions too."""
    original = Tree.detach

    def detach(self: Tree, node: int, clock: int) -> int:
        edge = original(self, node, clock)
        self._died[edge] = self._born[edge]
        return edge

    patch.setattr(Tree, "detach", detach)


def _meeting_ranges(patch: Patch, spoil: Callable[[int, list[Stop], int, list[Any]], None]) -> None:
    original = inserting._meet_ranges

    def meet(
        tree: Tree, siblings: Any, node: int, left: Filter, stops: list[Stop], pending: list[Any]
    ) -> None:
        stopped, waiting = len(stops), len(pending)
        original(tree, siblings, node, left, stops, pending)
        spoil(stopped, stops, waiting, pending)

    patch.setattr(inserting, "_meet_ranges", meet)


def drop_the_clipped_piece(patch: Patch) -> None:
    """Of a split, what goes on below the child is dropped."""

    def spoil(stopped: int, stops: list[Stop], waiting: int, pending: list[Any]) -> None:
        if len(stops) > stopped:
            del pending[waiting:]

    _meeting_ranges(patch, spoil)


def drop_what_is_left_beside(patch: Patch) -> None:
    """Of a split, what stays beside the child is dropped."""

    def spoil(stopped: int, stops: list[Stop], waiting: int, pending: list[Any]) -> None:
        if len(pending) > waiting:
            del stops[stopped:]

    _meeting_ranges(patch, spoil)


def take_no_child_after_a_split(patch: Patch) -> None:
    """What a split leaves beside the child is not seen to be there already."""
    original = inserting._meet_ranges

    def meet(
        tree: Tree, siblings: Any, node: int, left: Filter, stops: list[Stop], pending: list[Any]
    ) -> None:
        waiting = len(pending)
        original(tree, siblings, node, left, stops, pending)
        if len(pending) > waiting + 1 and pending[-1][1] == left[1:]:
            pending.pop()
            stops.append(Stop(node, left))

    patch.setattr(inserting, "_meet_ranges", meet)


def take_the_lowest_word(patch: Patch) -> None:
    """Of the words that are part of a word, the one with the lowest child number is gone below."""
    patch.setattr(inserting, "_oldest_covering", lambda tree, shape, edge, first: tree.number(edge))


def move_no_child(patch: Patch) -> None:
    """A new node does not adopt the children that it covers."""
    original = _Part._grow
    patch.setattr(_Part, "_grow", lambda self, stop: original(self, stop._replace(adopted=())))


def _climb_living_nodes_only(patch: Patch) -> None:
    """Above a dead node the climb would not end."""
    original = Tree.parent

    def parent(self: Tree, node: int) -> int:
        assert self.is_alive(node)
        return original(self, node)

    patch.setattr(Tree, "parent", parent)


def lose_adopted_uses(patch: Patch) -> None:
    """A node does not count the uses of the children that it adopts."""
    _climb_living_nodes_only(patch)
    original = _Part._grow

    def grow(self: _Part, stop: Stop) -> int:
        adopted = [self.tree.child(edge) for edge in stop.adopted]
        end = original(self, stop)
        for node in adopted[:1]:
            self._uses[self.tree.parent(node)] -= self._uses[node]
        return end

    patch.setattr(_Part, "_grow", grow)


def count_ends_only(patch: Patch) -> None:
    """A use is counted at the node where a piece ends, and not at shared nodes above it."""
    _climb_living_nodes_only(patch)
    original = _Part._use

    def use(self: _Part, node: int, change: int) -> None:
        if change > 0 and node != ROOT and self._uses[node]:
            self._uses[node] += change
        else:
            original(self, node, change)

    patch.setattr(_Part, "_use", use)


def reuse_overflow_numbers(patch: Patch) -> None:
    """A filter beside the tree gets the number of one that has gone."""
    original = _Part.add

    def add(self: _Part, filter_: Filter) -> None:
        taken = set(self.overflow.values())
        self._next_overflow = next(each for each in range(len(taken) + 1) if each not in taken)
        original(self, filter_)

    patch.setattr(_Part, "add", add)


def call_all_places_exact(patch: Patch) -> None:
    """A filter that stands higher than it should is marked exact."""
    original = vocabulary.descend

    def descend(*arguments: Any) -> Any:
        return [stop._replace(left=()) for stop in original(*arguments) or ()]

    patch.setattr(vocabulary, "descend", descend)


def skip_the_root(patch: Patch) -> None:
    """The walk begins below the root."""
    original = trees.follow

    def follow(tree: Tree, entries: Entries, clock: int) -> list[tuple[int, int]] | None:
        found = original(tree, entries, clock)
        return None if found is None else [each for each in found if each[0] != ROOT]

    patch.setattr(trees, "follow", follow)


def apply_updates_twice(patch: Patch) -> None:
    """What an update adds is added once more."""
    original = Vocabulary.apply

    def apply(self: Vocabulary, update: Update) -> tuple[Fit, Changes]:
        fit = original(self, update)
        if fit[0] is Fit.APPLIED:
            self._hang(update.born, update.version.clock)
        return fit

    patch.setattr(Vocabulary, "apply", apply)


def lose_the_cut_flag(patch: Patch) -> None:
    """A prefix that a height limit cut does not say so."""
    original = trees.match

    def match(tree: Tree, event: Event, height: int | None = None) -> Matched:
        return original(tree, event, height)._replace(cut=False)

    patch.setattr(trees, "match", match)


def lose_the_many_flag(patch: Patch) -> None:
    """A prefix that has more numbers than travel does not say so."""
    original = Trees.match

    def match(self: Trees, part: int, event: Event) -> PartPrefix:
        return replace(original(self, part, event), many=False)

    patch.setattr(Trees, "match", match)


def lose_the_arrays_flag(patch: Patch) -> None:
    """An event with arrays is taken for one without."""
    patch.setattr(Event, "met_array", False)


def keep_places_of_renumbered_filters(patch: Patch) -> None:
    """An update that gives a filter a number, or takes it, does not give it another place."""
    original = Places.changed
    patch.setattr(
        Places, "changed", lambda self, changes: original(self, replace(changes, filters=frozenset()))
    )


def keep_places_on_retired_nodes(patch: Patch) -> None:
    """An update that retires a node leaves the filters that stand there."""
    original = Places.changed
    patch.setattr(
        Places, "changed", lambda self, changes: original(self, replace(changes, nodes=frozenset()))
    )


def keep_places_of_the_old_tree(patch: Patch) -> None:
    """A snapshot replaces the tree, and the filters stand where they stood."""
    original = Places.changed
    patch.setattr(Places, "changed", lambda self, changes: original(self, replace(changes, everything=False)))


def keep_old_numbers_in_the_index(patch: Patch) -> None:
    """The index beside the tree is not told of filters that have gone."""
    patch.setattr(trees.Beside, "remove", lambda self, number: None)


def stop_at_the_first(patch: Patch) -> None:
    """A filter that two pieces of stand apart is placed at the first piece only."""
    original = vocabulary.descend
    patch.setattr(vocabulary, "descend", lambda *arguments: (original(*arguments) or [])[:1])


def count_no_subscriptions(patch: Patch) -> None:
    """The optimizer takes a filter out with the first who leaves."""

    def subscribe(self: optimizer.Optimizer, cover: Any) -> None:
        for filter_ in cover:
            if filter_ not in self._counts:
                self._part(filter_).add(filter_)
            self._counts[filter_] = 1

    def unsubscribe(self: optimizer.Optimizer, cover: Any) -> None:
        for filter_ in cover:
            if self._counts.pop(filter_, 0):
                self._part(filter_).remove(filter_)

    patch.setattr(optimizer.Optimizer, "subscribe", subscribe)
    patch.setattr(optimizer.Optimizer, "unsubscribe", unsubscribe)


BUGS = [
    drop_the_count,
    reuse_child_numbers,
    forget_versions_too_early,
    lose_old_edges,
    drop_the_clipped_piece,
    drop_what_is_left_beside,
    take_no_child_after_a_split,
    take_the_lowest_word,
    move_no_child,
    lose_adopted_uses,
    count_ends_only,
    reuse_overflow_numbers,
    call_all_places_exact,
    skip_the_root,
    apply_updates_twice,
    lose_the_cut_flag,
    lose_the_many_flag,
    lose_the_arrays_flag,
    keep_places_of_renumbered_filters,
    keep_places_on_retired_nodes,
    keep_places_of_the_old_tree,
    keep_old_numbers_in_the_index,
    stop_at_the_first,
    count_no_subscriptions,
    place_in_newest_version_only,
    close_old_places,
    walk_unknown_versions,
]


@pytest.fixture(autouse=True)
def few_numbers(monkeypatch: Patch) -> None:
    monkeypatch.setattr(trees, "NUMBERS_MAX", 1)


def test_without_a_bug_all_scripts_pass() -> None:
    """What finds the bugs below is no mistake of the scripts."""
    for seed in SEEDS:
        Run(seeded(seed)).play()


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_the_scripts_find_it(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """At least one of the scripts fails."""
    plant(monkeypatch)
    failures: Counter[str] = Counter()
    for seed in SEEDS:
        try:
            Run(seeded(seed)).play()
        except Exception as failure:
            failures[type(failure).__name__] += 1
            break
    assert failures, plant.__doc__
