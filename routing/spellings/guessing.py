"""Which spelling a filter's text is in, where nobody says.

The first character tells JSON from the others, and of two spellings the one whose reader accepts the text.
A text that none accepts is taken for what its writer most likely meant, so that the refusal is of use.
"""

import json
import re
from collections.abc import Callable

from branchline.routing.expression import Expression
from branchline.routing.spellings import cesql, cloudevents, eventbridge, sql
from branchline.routing.spellings.errors import FilterError

_DIALECTS = frozenset({"exact", "prefix", "suffix", "all", "any", "not", "sql"})
_FIRST_NAME = re.compile(r'\{\s*"([^"\\]*)"')


def guess(text: str) -> str:
    """The spelling that the text is most likely in."""
    beginning = text.lstrip()[:1]
    if beginning not in ("{", "["):
        return "cesql" if not _reads(sql.read, text) and _reads(cesql.read, text) else "sql"
    if _reads(cloudevents.read, text):
        return "cloudevents"
    if _reads(eventbridge.read, text):
        return "eventbridge"
    return "cloudevents" if beginning == "[" or _DIALECTS.issuperset(_top_names(text)) else "eventbridge"


def _reads(read: Callable[[str], Expression], text: str) -> bool:
    try:
        read(text)
    except FilterError:
        return False
    return True


def _top_names(text: str) -> list[str]:
    """The names of the object that the text is; only the first one if it is no JSON."""
    try:
        return list(json.loads(text))
    except (ValueError, RecursionError):
        first = _FIRST_NAME.match(text.lstrip())
        return [first[1]] if first else []
