"""What a reader of filters raises when a text is not a filter.

    ValueError
    └── FilterError     carries a Rejection: code, reason, line and column

Lines and columns count from 1; a column counts code points, so it is where an editor puts it.
"""

from collections.abc import Set
from typing import TypeAlias

from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import FILTER_MAX_BYTES

Words: TypeAlias = tuple[tuple[frozenset[str], str], ...]
"""Groups of a grammar's terminals and the words for each, larger groups first; no word hides the group."""

_SHOWN_BEFORE = 60
_SHOWN_WIDTH = 100
_CLIPPED_TO = 40


class FilterError(ValueError):
    """A filter's text was refused, at a place in it. It is always the fault of whoever wrote the text."""

    def __init__(self, code: Code, reason: str, line: int, column: int) -> None:
        # The base class gets all the arguments so that the error survives pickling between processes.
        super().__init__(code, reason, line, column)
        self.rejection = Rejection(code, reason, line, column)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.rejection.reason} ({self.rejection.code})"

    def show(self, text: str) -> str:
        """The message, the line of the text that it speaks of, and a caret under the column."""
        return f"{self}\n{caret(text, self.line, self.column)}"


def check_text(text: str, if_empty: str = "write TRUE to get every event") -> None:
    """Refuse a text that is too long, empty, or not Unicode, before anything reads it."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        reason = "half of a surrogate pair is not a character"
        raise FilterError(Code.FILTER_SYNTAX, reason, *place(text, error.start)) from None
    if size > FILTER_MAX_BYTES:
        reason = f"the filter has {size} bytes; the limit is {FILTER_MAX_BYTES}"
        raise FilterError(Code.FILTER_TOO_LONG, reason, 1, 1)
    if not text.strip():
        raise FilterError(Code.FILTER_SYNTAX, f"the filter is empty; {if_empty}", 1, 1)


def caret(text: str, line: int, column: int) -> str:
    """A line of the text with a caret under the column.

    Of a long line only the surroundings are shown. Tabs and control characters are shown as blanks, so
    that the caret stays in place and a filter cannot write to someone's terminal.
    """
    lines = text.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    at = column - 1
    start = max(0, at - _SHOWN_BEFORE) if len(shown) > _SHOWN_WIDTH else 0
    shown = shown[start : start + _SHOWN_WIDTH]
    return f"  {_plain(shown).rstrip()}\n  {' ' * (at - start)}^"


def place(text: str, offset: int) -> tuple[int, int]:
    """The line and column of a place in the text."""
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


def clipped(text: str) -> str:
    """The beginning of a text that was found, fit to stand in a reason."""
    return _plain(text if len(text) <= _CLIPPED_TO else text[:_CLIPPED_TO] + "…")


def in_words(terminals: Set[str], words: Words) -> str:
    """What could have stood here, as a person would say it; a terminal in no group speaks for itself."""
    left = set(terminals)
    said = []
    for group, name in words:
        if group <= left:
            left -= group
            said.append(name)
    said = sorted(left) + [name for name in said if name]
    return " or ".join(filter(None, [", ".join(said[:-1]), *said[-1:]]))


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
