"""Random filters as texts in every spelling, and events that they often match.

The events are made for the filter: what its constraints name, values close to that, and arrays of both.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeAlias

import cesql_trees
import cloudevents_documents
import eventbridge_patterns
import strategies as our
from hypothesis import assume
from hypothesis import strategies as st

from branchline.routing.addresses import Address
from branchline.routing.cesql.text import write as write_cesql
from branchline.routing.cesql.tree import Constant, Identifier, Like, nodes
from branchline.routing.codes import Rejection
from branchline.routing.evaluate import evaluate
from branchline.routing.expression import (
    Between,
    CompareFields,
    Comparison,
    Constraint,
    Every,
    Expression,
    Formula,
    Has,
    In,
    InBlock,
    Matches,
    OfKind,
    Path,
    constraints,
    named_paths,
)
from branchline.routing.instants import Instant
from branchline.routing.patterns import ANY_ONE, Pattern
from branchline.routing.spellings import read_filter
from branchline.routing.spellings.sql import write as write_sql
from branchline.routing.values import JsonValue, Kind, Literal

Attributes: TypeAlias = dict[str, JsonValue]

# Reading is what takes time, and several ask for the same text in turn.
read_once: Callable[[str, str], Expression | Rejection] = lru_cache(maxsize=64)(read_filter)

OF_KINDS: dict[Kind, JsonValue] = {
    Kind.MISSING: [],
    Kind.NULL: None,
    Kind.BOOLEAN: True,
    Kind.NUMBER: 1,
    Kind.TEXT: "a",
    Kind.OBJECT: {},
}
OTHERS: tuple[JsonValue, ...] = (None, True, False, 0, 1, 2.5, "", "a", "ab", "1", "true", {}, [])


def near(literal: Literal) -> list[JsonValue]:
    """The literal as events have it, and what is next to it."""
    match literal:
        case bool():
            return [literal, not literal]
        case Instant():
            return [str(literal), our.MOMENTS[0]]
        case str():
            return [literal] * 3 + [literal + "b", "b" + literal, literal.swapcase()]
        case number:
            return [number] * 3 + [number - 1, number + 1]


def fitting(pattern: Pattern) -> list[JsonValue]:
    """Texts that fit the pattern, or nearly do, and the number that one of them reads as."""
    filled = [piece.replace(ANY_ONE, "b") for piece in pattern.pieces]
    texts: list[JsonValue] = [between.join(filled) for between in ("", "a")]
    texts += ["".join(filled[:1]), "".join(filled).swapcase(), *our.CASES[-2:]]
    try:
        return [*texts, json.loads("".join(filled), parse_constant=str)]
    except ValueError:
        return texts


def written(address: Address) -> str:
    return str((IPv4Address if address.version == 4 else IPv6Address)(address.number))


def satisfying(constraint: Constraint) -> Iterator[tuple[Path, list[JsonValue]]]:
    """The attributes that the constraint names, each with values that may satisfy it."""
    values: list[JsonValue]
    match constraint:
        case Comparison(_, _, literal) | Has(_, literal):
            values = near(literal)
        case Between(_, low, high):
            values = near(low) + near(high)
        case In(_, literals):
            values = [value for literal in literals for value in near(literal)]
        case Matches(_, pattern, _):
            values = fitting(pattern)
        case InBlock(_, block):
            values = [written(block.first), written(block.last), *our.ADDRESSES]
        case OfKind(_, kinds):
            values = [OF_KINDS[kind] for kind in sorted(kinds)] or [1]
        case Every(single):
            yield from satisfying(single)
            return
        case CompareFields():
            values = [1, 2, 1.0, "a", "b", True]
        case Formula(root):
            values = [1, 7, "a", "true"]
            for node in nodes(root):
                if isinstance(node, Constant):
                    values += near(node.value)
                elif isinstance(node, Like) and isinstance(node.term, Identifier):
                    values += fitting(node.pattern)
    for path in named_paths(constraint):
        yield path, values


@st.composite
def events_for(draw: st.DrawFn, expression: Expression, arrays: bool = True) -> Attributes:
    """Events that have what the expression names, most of the time, so that many match."""
    wanted: dict[Path, list[JsonValue]] = {}
    for constraint in constraints(expression):
        for path, values in satisfying(constraint):
            wanted.setdefault(path, []).extend(values)
    return _below(draw, wanted, arrays)


def _below(draw: st.DrawFn, wanted: dict[Path, list[JsonValue]], arrays: bool) -> Attributes:
    """An object with values at the paths; recursion ends with the longest of them."""
    made: Attributes = {}
    for name in sorted({path[0] for path in wanted}):
        values = wanted.get((name,), [])
        deeper = {path[1:]: found for path, found in wanted.items() if path[0] == name and len(path) > 1}
        # The last few of the numbers are for what is rarer; hypothesis shrinks towards the usual.
        shape = draw(st.integers(0, 9 if arrays else 6))
        if shape < 7:
            value = _value(draw, values, deeper, arrays)
            if shape < 6 and (arrays or value != []):
                made[name] = value
        else:
            count = draw(st.integers(0, 3))
            made[name] = [_value(draw, values, deeper, arrays) for _ in range(count)]
    return made


def _value(
    draw: st.DrawFn, values: list[JsonValue], deeper: dict[Path, list[JsonValue]], arrays: bool
) -> JsonValue:
    if deeper and (not values or draw(st.booleans())):
        return _below(draw, deeper, arrays)
    value = draw(st.sampled_from(values if draw(st.integers(0, 5)) else OTHERS))
    return {} if value == [] and not arrays else value


@st.composite
def readable(draw: st.DrawFn, spelling: str, texts: st.SearchStrategy[str]) -> str:
    """The texts that are within all limits."""
    text = draw(texts)
    for _ in range(4):
        if isinstance(read_once(spelling, text), Rejection):
            text = draw(texts)
    assume(not isinstance(read_once(spelling, text), Rejection))
    return text


def _with_sql(document: Any, trees: list[Any]) -> Any:
    """The document where some filters are of the dialect `sql`: those on the attribute größe."""
    if isinstance(document, list):
        return [_with_sql(one, trees) for one in document]
    ((dialect, content),) = document.items()
    if dialect in ("all", "any", "not"):
        return {dialect: _with_sql(content, trees)}
    if "größe" not in content:
        return document
    return {"sql": write_cesql(trees[len(content) % len(trees)])}


documents = st.builds(
    _with_sql, cloudevents_documents.documents, st.lists(cesql_trees.filters, min_size=2, max_size=2)
)
TEXTS: dict[str, st.SearchStrategy[str]] = {
    "sql": readable("sql", our.expressions().map(write_sql)),
    "cloudevents": readable("cloudevents", documents.map(json.dumps)),
    "cesql": readable("cesql", (cesql_trees.filters | cesql_trees.nodes).map(write_cesql)),
    "eventbridge": readable("eventbridge", eventbridge_patterns.patterns.map(json.dumps)),
}
"""Filters in each spelling."""


def expression_of(spelling: str, text: str) -> Expression:
    read = read_once(spelling, text)
    assert not isinstance(read, Rejection)
    return read


@st.composite
def likely_events(draw: st.DrawFn, expression: Expression, arrays: bool = True) -> Attributes:
    """Of up to three events made for the expression, the first that it matches: few satisfy a conjunction."""
    event: Attributes = {}
    for _ in range(3):
        event = draw(events_for(expression, arrays))
        if evaluate(expression, event) is True:
            break
    return event


@st.composite
def _pairs(draw: st.DrawFn, spelling: str, arrays: bool) -> tuple[str, Attributes]:
    text = draw(TEXTS[spelling])
    return text, draw(likely_events(expression_of(spelling, text), arrays))


def pairs(spelling: str, arrays: bool = True) -> st.SearchStrategy[tuple[str, Attributes]]:
    """A filter's text, and an event that it often matches."""
    made = _pairs(spelling, arrays)
    if spelling == "eventbridge" and arrays:
        meetings = eventbridge_patterns.meetings.map(lambda meeting: (json.dumps(meeting[0]), meeting[1]))
        return made | meetings
    return made


expressions: st.SearchStrategy[Expression] = st.one_of(
    *(
        texts.map(lambda text, spelling=spelling: expression_of(spelling, text))
        for spelling, texts in TEXTS.items()
    )
)
"""Expressions as the readers of all spellings make them."""
