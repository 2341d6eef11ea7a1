"""Matching with the access index: one event or many, whatever the arrays, and nothing is kept for ever."""

from typing import Any

import pytest

from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.event import Event
from branchline.routing.methods import access
from branchline.routing.methods.access import AccessMatching
from branchline.routing.methods.naming import Methods
from branchline.routing.methods.protocols import Interest
from branchline.routing.overlay.entering import Entrance
from branchline.routing.overlay.rematching import Rematching
from branchline.routing.overlay.topology import founded, link


def interest(text: str, owner: str) -> Interest:
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled)
    return Interest(Identity(owner, "ann", "one"), compiled, owner)


def test_an_event_with_too_many_choices_for_rows_is_asked_filter_by_filter() -> None:
    """Who is interested in one of many choices is found, in doubt as with any array."""
    matching = AccessMatching()
    matching.add(interest("x = 9 AND y = 9", "a"))
    matching.add(interest("x = 9 AND y = 10", "b"))
    found = matching.match(Event({"x": list(range(10)), "y": list(range(10))}))
    assert (found.certain, found.doubtful, found.counts) == (set(), {"a"}, {"access_unindexed": 1})


def test_it_counts_the_filters_that_match() -> None:
    """Each once, however many own it."""
    matching = AccessMatching()
    for text, owner in (("x = 1", "a"), ("x < 3 AND y = 1", "a"), ("x > 3", "b"), ("TRUE", "c")):
        matching.add(interest(text, owner))
    found = matching.match(Event({"x": 1, "y": 1}))
    assert (found.certain, found.counts) == ({"a", "c"}, {"access_hits": 3})


def test_paths_that_nobody_names_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many have come and gone, what is kept is in proportion to what is there."""
    monkeypatch.setattr(access, "PATHS_KEPT", 8)
    matching = AccessMatching()
    for number in range(100):
        wanted = interest(f"x{number} = 1", "a")
        matching.add(wanted)
        assert matching.match(Event({f"x{number}": 1})).certain == {"a"}
        matching.remove(wanted)
        assert matching._interests is not None and len(matching._interests.paths) <= 50
        assert len(matching._interests._codes._renewed) <= 2


# Many at once


def played(batches_from: int | None) -> World:
    """Two linked brokers and one beyond, with subscriptions at each and many events that enter together."""
    names = ("b0", "b1", "b2")
    setting = Setting(
        founded(names, [link("b0", "b1"), link("b1", "b2")]),
        (names,),
        methods=Methods("rematch", "access", batches_from=batches_from),
        faults=Faults(0),
    )
    world = World(setting, 1)
    for number, text in enumerate(("x < 5", "x = 7 AND y > 2", "x < y", "y IS NULL", "x >= 5", "TRUE")):
        named = (f"s{number}", "one", names[number % 3])
        world.ask(Request(Operation.SUBSCRIBE, *named, filter=text, request=f"r{number}"))
    world.settle()
    for number in range(60):
        event: dict[str, Any] = {"x": number % 10} | ({"y": number % 7} if number % 4 else {})
        world.publish(names[number % 3], event if number % 9 else {"x": [3, 8], "y": [1, 2]})
    world.settle()
    assert not world.failures
    return world


def test_many_that_enter_together_are_matched_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same ends as one by one: the same reads, and the same copies with the same headers."""
    asked = []
    before = Entrance.route

    def route(entrance: Entrance, interests: Any, scan: Any, arrivals: Any, walker: Any) -> Any:
        asked.append(len(arrivals))
        assert walker is None
        return before(entrance, interests, scan, arrivals, walker)

    passed = []
    rematched = Rematching.route

    def pass_on(rematching: Rematching, sent: Any, check: Any) -> Any:
        found = rematched(rematching, sent, check)
        passed.append((len(sent), len(found.done)))
        return found

    monkeypatch.setattr(Entrance, "route", route)
    monkeypatch.setattr(Rematching, "route", pass_on)
    alone = played(None)
    assert not asked and not passed
    together = played(0)
    assert sum(asked) == 60 and max(asked) > 1
    assert sum(done for _, done in passed) > 40 and max(sent for sent, _ in passed) > 1
    assert sorted(together.copies) == sorted(alone.copies)
    assert {str(each) for each in together.history} == {str(each) for each in alone.history}
    for counted in ("content_matches", "afresh_matches", "visits", "refuted"):
        assert together.counts[counted] == alone.counts[counted], counted
