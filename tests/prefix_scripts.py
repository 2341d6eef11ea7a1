"""Random scripts for one Tree Optimizer and several brokers: from Hypothesis, or quickly from seeds.

`prefix_runs.py` plays them.
"""

import random
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from filter_world import WORLD, A, B
from hypothesis import strategies as st

from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.covers import Cover
from branchline.routing.dimensions import Axis, kinds, prefix_range, ranks
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import Anything
from branchline.routing.filters import Constraint, Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, text_before
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.values import Kind

SQL = (
    "TRUE",
    "a < b",
    "a = b OR a > 1",
    "a LIKE '%a_%'",
    "NOT (a LIKE '%b%') AND b >= 0",
    "a <> 1 AND b = 0",
    "a IN (0, 1.5, 'ab', 'c')",
    "a IS NULL",
    "a > 0.5 AND b > 0 OR a < 2 AND b < 1",
    "c.d = 1 AND c.e = 2",
)
"""Filters with several alternatives, and some whose covers hold for more than they do."""

ARRAYS: tuple[dict[str, Any], ...] = (
    {"a": [0, 1.5], "b": 1},
    {"a": ["ab", "c"], "b": [0, 1]},
    {"a": []},
    {"a": [1, "a", None], "b": "a"},
    {"a": [2], "b": [1, 0, 2]},
    {"a": 0, "c": [{"d": 1, "e": 0}, {"d": 0, "e": 2}]},
    {"a": 1, "c": [{"d": 1, "e": 0}, {"d": 1, "e": 2}]},
)
EVENTS: tuple[dict[str, Any], ...] = (*(dict(each.attributes) for each in WORLD), *ARRAYS * 4)


def only(*filters: Filter) -> Compiled:
    """A subscription that is just these filters, one of which must hold."""
    return Compiled(Anything(), filters, None, (), frozenset())


def sql(text: str) -> Compiled:
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled), compiled
    return compiled


def cover(text: str) -> Cover:
    return sql(text).cover


def is_true(compiled: Compiled, attributes: dict[str, Any]) -> bool:
    """The oracle: whether a subscription wants an event, without trees, indexes or covers that hold more."""
    if isinstance(compiled.expression, Anything):
        return Event(attributes).may_match(compiled.cover)
    return evaluate(compiled.expression, attributes) is True


class Step(NamedTuple):
    """What happens next, and a number that every choice in it is made with."""

    kind: str
    choice: int


KINDS = "sssssuuhhtttaaaaeeelrpi"
"""Subscribe, unsubscribe, hear, tell, apply, enter, lose, repeat, (take a) picture, (new) incarnation."""


@dataclass(frozen=True)
class Script:
    """What is subscribed to, under which settings, and what happens."""

    pool: tuple[Compiled, ...]
    steps: tuple[Step, ...]
    settings: Settings
    heights: tuple[int | None, ...]
    keep: int = 4


# From Hypothesis

budgets = st.sampled_from([(32, 20, 1_000), (2, 1, 3), (32, 1, 4), (32, 0, 0), (3, 2, 0), (1, 20, 1_000)])
"""Pieces of a filter, nodes for each filter, spare nodes: some loose, most so tight that filters overflow."""


def _settings(parts: int, threshold: float, budget: tuple[int, int, int], snapshot_edges: int) -> Settings:
    pieces, nodes_per_filter, spare_nodes = budget
    return Settings(
        parts,
        threshold,
        limit_ms=10,
        pieces=pieces,
        nodes_per_filter=nodes_per_filter,
        spare_nodes=spare_nodes,
        snapshot_edges=snapshot_edges,
    )


every_settings = st.builds(
    _settings,
    st.integers(1, 3),
    st.sampled_from((0.0, 0.3, 0.9)),
    budgets,
    st.sampled_from((1, 3, 5_000)),
)
heights = st.lists(st.sampled_from((None, None, 0, 1, 2)), min_size=2, max_size=3).map(tuple)
every_step = st.builds(Step, st.sampled_from(KINDS), st.integers(0, 10_000))


