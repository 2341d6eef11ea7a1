"""Readers that turn a filter's text, in one of several spellings, into one expression tree."""

from collections.abc import Callable

from branchline.routing.codes import Code, Rejection
from branchline.routing.expression import Expression
from branchline.routing.spellings import sql
from branchline.routing.spellings.errors import FilterError

SPELLINGS: dict[str, Callable[[str], Expression]] = {"sql": sql.read}


def read_filter(spelling: str, text: str) -> Expression | Rejection:
    """The expression that the text spells, or why there is none."""
    read = SPELLINGS.get(spelling)
    if read is None:
        known = ", ".join(sorted(SPELLINGS))
        return Rejection(Code.SPELLING_UNKNOWN, f"unknown spelling {spelling[:40]!a}; known: {known}")
    try:
        return read(text)
    except FilterError as error:
        return error.rejection
