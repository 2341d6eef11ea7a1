"""Rules of prefix forwarding taken out, to show that the tests which need them fail without them."""

from collections import Counter

import pytest

from branchline.routing.filters import Filter
from branchline.routing.prefix.matching import Entries
from branchline.routing.prefix.places import Owner, Places
from branchline.routing.prefix.tree import ROOT, Tree
from branchline.routing.prefix.trees import PartPrefix, Trees
from branchline.routing.prefix.updates import Version
from branchline.routing.prefix.vocabulary import Changes, Vocabulary


def place_in_newest_version_only(patch: pytest.MonkeyPatch) -> None:
    """A new filter gets no place in the earlier versions."""

    def add(self: Places, filter_: Filter, owner: Owner) -> None:
        self._owners.setdefault(filter_, Counter())[owner] += 1
        if filter_ not in self._stands:
            self._stands[filter_] = []
            self._stand(filter_, self._vocabulary.clocks()[-1])

    patch.setattr(Places, "add", add)


def close_old_places(patch: pytest.MonkeyPatch) -> None:
    """An update takes a filter's earlier places away at once."""
    original = Places.changed

    def changed(self: Places, changes: Changes) -> None:
        original(self, changes)
        self._forget(self._vocabulary.version.clock)

    patch.setattr(Places, "changed", changed)


def walk_unknown_versions(patch: pytest.MonkeyPatch) -> None:
    """A version that is not kept, or never was there, is walked in the tree as it is."""

    def knows(self: Vocabulary, version: Version) -> bool:
        return True

    def passing_over(tree: Tree, entries: Entries, clock: int) -> list[tuple[int, int]]:
        """What is not there is passed over, where it should make the part be matched afresh."""
        found, path = [(ROOT, 0)], {0: ROOT}
        for level, number in entries:
            edge = tree.find(path[level - 1], number, clock) if level - 1 in path else None
            path = {each: node for each, node in path.items() if each < level}
            if edge is not None:
                path[level] = tree.child(edge)
                found.append((path[level], level))
        return found

    def follow(self: Trees, part: int, told: PartPrefix) -> list[tuple[int, int]]:
        return passing_over(self.vocabularies[part].tree, told.entries, told.version.clock)

    patch.setattr(Vocabulary, "knows", knows)
    patch.setattr(Trees, "follow", follow)
