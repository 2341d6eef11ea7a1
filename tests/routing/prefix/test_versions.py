"""Events on their way while the tree changes are found through versions of places, not by looking again.

Each scenario asserts that nothing was matched afresh, and passes an event without attributes, so that its
content cannot help; and each loses the event when the rule that it is about is taken out.
"""

from collections.abc import Callable

import pytest
from prefix_bugs import close_old_places, place_in_newest_version_only, walk_unknown_versions
from prefix_scripts import cover

from branchline.routing.event import Event
from branchline.routing.prefix.forwarding import Forwarder, Found
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import PartPrefix, Prefix, Trees
from branchline.routing.prefix.updates import Version
from branchline.routing.prefix.vocabulary import Fit

IN_TREE = Settings(threshold=0, limit_ms=0)
BESIDE = Settings(threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=0)
F = "x > 5"
EVENT = {"x": 6}
NOTHING = Event({})


class Stage:
    """An optimizer, the broker where events enter, and the one that they are on their way to."""

    def __init__(self, settings: Settings = IN_TREE, keep: int = 4) -> None:
        self.optimizer = Optimizer(7, settings)
        self.here, self.there = Forwarder(), Forwarder(Trees(keep=keep))
        self.optimizer.subscribe(cover("other = 1"))
        self.tell()

    def tell(self, *brokers: Forwarder) -> None:
        """The optimizer tells these brokers, or both, what is new."""
        [update] = self.optimizer.updates(0)
        for broker in brokers or (self.here, self.there):
            assert broker.trees.apply(update) is Fit.APPLIED

    def enter(self) -> Prefix:
        return self.here.enter(Event(EVENT))

    def find(self, prefix: Prefix) -> Found:
        found = self.there.find(prefix, NOTHING)
        assert found.afresh == 0, "it works through versions alone"
        return found


Scenario = Callable[[], Found]


def moved_down_while_on_its_way(settings: Settings = IN_TREE) -> Found:
    """F waits at the root, an event is stamped, and the update that gives F its place overtakes the event."""
    stage = Stage(settings)
    stage.there.subscribe(cover(F), "f")
    prefix = stage.enter()
    stage.optimizer.subscribe(cover(F))
    stage.tell(stage.there)
    return stage.find(prefix)


def retired_while_on_its_way(settings: Settings = IN_TREE) -> Found:
    """The optimizer saw unsubscribe(F) before subscribe(G = F): F's node or number ends, G's is another."""
    stage = Stage(settings)
    stage.optimizer.subscribe(cover(F))
    stage.there.subscribe(cover(F), "f")
    stage.tell()
    prefix = stage.enter()
    stage.there.subscribe(cover(F), "g")
    stage.there.unsubscribe(cover(F), "f")
    stage.optimizer.unsubscribe(cover(F))
    stage.optimizer.subscribe(cover(F))
    stage.tell(stage.there)
    return stage.find(prefix)


def retired_for_a_while(settings: Settings = IN_TREE) -> Found:
    """The same, and the optimizer told of the end before it heard of the new one."""
    stage = Stage(settings)
    stage.optimizer.subscribe(cover(F))
    stage.there.subscribe(cover(F), "g")
    stage.tell()
    prefix = stage.enter()
    stage.optimizer.unsubscribe(cover(F))
    stage.tell(stage.there)
    stage.optimizer.subscribe(cover(F))
    stage.tell(stage.there)
    return stage.find(prefix)


def newer_than_the_stamp(settings: Settings = IN_TREE) -> Found:
    """F comes to a broker that is ahead of the event, where it stands lower than in the event's version."""
    stage = Stage(settings)
    prefix = stage.enter()
    stage.optimizer.subscribe(cover(F))
    stage.tell(stage.there)
    stage.there.subscribe(cover(F), "f")
    return stage.find(prefix)


def newer_than_a_stamp_with_its_place(settings: Settings = IN_TREE) -> Found:
    """F comes when its node or number is retired already; the event names the one that there was."""
    stage = Stage(settings)
    stage.optimizer.subscribe(cover(F))
    stage.tell()
    prefix = stage.enter()
    stage.optimizer.unsubscribe(cover(F))
    stage.tell(stage.there)
    stage.there.subscribe(cover(F), "f")
    return stage.find(prefix)


def from_tree_to_number() -> Found:
    """F is told again when the tree is full: it has a node in the event's version, a number in the next."""
    stage = Stage(Settings(threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=2))
    stage.optimizer.subscribe(cover(F))
    stage.there.subscribe(cover(F), "f")
    stage.tell()
    prefix = stage.enter()
    stage.optimizer.unsubscribe(cover(F))
    stage.optimizer.subscribe(cover("y = 1"))
    stage.optimizer.subscribe(cover(F))
    stage.tell(stage.there)
    assert "#0 x > 5" in stage.there.trees.vocabularies[0].describe()
    assert prefix.parts[0].entries and not prefix.parts[0].numbers
    return stage.find(prefix)


def from_number_to_tree() -> Found:
    """The other way: F has a number in the event's version and a node in the next."""
    stage = Stage(Settings(threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=1))
    stage.optimizer.subscribe(cover(F))
    stage.there.subscribe(cover(F), "f")
    stage.tell()
    prefix = stage.enter()
    stage.optimizer.unsubscribe(cover(F))
    stage.optimizer.unsubscribe(cover("other = 1"))
    stage.optimizer.subscribe(cover(F))
    stage.tell(stage.there)
    assert "x > 5" in stage.there.trees.vocabularies[0].describe()
    assert "#" not in stage.there.trees.vocabularies[0].describe()
    assert prefix.parts[0].numbers == (0,)
    return stage.find(prefix)


