"""Random filters as people write them, in each of the spellings, and events that they speak of.

A filter has three to five predicates on attributes of a CloudEvent or of its data. `variants` says how many
texts there are for each word: with few of them filters meet events, with many they are all different.
"""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from branchline.routing.values import JsonValue

NAMES = ("type", "source", "subject", "region", "tier", "channel", "currency", "carrier")
WORDS = ("order", "flight", "invoice", "madrid", "zurich", "gold", "web", "EUR", "urgent", "refund")
FEWEST, MOST = 3, 5
"""Predicates in a filter, as in the workloads that matchers are compared with."""
NUMBERS = 1_000
VARIANTS = 1_000
SPELLINGS = ("sql", "cesql", "cloudevents", "eventbridge")


class Spelled:
    """Draws filters and events."""

    def __init__(self, variants: int = VARIANTS) -> None:
        self._variants = variants
        self._writers: dict[str, Callable[[Random], str]] = {
            "sql": self._sql,
            "cesql": self._cesql,
            "cloudevents": self._cloudevents,
            "eventbridge": self._eventbridge,
        }

    def texts(self, spelling: str, random: Random) -> Iterator[str]:
        """Different filters in the spelling, without an end."""
        write = self._writers[spelling]
        seen: set[str] = set()
        while True:
            text = write(random)
            if text not in seen:
                seen.add(text)
                yield text

    def event(self, random: Random) -> dict[str, JsonValue]:
        """Every attribute with a text, and in the data with a number or a text."""
        data: dict[str, JsonValue] = {
            name: random.randrange(2 * NUMBERS) if random.random() < 0.5 else self._word(random)
            for name in NAMES
        }
        return {**{name: self._word(random) for name in NAMES}, "data": data}

    def _word(self, random: Random) -> str:
        return f"{random.choice(WORDS)}{random.randrange(self._variants)}"

    def _sql(self, random: Random) -> str:
        def predicate(name: str) -> str:
            number, more = _numbers(random)
            return random.choice(
                (
                    f"{name} = '{self._word(random)}'",
                    f"data.{name} > {number}",
                    f"data.{name} BETWEEN {number} AND {more}.5",
                    f"{name} IN ('{self._word(random)}', '{self._word(random)}')",
                    f"{name} LIKE '{self._word(random)}%'",
                    f"NOT {name} = '{self._word(random)}'",
                    f"({name} = '{self._word(random)}' OR data.{name} <= {number})",
                )
            )

        return " AND ".join(predicate(name) for name in _names(random))

    def _cesql(self, random: Random) -> str:
        def predicate(name: str) -> str:
            return random.choice(
                (
                    f"{name} = '{self._word(random)}'",
                    f"{name} LIKE '{self._word(random)}%'",
                    f"{name} IN ('{self._word(random)}', '{self._word(random)}')",
                    f"{name} != '{self._word(random)}'",
                    f"EXISTS {name}",
                )
            )

        return " AND ".join(predicate(name) for name in _names(random))

    def _cloudevents(self, random: Random) -> str:
        def predicate(name: str) -> Any:
            return _one_of(
                random,
                (
                    {"exact": {name: self._word(random)}},
                    {"prefix": {name: self._word(random)}},
                    {"suffix": {name: self._word(random)}},
                    {"any": [{"exact": {name: self._word(random)}}, {"prefix": {name: self._word(random)}}]},
                ),
            )

        return json.dumps([predicate(name) for name in _names(random)])

    def _eventbridge(self, random: Random) -> str:
        def alternatives() -> Any:
            number, more = _numbers(random)
            return _one_of(
                random,
                (
                    [self._word(random)],
                    [self._word(random), self._word(random)],
                    [{"prefix": self._word(random)}],
                    [{"numeric": [">", number, "<=", more]}],
                    [{"anything-but": [self._word(random), self._word(random)]}],
                    [{"suffix": self._word(random)}],
                ),
            )

        return json.dumps({"data": {name: alternatives() for name in _names(random)}})


def _names(random: Random) -> list[str]:
    return random.sample(NAMES, random.randint(FEWEST, MOST))


def _numbers(random: Random) -> tuple[int, int]:
    return random.randrange(NUMBERS), random.randrange(NUMBERS, 2 * NUMBERS)


def _one_of(random: Random, choices: tuple[Any, ...]) -> Any:
    return random.choice(choices)
