"""A made-up log of search queries, and events that they match as often as a search would have hits.

Logs of real searches identify people, so this one is of nobody: its words come with Zipf's frequencies from a
vocabulary of syllables. Users ask in turn. A query of one word is a habit: each user has a few such words,
drawn once, and comes back to them; a longer query is of any words. A query that came before is not counted
again. So a few heavy users have few queries of one word between them, and many light users have many.

A query has hits in those of all documents that have all its words, a document being a few words of the same
vocabulary: its share of all documents is that. An event's content has each query of the log with the
probability of its hits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
from math import prod
from random import Random
from typing import NamedTuple

from branchline.ops.workloads import Zipf
from branchline.routing.values import JsonValue

ATTRIBUTE = "query"
HABITS = 20
"""Queries of one word that a user comes back to."""
WORDS = (1, 2, 3, 4)
WORDS_WEIGHTS = (25, 35, 25, 15)
"""How many words queries have: 2.3 in the mean, as in logs of searches."""
SHORT_WORDS = 100
"""The most frequent words have two syllables, all others three."""
SEPARATOR = " | "
"""Between the queries of an event's content: no query matches across it."""

_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
_SCATTER = 48_271
"""Has no factor in common with the number of words of three syllables, so that no two ranks share a word."""


class Query(NamedTuple):
    """A query's text, and in which share of all documents it has hits."""

    text: str
    share: float


@dataclass(frozen=True, slots=True)
class QueryLog:
    """The different queries of so many users."""

    seed: int
    users: int
    queries: int
    vocabulary: int = 50_000
    document_words: int = 12

    def filters(self, random: Random) -> Iterator[str]:
        """The log as filters in SQL, each once, in a random order."""
        yield from (f"{ATTRIBUTE} CONTAINS '{text}'" for text in self.texts(random))

    def texts(self, random: Random) -> list[str]:
        """The same filters, as the words alone that they ask for."""
        texts = [query.text for query in log(self)]
        random.shuffle(texts)
        return texts

    def events(self, random: Random) -> Iterator[dict[str, JsonValue]]:
        """Events with the content that the log's hits make likely, without an end."""
        queries = log(self)
        while True:
            yield {ATTRIBUTE: SEPARATOR.join(text for text, share in queries if random.random() < share)}


@lru_cache(maxsize=4)
def log(made: QueryLog) -> tuple[Query, ...]:
    """The log's queries, in the order in which they were first asked."""
    random = Random(f"{made.seed} log")
    zipf = Zipf(made.vocabulary)
    share = shares(made.vocabulary, made.document_words)
    habits = [[zipf.draw(random) for _ in range(HABITS)] for _ in range(made.users)]
    found: dict[str, float] = {}
    for user in cycle(habits):
        (count,) = random.choices(WORDS, WORDS_WEIGHTS)
        ranks = [random.choice(user)] if count == 1 else [zipf.draw(random) for _ in range(count)]
        # A word that comes twice is in no fewer documents than once.
        found[" ".join(map(spelled, ranks))] = prod(share[rank] for rank in set(ranks))
        if len(found) == made.queries:
            break
    return tuple(Query(text, likely) for text, likely in found.items())


def shares(vocabulary: int, document_words: int) -> list[float]:
    """Of each rank, the share of documents that have its word."""
    weights = [1 / (rank + 1) for rank in range(vocabulary)]
    total = sum(weights)
    return [1 - (1 - weight / total) ** document_words for weight in weights]


def spelled(rank: int) -> str:
    """The word of a rank, from 0 on: another one for each."""
    syllables = len(_SYLLABLES)
    if rank < SHORT_WORDS:
        number, length = rank * _SCATTER % syllables**2, 2
    else:
        number, length = rank * _SCATTER % syllables**3, 3
    word = ""
    for _ in range(length):
        number, digit = divmod(number, syllables)
        word += _SYLLABLES[digit]
    return word
