"""Rows of spans read back to values, and what they should be, by the definitions alone."""

from collections.abc import Iterable, Mapping
from typing import Any

from branchline.kafka.jsontext import read_json
from branchline.routing.choices import count_choices, each_choice
from branchline.routing.compiled.spans import ROWS_MAX, Scanned
from branchline.routing.expression import Path
from branchline.routing.values import MISSING, JsonValue, Kind, kind

Row = tuple[tuple[int, Kind, Any], ...]
"""For each path that a row has, in the order of paths: its number, the kind, and the value of a scalar."""


def read_row(scanned: Scanned, row: int) -> Row:
    """The row's values, each from its span."""
    entries = range(scanned.first[row], scanned.first[row + 1])
    made = [(int(scanned.path[at]), *_read(scanned, at)) for at in entries]
    assert len({path for path, _, _ in made}) == len(made), "a path has two entries"
    return tuple(sorted(made, key=lambda entry: entry[0]))


def read_rows(scanned: Scanned, events: int) -> list[list[Row]]:
    """The rows of each event."""
    assert list(scanned.event) == sorted(scanned.event)
    rows: list[list[Row]] = [[] for _ in range(events)]
    for row, event in enumerate(scanned.event):
        rows[event].append(read_row(scanned, row))
    return rows


def expected_rows(paths: Iterable[Path], attributes: Mapping[str, JsonValue]) -> list[Row] | None:
    """The rows that an event should have, one for each choice; None if there are too many."""
    named = list(paths)
    if count_choices(named, attributes) > ROWS_MAX:
        return None
    return [
        tuple(
            (number, kind(value), value if kind(value) in (Kind.BOOLEAN, Kind.NUMBER, Kind.TEXT) else None)
            for number, path in enumerate(named)
            if (value := _at(path, choice)) is not MISSING
        )
        for choice in each_choice(named, attributes)
    ]


def _at(path: Path, value: Any) -> Any:
    for name in path:
        value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
    return value


def _read(scanned: Scanned, at: int) -> tuple[Kind, Any]:
    which = Kind(scanned.kind[at])
    start, end = int(scanned.start[at]), int(scanned.end[at])
    assert 0 <= start <= end <= len(scanned.text)
    data = scanned.text[start:end].tobytes()
    match which:
        case Kind.TEXT:
            return which, data.decode()
        case Kind.NUMBER:
            return which, read_json(data)
        case Kind.BOOLEAN:
            return which, data[:1] == b"t"
    assert data == b""
    return which, None
