"""Random filters and events are of the shapes that they are said to be."""

from collections import Counter
from itertools import islice
from random import Random
from statistics import fmean

import pytest

from branchline.ops.simulation.generators import BOUND, OPERATORS, Distribution, Population
from branchline.ops.simulation.queries import QueryLog, log, shares, spelled
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import And
from branchline.routing.spellings import read_filter

POPULATIONS = [
    Population(names, values, 20, decimals=decimals)
    for names, values, decimals in [
        (Distribution.UNIFORM, Distribution.PARETO, 1),
        (Distribution.GAUSSIAN, Distribution.GAUSSIAN, 0),
        (Distribution.PARETO, Distribution.UNIFORM, 4),
    ]
]
LOG = QueryLog(seed=1, users=5, queries=300, vocabulary=2_000)


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_filters_and_events_keep_to_their_bounds(population: Population) -> None:
    """Counts and values lie in their ranges and reach the ends, names differ, and all operators come."""
    counts, operators, attributes = Counter[int](), Counter[str](), Counter[int]()
    for conditions in islice(population.conditions(Random(1)), 3_000):
        assert len({each.name for each in conditions}) == len(conditions)
        assert all(-BOUND <= each.value <= each.high <= BOUND for each in conditions)
        counts[len(conditions)] += 1
        operators.update(each.operator for each in conditions)
    for event in islice(population.events(Random(2)), 3_000):
        attributes[len(event)] += 1
        assert all(isinstance(value, float) and -BOUND <= value <= BOUND for value in event.values())
    assert set(counts) == set(range(2, 9)) and counts.most_common(1)[0][0] == 5
    assert set(attributes) == set(range(2, 13)) and attributes.most_common(1)[0][0] == 7
    assert set(operators) == set(OPERATORS)
    assert max(operators.values()) < 1.2 * min(operators.values())


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_a_text_means_what_its_filter_does(population: Population) -> None:
    """Each text compiles exactly, to the filter that routing is given; the naive evaluator agrees."""
    texts = list(islice(population.filters(Random(3)), 150))
    filters = list(islice(population.routing_filters(Random(3)), 150))
    events = list(islice(population.events(Random(4)), 60))
    matched = 0
    for text, filter_ in zip(texts, filters, strict=True):
        compiled = compile_filter("sql", text)
        assert not isinstance(compiled, Rejection), text
        assert compiled.exact and compiled.cover == (filter_,)
        expression = read_filter("sql", text)
        assert isinstance(expression, And)
        for event in events:
            matches = Event(event).may_match((filter_,))
            assert evaluate(expression, event) is matches
            matched += matches
    assert matched


def test_the_same_seed_draws_the_same() -> None:
    """From run to run and from machine to machine."""
    drawn = Population(Distribution.PARETO, Distribution.GAUSSIAN).filters(Random(5))
    assert next(drawn) == (
        "n28 BETWEEN -20.2 AND -1.3 AND n38 < 1.8 AND n00 > -37.0 "
        "AND n08 < -9.7 AND n18 BETWEEN -16.6 AND 12.1"
    )


def test_distributions_are_spread_as_they_say() -> None:
    """Uniform is even, Gaussian heaps in the middle, more than half of Pareto lies in the lowest tenth."""
    random = Random(6)
    drawn = {each: [each.draw(random) for _ in range(20_000)] for each in Distribution}
    assert all(0 <= value < 1 for values in drawn.values() for value in values)

    def share(which: Distribution, low: float, high: float) -> float:
        return fmean(low <= value < high for value in drawn[which])

    assert share(Distribution.UNIFORM, 0.0, 0.1) == pytest.approx(0.1, abs=0.01)
    assert share(Distribution.GAUSSIAN, 1 / 3, 2 / 3) == pytest.approx(0.684, abs=0.01)
    assert share(Distribution.PARETO, 0.0, 0.1) == pytest.approx(0.55, abs=0.01)
    assert share(Distribution.PARETO, 0.9, 1.0) < 0.02


def test_operators_come_as_often_as_is_set() -> None:
    """One with no weight never comes."""
    population = Population(operators=(3, 0, 0, 0, 0, 1))
    drawn = Counter(each.operator for made in islice(population.conditions(Random(7)), 500) for each in made)
    assert set(drawn) == {"=", "between"} and 2 < drawn["="] / drawn["between"] < 4


def test_a_log_of_queries_has_different_ones_that_compile() -> None:
    """As many as are asked for, each a filter on what a text contains, in an order that is drawn."""
    texts = LOG.texts(Random(1))
    assert len(set(texts)) == len(texts) == 300
    assert texts != LOG.texts(Random(2)) and sorted(texts) == sorted(LOG.texts(Random(2)))
    for text, filter_ in zip(texts, LOG.filters(Random(1)), strict=True):
        compiled = compile_filter("sql", filter_)
        assert not isinstance(compiled, Rejection) and compiled.exact
        (((path, _, word),),) = compiled.cover
        assert (path, word) == (("query",), text)


def test_words_are_different_and_some_are_short() -> None:
    """No two ranks of the largest vocabulary share a word."""
    words = [spelled(rank) for rank in range(300_000)]
    assert len(set(words)) == len(words)
    assert {len(word) for word in words[:100]} == {4} and {len(word) for word in words[100:]} == {6}


def test_many_users_ask_more_queries_of_one_word_than_few() -> None:
    """A user comes back to her habits, so few users have few of them between them."""

    def short(users: int) -> int:
        return sum(" " not in query.text for query in log(QueryLog(1, users, 2_000, 5_000)))

    assert short(500) > 2 * short(3)


def test_a_query_matches_as_often_as_it_has_hits() -> None:
    """It is in the share of events that it has of all documents; in more, where another one contains it."""
    contents = [str(event["query"]) for event in islice(LOG.events(Random(8)), 2_000)]
    expected = {query.text: query.share for query in log(LOG)}
    likely = sorted(expected, key=lambda text: expected[text], reverse=True)[:10]
    for text in likely:
        assert fmean(text in content for content in contents) > expected[text] - 0.05
    pieces = [piece for content in contents for piece in content.split(" | ") if piece]
    assert len(pieces) / len(contents) == pytest.approx(sum(expected.values()), rel=0.05)


def test_frequent_words_are_in_more_documents_than_rare_ones() -> None:
    """Shares fall with the rank, and with one word a document they are all there is."""
    found = shares(100, 12)
    assert found == sorted(found, reverse=True) and 0 < found[-1] < found[0] < 1
    assert sum(shares(100, 1)) == pytest.approx(1)
