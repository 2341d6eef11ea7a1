"""EventBridge patterns against a plain matcher over their JSON, on random patterns and events."""

import ipaddress
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from amounts import often
from eventbridge_patterns import alternatives, fields, is_pattern, meetings, names, near, patterns, values
from hypothesis import assume, example, given
from hypothesis import strategies as st

from branchline.routing.evaluate import evaluate
from branchline.routing.limits import FILTER_MAX_BYTES
from branchline.routing.spellings.errors import FilterError
from branchline.routing.spellings.eventbridge import read
from branchline.routing.values import JsonValue

few = st.lists(alternatives, min_size=1, max_size=1) | fields

NOTHING = object()
"""Where a single-valued event of the oracle has no value."""


def singles(value: Any) -> Iterator[Any]:
    """Every single-valued event that the event stands for, from all its arrays, whatever a pattern names."""
    if isinstance(value, list):
        for element in value:
            yield from singles(element)
        if not value:
            yield NOTHING
    elif isinstance(value, dict):
        for chosen in itertools.product(*map(singles, value.values())):
            yield dict(zip(value, chosen, strict=True))
    else:
        yield value


def oracle(pattern: Any, event: Any) -> bool:
    """The pattern's verdict on a single-valued event, straight from its JSON."""
    for name, content in pattern.items():
        here = event.get(name, NOTHING) if isinstance(event, dict) else NOTHING
        if name == "$or" and isinstance(content, list) and any(map(is_pattern, content)):
            holds = any(oracle(one, event) for one in content)
        elif isinstance(content, dict):
            holds = oracle(content, here)
        else:
            holds = any(suits(one, here) for one in content)
        if not holds:
            return False
    return True


def suits(alternative: Any, value: Any) -> bool:
    is_leaf = value is not NOTHING and not isinstance(value, dict)
    if not isinstance(alternative, dict):
        return is_leaf and same(alternative, value)
    ((name, content),) = alternative.items()
    match name:
        case "exists":
            return is_leaf is content
        case "anything-but" if isinstance(content, dict):
            ((inner, several),) = content.items()
            several = several if isinstance(several, list) else [several]
            return is_leaf and not any(suits({inner: one}, value) for one in several)
        case "anything-but":
            several = content if isinstance(content, list) else [content]
            return is_leaf and not any(same(one, value) for one in several)
        case "numeric":
            return kind(value) == "number" and all(
                {
                    "=": value == bound,
                    "<": value < bound,
                    "<=": value <= bound,
                    ">": value > bound,
                    ">=": value >= bound,
                }[sign]
                for sign, bound in zip(content[::2], content[1::2], strict=True)
            )
    if not isinstance(value, str):
        return False
    if isinstance(content, dict):
        content, value = content["equals-ignore-case"].casefold(), value.casefold()
    match name:
        case "prefix":
            return value.startswith(content)
        case "suffix":
            return value.endswith(content)
        case "equals-ignore-case":
            return bool(value.casefold() == content.casefold())
        case "wildcard":
            parts = re.findall(r"\\.|.", content)
            form = "".join(".*" if part == "*" else re.escape(part[-1]) for part in parts)
            return re.fullmatch(form, value) is not None
    assert name == "cidr"
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    network = ipaddress.ip_network(content, strict=False)
    return address.version == network.version and address in network


def kind(value: Any) -> str:
    return {bool: "bool", int: "number", float: "number", str: "text", type(None): "null"}.get(
        type(value), "none"
    )


def same(one: Any, other: Any) -> bool:
    return kind(one) == kind(other) and bool(one == other)


@often
@given(meetings)
@example(({"a": [{"exists": False}]}, {"a": [[], 1]}))
@example(({"a": {"b": [{"anything-but": "x"}]}}, {"a": [{"b": "x"}, {}]}))
@example(({"$or": [{"a": ["x"]}, {"a": {"b": [None]}}]}, {"a": ["y", {"b": [1, None]}]}))
@example(({"a": {"$or": [{"b": ["x"]}, {"b": ["y"]}]}}, {"a": {"b": "y"}, "b": "z"}))
def test_agrees_with_matching_straight_from_the_json(meeting: tuple[Any, dict[str, JsonValue]]) -> None:
    """The tree's verdict is that of a plain two-valued matcher over the JSON, tried on every choice."""
    pattern, event = meeting
    wanted = any(oracle(pattern, single) for single in singles(event))
    assert evaluate(read(json.dumps(pattern)), event) is wanted


@given(few.flatmap(lambda field: st.tuples(st.just(field), near(field) | values)))
def test_one_field_agrees_with_matching_straight_from_the_json(meeting: tuple[Any, JsonValue]) -> None:
    """So it is for a single field, where pattern and event meet most often."""
    field, value = meeting
    pattern, event = {"a": field}, {"a": value}
    wanted = any(oracle(pattern, single) for single in singles(event))
    assert evaluate(read(json.dumps(pattern)), event) is wanted


def reordered(value: Any) -> Any:
    """The same JSON with the names of objects in the opposite order."""
    if isinstance(value, dict):
        return {name: reordered(below) for name, below in reversed(value.items())}
    return [reordered(one) for one in value] if isinstance(value, list) else value


@given(meetings)
def test_spacing_order_and_escapes_mean_nothing(meeting: tuple[Any, dict[str, JsonValue]]) -> None:
    """However the same pattern is spaced, ordered and escaped, its verdict is the same."""
    pattern, event = meeting
    escaped = re.sub("a(?!lse)", r"\\u0061", json.dumps(pattern))
    assert json.loads(escaped) == pattern
    spellings = [
        escaped,
        json.dumps(pattern, indent=2, ensure_ascii=False),
        json.dumps(pattern, separators=(",\r\n\t", " : ")),
        json.dumps(reordered(pattern)),
    ]
    assume(max(len(text.encode()) for text in spellings) <= FILTER_MAX_BYTES)
    plain = evaluate(read(json.dumps(pattern)), event)
    assert [evaluate(read(text), event) for text in spellings] == [plain] * len(spellings)


@given(st.data())
def test_whatever_is_refused_has_a_place_in_the_text(data: st.DataObject) -> None:
    """JSON of about the right shape, damaged, is read, or refused with a place in the text; nothing else."""
    words = st.sampled_from(
        ("$or", "prefix", "suffix", "wildcard", "anything-but", "numeric", "exists", "cidr")
    )
    shapes = st.recursive(
        words | st.sampled_from((None, True, 5, "", ">", "a**", "\\", "10.0.0.0/8")),
        lambda smaller: st.lists(smaller, max_size=3) | st.dictionaries(words | names, smaller, max_size=2),
        max_leaves=8,
    )
    text = json.dumps(data.draw(shapes | patterns), indent=data.draw(st.sampled_from((None, 1))))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(("", *'{}[]":,\\u0-.eE\n'))) + text[at + 1 :]
    try:
        read(text)
    except FilterError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
