"""Workloads of the papers that are not among the others: ranges of lookup reuse, and auctions of books.

- `reuse`: a range on each of five numbers from 0 to 1, so wide that an event matches one per cent of the
  filters; events are uniform;
- `auctions`: subscriptions of three classes to auctions of books, with ten attributes: six predicates with
  one OR, twelve with two, seven with three.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from branchline.ops.workloads import Zipf, spelled
from branchline.routing.values import JsonValue

DENSITY = 0.01
DIMENSIONS = 5
AUTHORS, TITLES = Zipf(300), Zipf(1_000)
CATEGORIES = ("novel", "poetry", "history", "science", "travel", "art", "cooking", "children")
CONDITIONS = ("new", "good", "fair", "poor")
LANGUAGES = ("en", "de", "es", "fr", "pt")

Event = dict[str, JsonValue]


class PaperWorkload(NamedTuple):
    """How a filter, as SQL, and an event are drawn."""

    text: Callable[[Random], str]
    event: Callable[[Random], Event]


def _box(random: Random) -> str:
    side = DENSITY ** (1 / DIMENSIONS)
    lows = (round(random.random() * (1 - side), 4) for _ in range(DIMENSIONS))
    return " AND ".join(f"n{place} BETWEEN {low} AND {low + side:.4f}" for place, low in enumerate(lows))


def _point(random: Random) -> Event:
    return {f"n{place}": round(random.random(), 4) for place in range(DIMENSIONS)}


def _auction(random: Random) -> str:
    return random.choice((_bargain, _collector, _browser))(random)


def _bargain(random: Random) -> str:
    """Six predicates, one OR: a title, cheap or about to end."""
    return (
        f"title = '{spelled(TITLES.draw(random))}' AND condition <> 'poor' "
        f"AND language = '{_language(random)}' AND price > 0 "
        f"AND (price < {random.randint(5, 40)} OR minutes < {random.randint(5, 120)})"
    )


def _collector(random: Random) -> str:
    """Twelve predicates, two ORs: one of two authors, in either of two states."""
    author, other = (spelled(AUTHORS.draw(random)) for _ in range(2))
    year, price = random.randint(1850, 1980), random.randint(50, 400)
    return (
        f"(author = '{author}' OR author = '{other}') AND year >= {year} AND year < {year + 40} "
        f"AND price >= {price // 4} AND price < {price} AND bids < {random.randint(5, 40)} "
        f"AND seller > {random.randint(50, 90)} AND language = '{_language(random)}' AND minutes > 1 "
        "AND (condition = 'new' OR condition = 'good')"
    )


def _browser(random: Random) -> str:
    """Seven predicates, three ORs: some categories at some price."""
    one, other, third = random.sample(CATEGORIES, 3)
    return (
        f"(category = '{one}' OR category = '{other}' OR category = '{third}') "
        f"AND (bids < {random.randint(1, 4)} OR minutes < {random.randint(10, 60)}) "
        f"AND price < {random.randint(10, 60)} AND year > {random.randint(1950, 2010)}"
    )


def _language(random: Random) -> str:
    return LANGUAGES[min(int(random.expovariate(1)), len(LANGUAGES) - 1)]


def _offer(random: Random) -> Event:
    return {
        "title": spelled(TITLES.draw(random)),
        "author": spelled(AUTHORS.draw(random)),
        "category": random.choice(CATEGORIES),
        "condition": random.choice(CONDITIONS),
        "language": _language(random),
        "price": round(random.lognormvariate(3, 1), 2),
        "bids": int(random.expovariate(0.2)),
        "minutes": random.randint(1, 10_080),
        "seller": random.randint(0, 100),
        "year": 2020 - int(random.expovariate(0.03)),
    }


PAPERS: Mapping[str, PaperWorkload] = {
    "reuse": PaperWorkload(_box, _point),
    "auctions": PaperWorkload(_auction, _offer),
}