def beside(scenario: Callable[[Settings], Found]) -> Scenario:
    return lambda: scenario(BESIDE)


UPDATED: dict[str, tuple[Scenario, bool]] = {
    "moved down": (moved_down_while_on_its_way, False),
    "moved to a number": (beside(moved_down_while_on_its_way), False),
    "retired": (retired_while_on_its_way, True),
    "number retired": (beside(retired_while_on_its_way), True),
    "retired for a while": (retired_for_a_while, True),
    "number retired for a while": (beside(retired_for_a_while), True),
    "from tree to number": (from_tree_to_number, True),
    "from number to tree": (from_number_to_tree, True),
}
"""Filters that an update moves, and whether they stood exactly in the event's version."""

NEWER: dict[str, tuple[Scenario, bool]] = {
    "newer than the stamp": (newer_than_the_stamp, False),
    "newer than the stamp, with a number": (beside(newer_than_the_stamp), False),
    "newer than a stamp with its node": (newer_than_a_stamp_with_its_place, True),
    "newer than a stamp with its number": (beside(newer_than_a_stamp_with_its_place), True),
}


@pytest.mark.parametrize(("scenario", "exact"), (UPDATED | NEWER).values(), ids=UPDATED | NEWER)
def test_an_event_on_its_way_is_found(scenario: Scenario, exact: bool) -> None:
    """Through the places of the version that it is stamped with, and as exactly as they were then."""
    found = scenario()
    assert len(found.certain) == exact
    assert len(found.certain | found.doubtful) == 1


@pytest.mark.parametrize("scenario", [scenario for scenario, _ in UPDATED.values()], ids=UPDATED)
def test_without_old_places_it_is_lost(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an update closed the places of earlier versions, the event would find nobody."""
    close_old_places(monkeypatch)
    found = scenario()
    assert not found.certain | found.doubtful


@pytest.mark.parametrize("scenario", [scenario for scenario, _ in NEWER.values()], ids=NEWER)
def test_without_places_in_old_versions_it_is_lost(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a new filter got a place in the newest version only, the event would find nobody."""
    place_in_newest_version_only(monkeypatch)
    found = scenario()
    assert not found.certain | found.doubtful


def forgotten(keep: int) -> Found:
    """The event's version is three updates old when the event arrives."""
    stage = Stage(keep=keep)
    stage.optimizer.subscribe(cover(F))
    stage.there.subscribe(cover(F), "f")
    stage.tell()
    prefix = stage.enter()
    for number in range(3):
        stage.optimizer.unsubscribe(cover(F))
        stage.optimizer.subscribe(cover(f"y = {number}"))
        stage.optimizer.subscribe(cover(F))
        stage.tell(stage.there)
    return stage.there.find(prefix, Event(EVENT))


@pytest.mark.parametrize(("keep", "afresh"), [(4, 0), (3, 1), (1, 1)])
def test_a_version_no_longer_kept_is_matched_afresh(keep: int, afresh: int) -> None:
    """The last four are kept; beyond, the content is looked at once more, which is counted."""
    found = forgotten(keep)
    assert (found.certain, found.afresh) == ({"f"}, afresh)


@pytest.mark.parametrize("keep", [3, 1])
def test_without_matching_afresh_it_is_lost(keep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a version that is no longer kept were walked all the same, the event would find nobody."""
    walk_unknown_versions(monkeypatch)
    found = forgotten(keep)
    assert not found.certain | found.doubtful


@pytest.mark.parametrize(
    "version", [Version(7, 3), Version(7, 99), Version(6, 2), Version(8, 2), Version(0, 0)]
)
def test_a_version_of_another_life_or_time_is_matched_afresh(version: Version) -> None:
    """Whatever the event says that it was matched with, who is owed it is found."""
    stage = Stage()
    stage.optimizer.subscribe(cover(F))
    stage.there.subscribe(cover(F), "f")
    stage.tell()
    found = stage.there.find(Prefix((PartPrefix(version, ()),)), Event(EVENT))
    assert (found.certain, found.doubtful, found.afresh) == ({"f"}, set(), 1)
    assert stage.there.find(Prefix(()), Event(EVENT)).afresh == 1, "nor need it say anything"


NAMES = "abcdefghij"


def test_a_broker_that_is_behind_matches_afresh() -> None:
    """An event from a broker that is ahead is matched once more, and only in the part where it is ahead."""
    optimizer = Optimizer(7, Settings(parts=3, threshold=0))
    here, there = Forwarder(Trees(3)), Forwarder(Trees(3))
    for name in NAMES:
        optimizer.subscribe(cover(f"{name} = 1"))
        there.subscribe(cover(f"{name} = 1"), name)
    updates = optimizer.updates(0)
    assert len(updates) == 3
    for update in updates:
        here.trees.apply(update)
    for update in updates[:2]:
        there.trees.apply(update)
    event = dict.fromkeys(NAMES, 1)
    found = there.find(here.enter(Event(event)), Event(event))
    assert found.afresh == 1
    assert found.certain | found.doubtful == set(NAMES)
