"""Running commands that take filters in this process, and filters for them in every spelling."""

import json
from typing import Any

from click.testing import CliRunner, Result

from branchline.ops.cli import main
from branchline.routing.limits import FILTER_MAX_BYTES

IN_ALL_SPELLINGS = {
    "sql": "type = 'flight'",
    "cloudevents": '{"exact": {"type": "flight"}}',
    "cesql": "UPPER(type) = 'FLIGHT'",
    "eventbridge": '{"type": ["flight"]}',
}

REFUSED = [
    ("price <\n  AND a = 1", "filter-syntax", 2, 3, "sql"),
    ('{\n  "type": [\n    "a", {"prefx": "b"}\n  ]\n}', "filter-syntax", 3, 11, "eventbridge"),
    ('[\n  {"exact": {"type": "a"}},\n  {"not": [1]}]', "filter-type", 3, 11, "cloudevents"),
    ('{"type":\n\t["a"', "filter-syntax", 2, 6, "eventbridge"),
    ("a = 1 AND a = 2", "filter-unsatisfiable", 1, 1, "sql"),
    ("a" * (FILTER_MAX_BYTES + 1), "filter-too-long", 1, 1, "sql"),
]
"""Texts, and the code, line and column with which each is refused in the spelling that is guessed."""


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    result = CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)
    assert "Traceback" not in result.output
    return result


def answer(*arguments: str, stdin: str | bytes = "") -> Any:
    """The one JSON object that the command prints."""
    return json.loads(run(*arguments, "--json", stdin=stdin).stdout)
