"""What a filter compiles to agrees with the naive evaluator on every event, in every spelling."""

from typing import Any

import pytest
import strategies as our
from amounts import often
from filter_texts import TEXTS, expression_of, expressions, pairs
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing import filters
from branchline.routing.choices import each_choice
from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_expression, compile_filter
from branchline.routing.covers import disjoin
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import And, Expression, Has, In, IsTrue, Not, Or, constraints
from branchline.routing.values import JsonValue

by_spelling = pytest.mark.parametrize("spelling", sorted(TEXTS))


@often
@by_spelling
@given(data=st.data())
def test_compiled_agrees_with_the_naive_evaluator(spelling: str, data: st.DataObject) -> None:
    """Cover and residual match what the filter matches, arrays or not; a refused filter matches nothing."""
    text, attributes = data.draw(pairs(spelling))
    verdict = evaluate(expression_of(spelling, text), attributes)
    compiled = compile_filter(spelling, text)
    if isinstance(compiled, Rejection):
        assert compiled.code is Code.FILTER_UNSATISFIABLE
        assert verdict is not True
    else:
        assert compiled.matches(Event(attributes)) == verdict
        assert verdict is not True or Event(attributes).may_match(compiled.cover), "the cover misses it"


@often
@given(our.expressions(), our.events())
def test_the_cover_never_misses(expression: Expression, attributes: dict[str, JsonValue]) -> None:
    """Whatever event the expression matches, however deep its arrays, the cover holds for it."""
    compiled = compile_expression(expression)
    if evaluate(expression, attributes) is True:
        assert isinstance(compiled, Compiled)
        assert Event(attributes).may_match(compiled.cover)


@often
@by_spelling
@given(data=st.data())
def test_the_cover_holds_for_one_choice_of_what_matches(spelling: str, data: st.DataObject) -> None:
    """An index that matches each choice of an event with arrays by itself misses nothing either."""
    text, attributes = data.draw(pairs(spelling))
    compiled = compile_filter(spelling, text)
    if isinstance(compiled, Compiled) and compiled.matches(Event(attributes)) is True:
        assert holds_for_one_choice(compiled, attributes)


@pytest.mark.parametrize(
    "text",
    [
        "items.sku HAS 'a' AND items.qty HAS 7",
        "items.sku = 'a' AND items.qty HAS 7",
        "items HAS 1 AND items.qty = 7",
        "(items.sku HAS 'a' OR items.sku HAS 'c') AND items.qty = 7",
    ],
)
def test_what_different_objects_of_an_array_have_is_not_asked_of_one(text: str) -> None:
    """HAS chooses nothing: what it asks for may be in another object than what else is asked for."""
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled)
    attributes: dict[str, JsonValue] = {"items": [{"sku": "a", "qty": 2}, {"sku": "b", "qty": 7}, 1]}
    assert compiled.matches(Event(attributes)) is True
    assert holds_for_one_choice(compiled, attributes)


def holds_for_one_choice(compiled: Compiled, attributes: dict[str, JsonValue]) -> bool:
    paths = {constraint.path for filter_ in compiled.cover for constraint in filter_}
    choices: Any = each_choice(paths, attributes)
    return any(Event(choice).may_match(compiled.cover) for choice in choices)


@often
@by_spelling
@given(data=st.data())
def test_without_arrays_the_cover_decides_and_the_residual_only_narrows(
    spelling: str, data: st.DataObject
) -> None:
    """On a single-valued event, an exact cover is all that is asked; else the residual, where it holds."""
    text, attributes = data.draw(pairs(spelling, arrays=False))
    compiled = compile_filter(spelling, text)
    if isinstance(compiled, Rejection):
        return
    event = Event(attributes)
    matches = compiled.matches(event)
    holds = Event(attributes).may_match(compiled.cover)
    assert event.residuals == (holds and not compiled.exact)
    left = compiled.residual is None or evaluate(compiled.residual, attributes) is True
    assert matches is (holds and left) is evaluate(compiled.expression, attributes)


def rearranged(expression: Expression, random: Any, repeat: bool) -> Expression:
    """The expression with the terms of every AND, OR and list in another order, or one of each twice."""
    match expression:
        case And(terms) | Or(terms):
            made = [rearranged(term, random, repeat) for term in terms]
            again = random.choice(made)
            # HAS is indexed only where nothing else speaks of its attribute.
            if repeat and not any(isinstance(each, Has) for each in constraints(again)):
                made.append(again)
            random.shuffle(made)
            return type(expression)(tuple(made))
        case Not(term) | IsTrue(term):
            return type(expression)(rearranged(term, random, repeat))
        case In(path, values):
            return In(path, tuple(random.sample(values, len(values))))
        case constraint:
            return constraint


def says_the_same(one: Compiled | Rejection, other: Compiled | Rejection) -> bool:
    if isinstance(one, Rejection) or isinstance(other, Rejection):
        return isinstance(one, Rejection) and isinstance(other, Rejection)
    return one.cover == other.cover and one.exact is other.exact


@often
@given(expressions, st.randoms(use_true_random=False))
def test_the_order_of_terms_means_nothing(expression: Expression, random: Any) -> None:
    """Compiled again it is the same; with its terms in another order, its cover is."""
    compiled = compile_expression(expression)
    assert compile_expression(expression) == compiled
    assert says_the_same(compile_expression(rearranged(expression, random, repeat=False)), compiled)


@often
@given(expressions, st.randoms(use_true_random=False))
def test_a_term_that_comes_twice_means_nothing(expression: Expression, random: Any) -> None:
    """Repeating terms leaves the cover as it is."""
    again = compile_expression(rearranged(expression, random, repeat=True))
    assert says_the_same(again, compile_expression(expression))


@often
@given(expressions)
def test_covers_are_in_normal_form(expression: Expression) -> None:
    """Normalising each filter of a cover, or all of them together, changes nothing; none covers another."""
    compiled = compile_expression(expression)
    if isinstance(compiled, Rejection):
        return
    cover = compiled.cover
    assert tuple(map(filters.conjoin, cover)) == cover
    assert disjoin(cover) == cover
    assert not any(filters.covers(one, other) for one in cover for other in cover if one is not other)
