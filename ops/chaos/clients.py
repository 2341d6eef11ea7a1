"""What clients draw: filters in all four spellings, and events that some of them match."""

import json
import random

from branchline.routing.control import Identity
from branchline.routing.values import JsonValue

SPELLINGS = ("sql", "cesql", "cloudevents", "eventbridge")
KINDS = ("flight", "hotel", "train", "ferry")
CITIES = ("BCN", "DUB", "IAD", "MAD")
KEYS = 10


def a_filter(draw: random.Random, spelling: str) -> str:
    """A filter that about one event in forty matches; of CloudEvents' filters one in sixteen."""
    kind, low = draw.choice(KINDS), draw.randrange(0, 900, 10)
    match spelling:
        case "sql":
            return f"type = '{kind}' AND price BETWEEN {low} AND {low + 100}"
        case "cesql":
            return f"type = '{kind}' AND price > {low} AND price < {low + 100}"
        case "cloudevents":
            return json.dumps(
                {"all": [{"exact": {"type": kind}}, {"prefix": {"origin": draw.choice("BDIM")}}]}
            )
        case _:
            return json.dumps({"type": [kind], "price": [{"numeric": [">=", low, "<", low + 100]}]})


def an_event(draw: random.Random) -> dict[str, JsonValue]:
    return {"type": draw.choice(KINDS), "price": draw.randrange(1_000), "origin": draw.choice(CITIES)}


def a_key(draw: random.Random) -> str | None:
    """One of few keys, within which order is promised; now and then none."""
    return None if draw.random() < 0.1 else f"key-{draw.randrange(KEYS)}"


def identities(
    brokers: tuple[str, ...],
    subscribers: int,
    subscriptions: int,
    prefix: str = "",
    spellings: tuple[str, ...] = SPELLINGS,
) -> dict[Identity, str]:
    """Subscriptions with their spellings; subscribers, and their homes, and spellings come in turn."""
    found = {}
    for number in range(subscriptions):
        subscriber, turn = number % subscribers, number // subscribers
        home, spelling = brokers[subscriber % len(brokers)], spellings[(subscriber + turn) % len(spellings)]
        found[Identity(home, f"{prefix}{home}-{subscriber}", f"s{turn}")] = spelling
    return found