def pools(filters: st.SearchStrategy[Filter]) -> st.SearchStrategy[tuple[Compiled, ...]]:
    """Few subscriptions, so that the same comes again and again."""
    some = filters.map(only) | st.sampled_from(SQL).map(sql)
    return st.lists(some, min_size=1, max_size=7).map(tuple)


def scripts(filters: st.SearchStrategy[Filter]) -> st.SearchStrategy[Script]:
    steps = st.lists(every_step, max_size=25).map(tuple)
    return st.builds(Script, pools(filters), steps, every_settings, heights, st.sampled_from((1, 2, 4)))


# From seeds


def _ranges(cuts: list[tuple[Any, ...]]) -> list[Interval]:
    return [Interval(low, high) for low, high in combinations(cuts, 2)][1:]


_NUMBERS = _ranges([LOWEST, *(cut(value) for value in (0, 1, 2) for cut in (before, after)), HIGHEST])
_TEXTS = _ranges([LOWEST, *(cut(text) for text in ("a", "ab", "b") for cut in (text_before, after)), HIGHEST])
_CONSTRAINTS: list[list[Constraint]] = [
    [Range(A, Axis.NUMBER, each) for each in _NUMBERS],
    [Range(B, Axis.NUMBER, each) for each in _NUMBERS],
    [Range(A, Axis.TEXT, each) for each in _TEXTS],
    [Contains(A, axis, word) for axis in (Axis.TEXT, Axis.FOLDED) for word in ("a", "b", "ab", "abc", "c")],
    [Range(A, Axis.REVERSED, prefix_range(word)) for word in ("b", "ba", "c")],
    [Range(B, Axis.PRESENCE, kinds(low, high)) for low, high in combinations(Kind, 2)],
    [Range(A, Axis.BOOLEAN, ranks(rank, rank, 1)) for rank in (1, 0)],
]


def _filter(source: random.Random, groups: list[int]) -> Filter:
    made = conjoin(source.choice(_CONSTRAINTS[group]) for group in groups)
    return _filter(source, groups) if isinstance(made, Contradiction) else made


def _mixed(source: random.Random) -> Filter:
    groups = source.sample(range(len(_CONSTRAINTS)), source.choice((0, 1, 1, 2, 2, 2, 3)))
    # Mostly numbers, whose ranges overlap; of constraints that exclude each other the first is enough.
    groups = [group if source.random() < 0.5 else source.randrange(2) for group in groups]
    made = conjoin(source.choice(_CONSTRAINTS[group]) for group in groups)
    return _filter(source, groups[:1]) if isinstance(made, Contradiction) else made


def seeded(seed: int, length: int = 40) -> Script:
    """A script that the seed alone decides: of four, one is about words and one about overflow numbers."""
    source = random.Random(seed)
    words, beside = seed % 4 == 0, seed % 4 == 1
    if words:
        pool = [only((Contains(A, Axis.TEXT, word),)) for word in ("a", "b", "c", "ab", "bc", "abc", "cab")]
    elif beside:
        pool = [only(_filter(source, [source.randrange(2)])) for _ in range(3)]
    else:
        pool = [only(_mixed(source)) for _ in range(source.randrange(2, 9))]
        pool += [sql(text) for text in source.sample(SQL, 2)]
    budget = source.choice([(32, 20, 1_000), (32, 20, 1_000), (2, 1, 3), (32, 1, 2)])
    kinds_of_steps = KINDS + "suuhhhtta" * beside + "sss" * words
    return Script(
        tuple(pool),
        tuple(Step(source.choice(kinds_of_steps), source.randrange(10_000)) for _ in range(length)),
        _settings(
            source.randrange(1, 3),
            source.choice((0.0, 0.3)),
            (32, 0, 0) if beside else (32, 20, 1_000) if words else budget,
            source.choice((2, 5_000)),
        ),
        (None, None) if words else tuple(source.choice((None, None, 0, 1, 2)) for _ in range(2)),
        source.choice((1, 2, 4)),
    )


some_filters: st.SearchStrategy[Filter] = st.sampled_from([_mixed(random.Random(n)) for n in range(400)])
"""Filters from a pool, which is quicker than drawing each of them."""


class Just(frozenset[Any]):
    """These owners alone are wanted; it is enough when all of them are certain."""

    def enough(self, found: Found) -> bool:
        return self <= found.certain
