"""Every method that a configuration can name, and how they go together: what tests of all methods run over.

Read from the tables of names, so that a method that is added there is held to all of it at once. A name that
takes a number is there twice, with and without one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, cycle, product, zip_longest
from typing import Any

from branchline.routing.methods.naming import FORWARDING, MATCHING, OPTIMISATIONS, Methods, misfit

NUMBER = 2
"""Behind the names that take one: small, so that limits are met."""


def _texts(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from (name, f"{name}({NUMBER})")


EVERY_METHODS: tuple[Methods, ...] = tuple(
    methods
    for names in product(_texts(FORWARDING), _texts(MATCHING))
    if misfit(methods := Methods(*names)) is None
)
"""A forwarding and a matching, all that fit together."""

EVERY_STRATEGY: tuple[str, ...] = (
    "identity",
    "covering",
    "cbcb",
    "simple+merging",
    "covering+imperfect(40)",
    "identity+pre-prune(40)",
    "identity+merging+imperfect(20)",
    "covering+poset",
    "covering+rto(2)",
    "covering+ff(8)",
)
"""Strategies along a tree, among which every name is."""

EVERY_MATCHING: tuple[str, ...] = tuple(dict.fromkeys(methods.matching for methods in EVERY_METHODS))


def pairwise_rows(
    *choices: Sequence[Any], fits: Callable[[tuple[Any, ...]], bool] = lambda row: True
) -> list[tuple[Any, ...]]:
    """Few rows that fit, with one of each of the choices, in which any two come together that ever do."""

    def pairs(row: tuple[Any, ...]) -> set[tuple[tuple[int, Any], ...]]:
        return set(combinations(enumerate(row), 2))

    rows = [row for row in product(*choices) if fits(row)]
    missing = set().union(*map(pairs, rows))
    chosen = []
    while missing:
        best = max(rows, key=lambda row: len(pairs(row) & missing))
        missing -= pairs(best)
        chosen.append(best)
    return chosen


AT_WORK = {"prune-precision": "prune-precision(300)"}
"""What would have nothing to do with the few filters of a test, with a number that gives it something."""


def _fitting(rows: Iterable[tuple[str, str, str | None]]) -> list[Methods]:
    made = (
        Methods(one, other, optimise=() if third is None else (AT_WORK.get(third, third),))
        for one, other, third in rows
    )
    return [methods for methods in made if misfit(methods) is None]


def every_name_once() -> list[Methods]:
    """Few methods that fit together, among which every name is."""
    rows: list[tuple[str, str, str | None]] = [
        ("rematch", matching, optimise)
        for matching, optimise in zip(cycle(MATCHING), OPTIMISATIONS, strict=False)
    ]
    seen = {name for row in rows for name in row}
    others = [name for name in FORWARDING if name not in seen and misfit(Methods(name, "table")) is None]
    left = [name for name in MATCHING if name not in seen]
    rows += [(one or "rematch", other or "table", None) for one, other in zip_longest(others, left)]
    return [Methods(), *_fitting(rows)]


def every_pair() -> list[Methods]:
    """Few methods, among which any two names that fit together are."""
    choices = (list(FORWARDING), list(MATCHING), [None, *OPTIMISATIONS])
    return _fitting(pairwise_rows(*choices, fits=lambda row: bool(_fitting([row]))))
