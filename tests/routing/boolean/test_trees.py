"""Predicate trees say what their filters say, never less, and no more where they are exact."""

from collections.abc import Iterator

import strategies as our
from boolean_trees import nodes, predicate
from hypothesis import given, settings
from hypothesis import strategies as st

from branchline.routing.boolean.forest import forest_of
from branchline.routing.boolean.jumps import FAILS, HOLDS, jumps
from branchline.routing.boolean.trees import (
    FALSE,
    TRUE,
    AllOf,
    Node,
    OneOf,
    Predicate,
    conjunction,
    describe,
    disjunction,
    holds,
    least,
    leaves,
    may_match,
    size,
    tree_of,
)
from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_expression, compile_filter
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import Expression
from branchline.routing.values import JsonValue

often = settings(max_examples=200)


def inner(node: Node) -> Iterator[AllOf | OneOf]:
    if isinstance(node, AllOf | OneOf):
        yield node
        for part in node.parts:
            yield from inner(part)


@often
@given(our.expressions(), our.events())
def test_a_tree_never_misses(expression: Expression, attributes: dict[str, JsonValue]) -> None:
    """Whatever event the expression matches, however deep its arrays, the tree holds for it."""
    if evaluate(expression, attributes) is True:
        assert may_match(tree_of(expression).root, Event(attributes))


@often
@given(our.expressions(), our.events(arrays=False))
def test_an_exact_tree_holds_for_no_more(expression: Expression, attributes: dict[str, JsonValue]) -> None:
    """Without arrays, an exact tree holds where its expression does, and the cover wherever a tree does."""
    tree = tree_of(expression)
    held = may_match(tree.root, Event(attributes))
    if tree.exact:
        assert held is (evaluate(expression, attributes) is True)
    compiled = compile_expression(expression)
    if isinstance(compiled, Rejection):
        assert compiled.reason and not (held and tree.exact)
        return
    assert tree.exact or not compiled.exact, "a cover that is exact comes of an exact tree"
    assert not held or Event(attributes).may_match(compiled.cover)


def test_where_a_cover_is_widened_the_tree_is_exact() -> None:
    """Many alternatives on many attributes are as many leaves, and no product of them."""
    text = " AND ".join(f"({' OR '.join(f'a{name} = {value}' for value in range(10))})" for name in range(8))
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled)
    tree = tree_of(compiled.expression)
    assert (compiled.exact, tree.exact, size(tree.root), least(tree.root)) == (False, True, 80, 8)


def test_has_may_ask_for_two_elements() -> None:
    """Each HAS is a leaf of its own, though no single value satisfies both."""
    compiled = compile_filter("sql", "tags HAS 'a' AND tags HAS 'b'")
    assert isinstance(compiled, Compiled)
    root = tree_of(compiled.expression).root
    assert size(root) == 2
    assert may_match(root, Event({"tags": ["a", "b"]}))
    assert not may_match(root, Event({"tags": ["a", "c"]}))


def test_what_has_no_form_may_hold() -> None:
    """Beside others it is left out; as an alternative, the whole may hold for anything."""

    def described(text: str) -> str:
        compiled = compile_filter("cesql", text)
        assert isinstance(compiled, Compiled)
        tree = tree_of(compiled.expression)
        assert not tree.exact
        return describe(tree.root)

    assert described("a + 1 = b AND c = 'x'") == "c = 'x'"
    assert described("a + 1 = b OR c = 'x'") == "TRUE"


def test_trees_are_described() -> None:
    """On one line, with brackets where they are needed."""
    assert describe(TRUE) == "TRUE"
    assert describe(FALSE) == "FALSE"
    assert describe(conjunction([predicate(1), disjunction([predicate(2), predicate(3)])])) == (
        "x = 1 AND (x = 2 OR x = 3)"
    )


@given(nodes())
def test_nodes_are_in_normal_form(node: Node) -> None:
    """An inner node has two parts or more, no two alike, and none of its own kind."""
    for each in inner(node):
        assert len(each.parts) == len(set(each.parts)) >= 2
        assert not any(isinstance(part, type(each)) for part in each.parts)


def test_true_and_false_are_whole_trees() -> None:
    """What always holds leaves nothing beside it in an OR, and is nothing in an AND."""
    one = predicate(1)
    assert conjunction([one, TRUE]) == one == disjunction([one, FALSE])
    assert conjunction([one, FALSE]) == FALSE
    assert disjunction([one, TRUE]) == TRUE
    assert (conjunction([]), disjunction([])) == (TRUE, FALSE)


@given(nodes(), st.sets(st.integers(0, 5)))
def test_fewer_than_the_least_number_never_suffice(node: Node, numbers: set[int]) -> None:
    """A tree that holds has as many leaves fulfilled; and with some leaves fulfilled it needs no more."""
    fulfilled = {predicate(each) for each in numbers}
    count = sum(each in fulfilled for each in leaves(node))
    assert not holds(node, fulfilled.__contains__) or count >= least(node)


@given(nodes())
def test_the_least_number_is_reached(node: Node) -> None:
    """Told apart, some leaves of that number make the tree hold."""
    apart = _apart(node, iter(range(1_000)))
    needed = _cheapest(apart)
    assert len(needed) == least(node) == least(apart)
    assert holds(apart, needed.__contains__)


def _apart(node: Node, numbers: Iterator[int]) -> Node:
    if isinstance(node, AllOf | OneOf):
        return type(node)(tuple(_apart(part, numbers) for part in node.parts))
    return predicate(next(numbers))


def _cheapest(node: Node) -> set[Predicate]:
    match node:
        case AllOf(parts):
            return set().union(*map(_cheapest, parts))
        case OneOf(parts):
            return min(map(_cheapest, parts), key=len)
        case leaf:
            return {leaf}


@given(nodes(), st.sets(st.integers(0, 5)))
def test_jumps_evaluate_the_tree(node: Node, numbers: set[int]) -> None:
    """Following the jumps ends where the tree says, and always leads to the right."""
    fulfilled = {predicate(each) for each in numbers}
    forest = forest_of([node])
    row = jumps(forest.nodes)
    asked = [forest.predicates[each] for each in row.leaf]
    assert asked == list(leaves(node))
    assert row.least.tolist() == [least(node)]
    at = 0
    while at >= 0:
        then = row.yes[at] if asked[at] in fulfilled else row.no[at]
        assert then < 0 or then > at
        at = then
    assert at == (HOLDS if holds(node, fulfilled.__contains__) else FAILS)
