"""Random filters and events for measuring, of the shapes that matchers are compared by.

- `equalities`: three attributes equal a text each; few names and values are frequent (Zipf);
- `ranges`: two to five ranges of numbers around Gaussian centres in [-50, 50]; some of 20 names are frequent
  (Gaussian). Ranges overlap a lot, which is what Routing Trees suffer from;
- `words`: a text contains one to three words of a vocabulary whose words come with Zipf's frequencies;
- `mixed`: an equality or two, up to two ranges, and now and then a word or a prefix.

Events are drawn the same way, so that they meet the filters. The same seed gives the same filters and events.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from branchline.routing.dimensions import Axis, prefix_range
from branchline.routing.filters import Constraint, Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import Interval, after, before, text_point
from branchline.routing.values import JsonValue

NAMES_OF_TEXT = 50
VALUES = 1_000
NAMES_OF_NUMBERS = 20
VOCABULARY = 20_000
BOUND = 50.0
WORDS_IN_EVENT = 12

_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


class Zipf:
    """Ranks from 0 on, of which the k-th comes 1 / (k + 1) times as often as the first."""

    def __init__(self, size: int) -> None:
        self._ranks = range(size)
        self._weights = list(accumulate(1 / (rank + 1) for rank in range(size)))

    def draw(self, random: Random) -> int:
        return random.choices(self._ranks, cum_weights=self._weights)[0]


_NAME, _VALUE, _WORD = Zipf(NAMES_OF_TEXT), Zipf(VALUES), Zipf(VOCABULARY)


@dataclass(frozen=True, slots=True)
class Workload:
    """How a filter's constraints and an event's attributes are drawn."""

    constraints: Callable[[Random], list[Constraint]]
    event: Callable[[Random], dict[str, JsonValue]]

    def filters(self, random: Random) -> Iterator[Filter]:
        """Different filters, without an end."""
        seen: set[Filter] = set()
        while True:
            made = conjoin(self.constraints(random))
            if not isinstance(made, Contradiction) and made and made not in seen:
                seen.add(made)
                yield made


def _text_name(random: Random) -> str:
    return f"text{_NAME.draw(random)}"


def _number_name(random: Random) -> str:
    middle = NAMES_OF_NUMBERS / 2
    drawn = int(random.gauss(middle, NAMES_OF_NUMBERS / 6))
    return f"number{min(max(drawn, 0), NAMES_OF_NUMBERS - 1)}"


def _names(draw: Callable[[Random], str], random: Random, count: int) -> list[str]:
    """Different names, in the order drawn."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[draw(random)] = None
    return list(found)


def _value(random: Random) -> str:
    return f"value{_VALUE.draw(random)}"


def _number(random: Random) -> float:
    return round(min(max(random.gauss(0, BOUND / 3), -BOUND), BOUND), 1)


def spelled(rank: int) -> str:
    """The word of a rank: two to four syllables, spelled by the digits of the rank."""
    rank += len(_SYLLABLES)
    made = ""
    while rank:
        rank, digit = divmod(rank, len(_SYLLABLES))
        made += _SYLLABLES[digit]
    return made


def word(random: Random) -> str:
    """A word of the vocabulary, as often as Zipf says."""
    return spelled(_WORD.draw(random))


def _equal(name: str, random: Random) -> Constraint:
    return Range((name,), Axis.TEXT, text_point(_value(random)))


def _around(name: str, random: Random) -> Constraint:
    centre, half = _number(random), round(abs(random.gauss(0, BOUND / 5)) + 0.1, 1)
    low, high = round(centre - half, 1), round(centre + half, 1)
    return Range((name,), Axis.NUMBER, Interval(before(low), after(high)))


def _equalities(random: Random) -> list[Constraint]:
    return [_equal(name, random) for name in _names(_text_name, random, 3)]


def _ranges(random: Random) -> list[Constraint]:
    return [_around(name, random) for name in _names(_number_name, random, random.randint(2, 5))]


def _words(random: Random) -> list[Constraint]:
    return [Contains(("query",), Axis.TEXT, word(random)) for _ in range(random.randint(1, 3))]


def _mixed(random: Random) -> list[Constraint]:
    made = [_equal(name, random) for name in _names(_text_name, random, random.randint(1, 2))]
    made += [_around(name, random) for name in _names(_number_name, random, random.randint(0, 2))]
    chance = random.random()
    if chance < 0.1:
        made.append(Contains(("query",), Axis.TEXT, word(random)))
    elif chance < 0.2:
        made.append(Range(("query",), Axis.TEXT, prefix_range(word(random)[:4])))
    return made


def _event_of_texts(random: Random) -> dict[str, JsonValue]:
    return {name: _value(random) for name in _names(_text_name, random, 8)}


def _event_of_numbers(random: Random) -> dict[str, JsonValue]:
    count = min(max(round(random.gauss(7, 2)), 2), 12)
    return {name: _number(random) for name in _names(_number_name, random, count)}


def _event_of_words(random: Random) -> dict[str, JsonValue]:
    return {"query": " ".join(word(random) for _ in range(WORDS_IN_EVENT))}


def _event_of_all(random: Random) -> dict[str, JsonValue]:
    return {**_event_of_texts(random), **_event_of_numbers(random), **_event_of_words(random)}


WORKLOADS: Mapping[str, Workload] = {
    "equalities": Workload(_equalities, _event_of_texts),
    "ranges": Workload(_ranges, _event_of_numbers),
    "words": Workload(_words, _event_of_words),
    "mixed": Workload(_mixed, _event_of_all),
}
