"""Peers are asked the same as we are, and say whether targets were met."""

import json
from pathlib import Path

import pytest

from benchmarks.cases import CASES, Done, verdicts
from benchmarks.compare_match import summary
from benchmarks.rounds import take_turns
from benchmarks.verdicts import Verdict
from benchmarks.writing import CannotBeSaid, pattern, query, write_lines
from branchline.ops.matchers import Pass
from branchline.ops.matching_workloads import MATCHING, Shape, draw_filters
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.filters import Filter


def filter_of(text: str) -> Filter:
    compiled = compile_filter("sql", text)
    assert not isinstance(compiled, Rejection)
    (made,) = compiled.cover
    return made


@pytest.mark.parametrize("name", ["equalities", "equalities-range", "gaussian-1", "contains"])
def test_patterns_mean_what_filters_mean(name: str) -> None:
    """A pattern, read as the spelling that it is, has the filter as its cover."""
    for filter_ in draw_filters(MATCHING[name], 40, 1, Shape.NESTED):
        compiled = compile_filter("eventbridge", pattern(filter_).decode())
        assert not isinstance(compiled, Rejection)
        assert compiled.cover == (filter_,)


def test_every_constraint_of_queries_is_written() -> None:
    """Each kind, with its path and what it asks for."""
    text = "a.b = 'x' AND c LIKE 'pre%' AND d LIKE '%suf' AND e LIKE '%mid%' AND f BETWEEN 1 AND 2.5"
    assert json.loads(query(filter_of(text))) == [
        {"path": "a.b", "op": "equal", "text": "x"},
        {"path": "c", "op": "prefix", "text": "pre"},
        {"path": "d", "op": "suffix", "text": "suf"},
        {"path": "e", "op": "contains", "text": "mid"},
        {"path": "f", "op": "range", "low": 1, "high": 2.5},
    ]


@pytest.mark.parametrize("text", ["a < 'x'", "a LIKE 'x%y'", "a IS NULL"])
def test_what_cannot_be_said_is_refused(text: str) -> None:
    """Rather than compared with something else."""
    for write in (pattern, query):
        with pytest.raises(CannotBeSaid):
            write(filter_of(text))


def test_rounds_take_turns() -> None:
    """Everybody warms up, then each round is one turn of each, and medians are of the rounds."""
    turns: list[str] = []

    class Fake:
        def __init__(self, name: str, took_s: float) -> None:
            self.name, self.took_s = name, took_s

        def run(self, passes: int) -> Pass:
            turns.append(self.name)
            return Pass(self.took_s * passes, self.took_s * passes, 7)

    timed = take_turns({"a": Fake("a", 0.1), "b": Fake("b", 0.4)}, 100, 3, 2, 0, lambda line: None)
    assert turns == ["a", "b", *["a", "b"] * 3]
    assert timed["a"].us == pytest.approx(1_000) and timed["b"].fields()["events_per_s"] == 250


def test_every_target_has_a_verdict() -> None:
    """Whoever is far ahead meets all of them, and whoever is not is told by how much each was missed."""
    said: list[Verdict] = []
    for case in CASES:
        us = {**dict.fromkeys(case.ours, 1.0), **dict.fromkeys(case.peers, 100.0)}
        smaller = Done(case, dict.fromkeys(case.ours, 0.5)) if case.filters == 100_000 else None
        said += verdicts(Done(case, us, 20, 1, 50), smaller)
    assert all(each.met for each in said) and len(said) == 21
    slow = Done(CASES[0], {"access": 50.0, "tree": 5.0, "event-ruler": 100.0})
    missed, met = verdicts(slow, None)
    assert not missed.met and met.met
    assert missed.line().startswith("MISSED") and missed.line().endswith("by a factor of 7.50")
    assert summary([missed, met]).startswith("1 of 2 targets met\nMISSED")


def test_lines_are_written_as_they_are(tmp_path: Path) -> None:
    """One a line, also beyond ASCII."""
    write_lines(tmp_path / "lines", [b"a", "ü".encode()])
    assert (tmp_path / "lines").read_bytes().decode() == "a\nü\n"
