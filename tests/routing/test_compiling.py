"""What a filter compiles to agrees with the naive evaluator on every event."""

import strategies as our
from amounts import often
from hypothesis import given

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_expression
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import Expression
from branchline.routing.values import JsonValue


@often
@given(our.expressions(), our.events())
def test_compiled_agrees_with_the_naive_evaluator(
    expression: Expression, attributes: dict[str, JsonValue]
) -> None:
    """Cover and residual together match exactly the events that the expression matches."""
    verdict = evaluate(expression, attributes)
    compiled = compile_expression(expression)
    if isinstance(compiled, Rejection):
        assert verdict is not True
        return
    assert compiled.matches(Event(attributes)) == verdict


@often
@given(our.expressions(), our.events())
def test_the_cover_never_misses(expression: Expression, attributes: dict[str, JsonValue]) -> None:
    """Whatever event the expression matches, arrays included, the cover holds for it."""
    compiled = compile_expression(expression)
    if evaluate(expression, attributes) is True:
        assert isinstance(compiled, Compiled)
        assert Event(attributes).may_match(compiled.cover)
