"""How two filters stand to each other agrees with what they match."""

import pytest
import strategies as our
from amounts import often
from filter_texts import events_for
from filter_world import WORLD, independent, normal
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_expression, compile_filter
from branchline.routing.covers import Cover, disjoin
from branchline.routing.evaluate import evaluate
from branchline.routing.expression import Anything, Expression, Or
from branchline.routing.relations import Relation, Verdict, relate
from branchline.routing.values import JsonValue

exact_covers = st.lists(normal(independent), min_size=1, max_size=3).map(disjoin)


def matched(cover: Cover) -> set[int]:
    return {place for place, event in enumerate(WORLD) if event.may_match(cover)}


@often
@given(exact_covers, exact_covers)
def test_the_verdict_is_brute_forces(one: Cover, other: Cover) -> None:
    """For exact filters the verdict is certain and what the sets of matching events say."""
    mine, theirs = matched(one), matched(other)
    if not mine & theirs:
        expected = Verdict.DISJOINT
    elif mine == theirs:
        expected = Verdict.EQUAL
    elif mine > theirs:
        expected = Verdict.COVERS
    else:
        expected = Verdict.COVERED if mine < theirs else Verdict.OVERLAPS
    made = [Compiled(Anything(), cover, None, (), frozenset()) for cover in (one, other)]
    assert relate(*made) == Relation(expected, True)


both = st.tuples(our.expressions(), our.expressions())
meetings = both.flatmap(
    lambda both: st.tuples(st.just(both), events_for(Or(both)), events_for(Or(both), arrays=False))
)


@often
@given(meetings)
def test_no_event_contradicts_the_verdict(
    meeting: tuple[tuple[Expression, Expression], dict[str, JsonValue], dict[str, JsonValue]],
) -> None:
    """Residual or not: no event matches the covered filter alone, nor, without arrays, two disjoint ones."""
    (one, other), event, single = meeting
    compiled = compile_expression(one), compile_expression(other)
    if isinstance(compiled[0], Rejection) or isinstance(compiled[1], Rejection):
        return
    verdict = relate(*compiled).verdict  # type: ignore[arg-type]
    for attributes in (event, single):
        mine, theirs = evaluate(one, attributes), evaluate(other, attributes)
        if isinstance(mine, Rejection) or isinstance(theirs, Rejection):
            continue
        # Two elements of an array may satisfy two filters that no one value satisfies.
        if verdict is Verdict.DISJOINT and attributes is single:
            assert not (mine and theirs)
        if verdict in (Verdict.COVERS, Verdict.EQUAL):
            assert mine or not theirs
        if verdict in (Verdict.COVERED, Verdict.EQUAL):
            assert theirs or not mine


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a > 5", "a > 6 AND b = 1", Relation(Verdict.COVERS, True)),
        ("a STARTS WITH 'ab'", "a STARTS WITH 'a'", Relation(Verdict.COVERED, True)),
        ("a < 5 OR a >= 5", "a IS NUMBER", Relation(Verdict.EQUAL, True)),
        ("a = 1", "a = '1'", Relation(Verdict.DISJOINT, True)),
        ("a = 1", "b = 1", Relation(Verdict.OVERLAPS, True)),
        ("a < 7 OR a > 3", "a = 5", Relation(Verdict.COVERS, True)),
        ("a < b", "a = 5 AND b > 6", Relation(Verdict.OVERLAPS, False)),
        ("a < b AND c = 1", "c > 0", Relation(Verdict.COVERED, True)),
        ("a < b AND c = 1", "c = 2", Relation(Verdict.DISJOINT, True)),
        ("a STARTS WITH 'ab'", "a ENDS WITH 'x'", Relation(Verdict.OVERLAPS, False)),
        ("a CONTAINS 'b'", "a = 'abc'", Relation(Verdict.COVERS, True)),
    ],
)
def test_what_people_expect(one: str, other: str, expected: Relation) -> None:
    """Examples that a person can check; with a residual, only what it cannot change is certain."""
    compiled = [compile_filter("sql", text) for text in (one, other)]
    assert all(isinstance(each, Compiled) for each in compiled)
    assert relate(*compiled) == expected  # type: ignore[arg-type]
