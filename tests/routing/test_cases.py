"""Every evaluator gives the verdicts of `tests/cases/filters.jsonl`, which follow from docs/filters.md alone.

A line of the file is a filter in some spelling and either an event with the verdict, or the code with which
the filter is refused. A code beside an event refuses that event, not the filter. `indexed` says whether
intervals, kinds and words contained can say all of the filter. To hold another matcher to the law, add it
to EVALUATORS; every matching that has a name is there by itself.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from every_method import EVERY_MATCHING

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity
from branchline.routing.evaluate import Attributes, evaluate
from branchline.routing.event import Event
from branchline.routing.expression import Expression
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.delivering import decide
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees
from branchline.routing.spellings import SPELLINGS, read_filter

CASES_FILE = Path(__file__).parent.parent / "cases" / "filters.jsonl"
CASES_LEAST = 400

FIELDS_NEEDED = {"spelling", "filter"}
FIELDS_OPTIONAL = {"event", "verdict", "refused", "indexed", "note"}


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the file, and its number."""

    line: int
    spelling: str
    filter: str
    event: Attributes | None = None
    verdict: bool | None = None
    refused: Code | None = None
    indexed: bool | None = None
    note: str = ""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        event = "" if self.event is None else f" on {json.dumps(self.event, ensure_ascii=False)}"
        return f"line {self.line}{note}: {self.filter}{event}"


def strictly(text: str) -> Any:
    """The JSON value, where no name comes twice and every number is one of JSON."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        assert len(found) == len(pairs), f"a name comes twice: {text}"
        return found

    def constant(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON: {text}")

    return json.loads(text, object_pairs_hook=members, parse_constant=constant)


def read_case(line: int, text: str) -> Case:
    fields = strictly(text)
    assert fields.keys() >= FIELDS_NEEDED, f"line {line} lacks a field"
    assert fields.keys() <= FIELDS_NEEDED | FIELDS_OPTIONAL, f"line {line} has an unknown field"
    refused = fields.pop("refused", None)
    return Case(line=line, refused=None if refused is None else Code(refused), **fields)


# Not splitlines: it would also split at separators that may stand in a text.
LINES = CASES_FILE.read_text(encoding="utf-8").rstrip("\n").split("\n")
CASES = [read_case(line, text) for line, text in enumerate(LINES, 1)]

Evaluator: TypeAlias = Callable[[str, str, Attributes], bool | Rejection]

# Hundreds of cases share a filter; reading is what takes time.
read_once: Callable[[str, str], Expression | Rejection] = cache(read_filter)
compile_once: Callable[[str, str], Compiled | Rejection] = cache(compile_filter)


def naive(spelling: str, text: str, event: Attributes) -> bool | Rejection:
    expression = read_once(spelling, text)
    return expression if isinstance(expression, Rejection) else evaluate(expression, event)


def compiled(spelling: str, text: str, event: Attributes) -> bool | Rejection:
    made = compile_once(spelling, text)
    return made if isinstance(made, Rejection) else made.matches(Event(event))


def subscription(text: str) -> Identity:
    """Whoever wants what the text says."""
    return Identity("home", text, "one")


@cache
def crowd(name: str, spelling: str) -> tuple[Matching, dict[Owner, Compiled]]:
    """A matching of this name with all filters of the spelling."""
    matching, filters = make_matching(Methods(matching=name), Trees()), dict[Owner, Compiled]()
    for text in dict.fromkeys(case.filter for case in of(spelling)):
        owner, made = subscription(text), compile_once(spelling, text)
        if isinstance(made, Compiled):
            matching.add(Interest(owner, made, owner))
            filters[owner] = made
    return matching, filters


def matched(name: str, spelling: str, text: str, event: Attributes) -> bool | Rejection:
    """Whether the filter's owner is found among all others, and is owed the event."""
    matching, filters = crowd(name, spelling)
    owner, looked_at = subscription(text), Event(event)
    found = matching.match(looked_at)
    owed = decide(Found(found.certain & {owner}, found.doubtful & {owner}), filters, looked_at)
    return owed.undecided.get(owner, owner in owed.owners)


EVALUATORS: dict[str, Evaluator] = {
    "naive": naive,
    "compiled": compiled,
    **{f"matching {name}": partial(matched, name) for name in EVERY_MATCHING},
}

by_spelling = pytest.mark.parametrize("spelling", sorted(SPELLINGS))
by_evaluator = pytest.mark.parametrize("evaluator", EVALUATORS)


def of(spelling: str) -> Iterable[Case]:
    return (case for case in CASES if case.spelling == spelling)


def report(failures: list[str]) -> None:
    """Fail with all that is wrong, not with the first of it."""
    if failures:
        pytest.fail(f"{len(failures)} cases differ\n" + "\n".join(failures), pytrace=False)


