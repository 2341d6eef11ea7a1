"""How commands speak: plain lines for people, one JSON object a line for machines, errors with a hint."""

import base64
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from branchline.kafka.errors import (
    AccessFailed,
    BranchlineError,
    CheckpointDiffers,
    ClusterUnreachable,
    EventMissing,
    MasterUnreachable,
    OffsetsGone,
    PublishFailed,
    RequestRefused,
    SetupError,
    TopicFailed,
    TopicMissing,
    WaitExpired,
)

EXIT_CODES: dict[type[BranchlineError], int] = {
    SetupError: 3,
    ClusterUnreachable: 4,
    MasterUnreachable: 4,
    TopicMissing: 4,
    TopicFailed: 4,
    AccessFailed: 4,
    EventMissing: 4,
    PublishFailed: 4,
    RequestRefused: 5,
    WaitExpired: 6,
    CheckpointDiffers: 7,
    OffsetsGone: 7,
}
"""0: done. 1: a check or a job failed. 2: the command line or a setting is wrong. Else as here."""


JSON_ASKED = "branchline.json"
"""In click's context: whether the command was asked for JSON, which its errors then are too."""


def exit_code(error: BranchlineError) -> int:
    """What the process says of the error to whoever started it."""
    for kind in type(error).__mro__:
        if kind in EXIT_CODES:
            return EXIT_CODES[kind]
    return 2 if error.code == "config" else 1


def say(message: str) -> None:
    """Progress for people: on standard error, so that output can be piped."""
    click.echo(message, err=True)


def emit(fields: dict[str, Any]) -> None:
    """One JSON object on a line of standard output, at once."""
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def show_error(error: BranchlineError, as_json: bool) -> None:
    """The error and what to do about it."""
    if as_json:
        place = {name: getattr(error, name, None) for name in ("line", "column")}
        fields = {"error": error.code, "message": str(error), "hint": error.hint or None, **place}
        emit({name: value for name, value in fields.items() if value is not None})
        return
    say(f"error [{error.code}]: {error}")
    if error.hint:
        say(f"hint: {error.hint}")


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows in aligned columns."""
    cells = [[str(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def readable(data: bytes | None) -> dict[str, Any]:
    """Bytes for JSON: as text if they are text, else base64 under a name that says so."""
    if data is None:
        return {"value": None}
    try:
        return {"value": data.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(data).decode()}
