"""Kind `pruning` measures what a naive recount finds, and loses no event."""

from collections import Counter
from itertools import islice
from random import Random

import pytest

from branchline.ops.simulation import books
from branchline.ops.simulation.kind import Case
from branchline.ops.simulation.pruning import KIND, Spec, counted
from branchline.ops.simulation.tables import check_rows
from branchline.routing.boolean.jumps import size
from branchline.routing.boolean.pruning import apply, prunings
from branchline.routing.boolean.trees import AllOf, Node, OneOf, leaves, may_match
from branchline.routing.event import Event


@pytest.fixture(autouse=True)
def few_books(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few titles and authors that a small simulation has events that match."""
    monkeypatch.setattr(books, "_MANY", {"title": 400, "author": 150})


SPEC = Spec(books.CLASSES, (1, 3), 300, 200, 40, (0.0, 0.5, 1.0))
TIMES = {"filter_us", "saved"}


def drawn(kind: str, count: int) -> list[Node]:
    return list(islice(books.subscriptions(Random("1 subscriptions"), kind), count))


def test_classes_have_the_predicates_that_the_paper_says() -> None:
    """6, 12 and 7, where no two are drawn alike, and 1, 2 and 3 of their operators are OR."""
    for kind, predicates, alternatives in (("1", 6, 1), ("2", 12, 2), ("3", 7, 3)):
        trees = drawn(kind, 50)
        assert Counter(map(size, trees)).most_common(1)[0][0] == predicates
        assert max(map(_alternatives, trees)) == alternatives


def _alternatives(tree: Node) -> int:
    if not isinstance(tree, AllOf | OneOf):
        return 0
    return isinstance(tree, OneOf) + sum(map(_alternatives, tree.parts))


def test_one_broker_is_recounted() -> None:
    """Associations that are left and events that match, by asking each pruned tree by itself."""
    result = KIND.run(SPEC, Case(1, {"class": "1-3", "brokers": 1}), lambda _: None)
    check_rows(KIND.columns, result.rows)
    assert result.failures == []
    trees = drawn("1-3", SPEC.subscriptions)
    stream = books.events(Random("1 events"))
    share = counted(trees, [Event(each) for each in islice(stream, SPEC.sample)])
    happened = [Event(each) for each in islice(stream, SPEC.events)]
    done = prunings(trees, share)
    for row in result.rows:
        made = apply(trees, done, int(row["prunings"]))
        assert row["associations"] == sum(map(size, made))
        assert row["trees"] == len(set(made))
        matching = sum(any(may_match(tree, event) for tree in made) for event in happened)
        assert row["matching"] == matching / len(happened)
    assert [row["removed"] for row in result.rows][::2] == [0, 1]
    assert float(result.rows[-1]["extra"]) > 0


def test_shares_are_those_of_the_sample() -> None:
    """What some event of the sample satisfies has just the share of those that do."""
    trees = drawn("2", 20)
    sample = [Event(each) for each in islice(books.events(Random(1)), 200)]
    share = counted(trees, sample)
    for tree in trees:
        for predicate in leaves(tree):
            count = sum(may_match(predicate, event) for event in sample)
            assert share(predicate) == count / 200 if count else 0 < share(predicate) <= 0.5 / 200


def test_a_line_of_brokers_forwards_more_and_loses_nothing() -> None:
    """Copies only grow with prunings, and but for times a case gives the same again."""
    case = Case(2, {"class": "3", "brokers": 3})
    result, again = (KIND.run(SPEC, case, lambda _: None) for _ in range(2))
    assert result.failures == []
    copies = [int(row["copies"]) for row in result.rows]
    assert copies == sorted(copies)
    assert copies[-1] > copies[0]
    for one, other in zip(result.rows, again.rows, strict=True):
        assert {name: one[name] for name in one.keys() - TIMES} == {
            name: other[name] for name in other.keys() - TIMES
        }