def place_is_within(rejection: Rejection, text: str) -> bool:
    """Whether the rejection has a place, and it is in the text or right behind a line's end."""
    if rejection.line is None or rejection.column is None:
        return False
    lines = text.split("\n")
    return 1 <= rejection.line <= len(lines) and 1 <= rejection.column <= len(lines[rejection.line - 1]) + 1


def test_the_file_is_well_formed() -> None:
    """Each line is a verdict on an event or a refusal with a known code, and its texts are Unicode."""
    for case in CASES:
        assert case.spelling in SPELLINGS, case
        assert (case.verdict is None) != (case.refused is None), f"a verdict or a refusal: {case}"
        if case.event is None:
            assert case.refused is not None and case.indexed is None, f"without an event: {case}"
        else:
            assert isinstance(case.event, dict), case
            assert case.refused in (None, Code.TOO_MANY_CHOICES), case
        for flag in (case.verdict, case.indexed):
            assert flag is None or isinstance(flag, bool), case
        json.dumps([case.filter, case.event, case.note], ensure_ascii=False).encode()


def test_the_file_is_large_and_sorted_and_says_nothing_twice() -> None:
    """Hundreds of cases, none twice; every spelling is there, in one piece and with both verdicts."""
    assert len(CASES) >= CASES_LEAST
    order = [case.spelling for case in CASES]
    assert order == sorted(order)
    assert {(case.spelling, case.verdict) for case in CASES} == {
        (spelling, verdict) for spelling in SPELLINGS for verdict in (True, False, None)
    }
    # By their text: in Python, events that differ in 1, 1.0 and true are equal.
    asked = Counter((case.spelling, case.filter, json.dumps(case.event, sort_keys=True)) for case in CASES)
    assert [key for key, times in asked.items() if times > 1] == []


def test_the_file_does_not_contradict_itself() -> None:
    """All cases of one filter agree on whether it is indexed, and none of them refuses it."""
    indexed: dict[tuple[str, str], bool] = {}
    refused = {(case.spelling, case.filter) for case in CASES if case.event is None}
    for case in CASES:
        key = case.spelling, case.filter
        assert case.event is None or key not in refused, case
        if case.indexed is not None:
            assert indexed.setdefault(key, case.indexed) is case.indexed, case


@by_evaluator
@by_spelling
def test_verdicts(evaluator: str, spelling: str) -> None:
    """The evaluator matches the events that it should, no others, and refuses those with too many choices."""
    failures = []
    for case in of(spelling):
        if case.event is None:
            continue
        verdict = EVALUATORS[evaluator](spelling, case.filter, case.event)
        expected = case.verdict if case.refused is None else case.refused
        if (verdict.code if isinstance(verdict, Rejection) else verdict) is not expected:
            failures.append(f"{case}\n  expected {expected}, not {verdict}")
    report(failures)


@by_spelling
def test_refusals_when_reading(spelling: str) -> None:
    """What cannot be read is refused with its code and a place in the text; what can never match is read."""
    failures = []
    for case in of(spelling):
        if case.event is not None:
            continue
        found = read_once(spelling, case.filter)
        if case.refused is Code.FILTER_UNSATISFIABLE:
            if isinstance(found, Rejection):
                failures.append(f"{case}\n  expected to be read, not {found}")
        elif not isinstance(found, Rejection) or found.code is not case.refused:
            failures.append(f"{case}\n  expected {case.refused}, not {found}")
        elif not place_is_within(found, case.filter):
            failures.append(f"{case}\n  no place in the text: {found}")
    report(failures)


@by_spelling
def test_refusals_when_compiling(spelling: str) -> None:
    """Compiling refuses all that reading refuses, alike, and what can never match."""
    failures = []
    for case in of(spelling):
        if case.event is not None:
            continue
        found = compile_once(spelling, case.filter)
        if not isinstance(found, Rejection) or found.code is not case.refused:
            failures.append(f"{case}\n  expected {case.refused}, not {found}")
        elif found.code is not Code.FILTER_UNSATISFIABLE and found != read_once(spelling, case.filter):
            failures.append(f"{case}\n  reading says {read_once(spelling, case.filter)}, compiling {found}")
    report(failures)


@by_spelling
def test_indexed_filters_have_an_exact_cover(spelling: str) -> None:
    """A filter that intervals can say has an exact cover and no residual; one that they cannot has one."""
    failures = []
    for case in of(spelling):
        if case.indexed is None:
            continue
        found = compile_once(spelling, case.filter)
        if isinstance(found, Rejection):
            failures.append(f"{case}\n  expected to be compiled, not {found}")
        elif found.exact is not case.indexed or (found.residual is None) is not case.indexed:
            wanted = "an exact cover" if case.indexed else "a residual"
            failures.append(f"{case}\n  expected {wanted}, not {found.cover} with {found.residual}")
    report(failures)
