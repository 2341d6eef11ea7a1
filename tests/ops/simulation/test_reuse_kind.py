"""What the kind `reuse` measures, in a small network: deliveries, matches and keys are recounted by hand."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from branchline.kafka.errors import ConfigError
from branchline.ops.simulation import reuse
from branchline.ops.simulation.kind import Case
from branchline.ops.simulation.reuse import Spec
from branchline.ops.simulation.reuse_charging import BY_LINK, _Prices
from branchline.ops.simulation.reuse_indexes import MAKERS
from branchline.ops.simulation.reuse_model import UNDIVIDED
from branchline.ops.simulation.reuse_world import Box, World, drawn_boxes
from branchline.ops.simulation.shapes import Shape
from branchline.ops.simulation.simulation import read_simulation
from branchline.ops.simulation.tables import check_rows
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.event import Event
from branchline.routing.methods.kd_tree import KdTree
from branchline.routing.methods.kd_walk import Walked
from branchline.routing.methods.reuse import Reuse
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.keys import Keys
from branchline.routing.prefix.trees import Prefix

FORWARDINGS = ("rematch", "always-reuse", UNDIVIDED, "partial-reuse(1)", "partial-reuse(30)")
SPEC = Spec(Shape("balanced-tree", 10), 200, (12,), 3, (5.0,), ("table",), FORWARDINGS)
CASE = Case(1, {"density": 5.0})
CONFIG = """
kind = "reuse"
title = "t"
statement = "s"
seeds = 1
subscriptions = 10
events = [1]
attributes = 1
densities = [1]
matchings = ["table"]
forwardings = ["FORWARDING"]
overlay = { shape = "line", brokers = 2 }
"""


CHARGED = tuple(f"{name}{how}" for name in MAKERS for how in ("", BY_LINK))


def rows(*matchings: str) -> dict[str, dict[str, dict[str, float]]]:
    """By matching and forwarding."""
    result = reuse.run(replace(SPEC, matchings=matchings), CASE, lambda _: None)
    check_rows(reuse.COLUMNS, result.rows)
    assert result.failures == []
    made: dict[str, dict[str, dict[str, float]]] = {each: {} for each in matchings}
    for row in result.rows:
        made[str(row["matching"])][str(row["forwarding"])] = row  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("matching", ["table", "counting", CHARGED[0]])
def test_every_forwarding_delivers_what_the_ranges_say(matching: str) -> None:
    """With as many matches and keys as it must have."""
    found = rows(matching)[matching]
    never, always, whole, one, many = (found[name] for name in FORWARDINGS)
    assert never["matches_mean"] == never["visits_mean"] > 5
    assert always["matches_mean"] == whole["matches_mean"] == 1
    assert never["keys_mean"] == 0 and one["keys_max"] == 1
    assert 1 < one["matches_mean"] < one["visits_mean"]
    assert many["keys_max"] <= 30
    assert always["complete_share"] == whole["complete_share"] == 1 > one["complete_share"]
    assert whole["key_bytes_mean"] > always["key_bytes_mean"] > one["key_bytes_mean"] > 0
    assert {row["visits_mean"] for row in found.values()} == {never["visits_mean"]}
    assert min(row["slower_percent"] for row in found.values()) == 0
    assert never["saved_percent"] == 0


def test_what_is_not_measured_is_the_same_every_time() -> None:
    """Only times differ from run to run, and from one matching to another."""
    timed = ("matching", "_ms", "ms_mean", "_percent")
    first, *others = (
        [{name: value for name, value in row.items() if not name.endswith(timed)} for row in found.values()]
        for found in (*rows("table").values(), *rows("table", *CHARGED).values())
    )
    assert all(each == first for each in others)


def test_a_match_that_was_made_before_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """If each match is said to take a second, the network takes as many as there are matches."""
    second = 10**9
    for name in ("every", "any", "hops"):
        monkeypatch.setattr(_Prices, name, lambda *_: second)
    found = rows(*CHARGED)
    world = World(SPEC.shape, SPEC.subscriptions, SPEC.attributes, 5.0, SPEC.events[0], 1)
    for matching in CHARGED:
        expected = {"rematch": 0, "always-reuse": 0}
        for (name, before), events in world.visits().items():
            others = len(world.topology.neighbours(name)) - (before is not None)
            matches = len(events) * (1 + (others if matching.endswith(BY_LINK) else min(others, 1)))
            expected["rematch"] += matches
            expected["always-reuse"] += matches if before is None else 0
        for name, matches in expected.items():
            seconds = found[matching][name]["ms_mean"] / 1e3
            assert seconds == pytest.approx(matches / SPEC.events[0], abs=0.2)


def test_an_index_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an index finds is compared with what the ranges say, before anything is charged for it."""
    monkeypatch.setattr(KdTree, "walk", lambda *_: Walked([], 0, 0))
    with pytest.raises(AssertionError):
        rows("k-d trees")


def test_a_list_that_lies_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every list says that it is complete, events are missed, and the case fails."""
    onward = Reuse.onward

    def lying(self: Reuse, prefix: Prefix, found: Found, to: str) -> Prefix:
        keys = onward(self, prefix, found, to).keys
        assert keys is not None
        digest = self.table.digest((*keys.certain, *keys.doubtful))
        return Prefix((), keys=Keys(keys.certain, keys.doubtful, digest))

    monkeypatch.setattr(Reuse, "onward", lying)
    result = reuse.run(replace(SPEC, forwardings=("partial-reuse(1)",)), CASE, lambda _: None)
    (failure,) = result.failures
    assert failure.startswith("partial-reuse(1) did not deliver what ")


def test_a_filter_is_its_box() -> None:
    """The text that is subscribed to asks for what the box has."""
    random = Random(1)
    boxes = drawn_boxes(200, 3, 5.0, random)
    hits = 0
    for box in boxes:
        compiled = compile_filter("sql", box.text())
        assert isinstance(compiled, Compiled)
        for _ in range(20):
            event = {f"a{place}": random.random() for place in range(3)}
            assert compiled.matches(Event(dict(event))) is box.has(event)
            hits += box.has(event)
    assert 100 < hits < 300, "a twentieth of 4,000"
    assert Box((0.25,), 0.5).text() == "a0 BETWEEN 0.25 AND 0.75"


def test_only_what_can_be_measured_is_accepted(tmp_path: Path) -> None:
    """Lookup reuse and matching everywhere, with a matching that there is."""
    file = tmp_path / "tried.toml"
    for name in ("rematch", "partial-reuse(7)", UNDIVIDED):
        file.write_text(CONFIG.replace("FORWARDING", name))
        assert len(read_simulation(file).cases()) == 1
    for name, why in (("prefix", "not measured here"), ("always-reuse(2)", "takes no number")):
        file.write_text(CONFIG.replace("FORWARDING", name))
        with pytest.raises(ConfigError, match=why):
            read_simulation(file)
