"""JSON written in as many ways as there are: escapes, space, names that repeat, numbers of all spellings."""

from typing import Any

import strategies as our
from hypothesis import strategies as st

from branchline.routing.limits import EVENT_MAX_DEPTH, NAME_MAX_BYTES

NAMES = (
    *("a", "b", "items", "a.b", "", "größe", "kafka", "key", "timestamp", "header", "data", "id", "type"),
    *("eightbyt", "ninebytes", "sixteen bytes it", "𝄞", 'say "x"', "\\", "\n", "n" * NAME_MAX_BYTES),
)
"""Names that paths and documents share."""

SPELLED = (
    *("0", "-0", "1", "-1", "1.0", "1e2", "1E+2", "1e-2", "0.5", "-0.0", "-0e5", "9007199254740993", "1e22"),
    *("123456789012345678901234567890", "1e307", "1e308", "0e999", "1e-400", "5e-324", "2.5", "9" * 308),
    *("1" + "0" * 308, "0." + "1" * 305, "0." + "1" * 310),
)
"""Numbers that are JSON and within our limits, some at their edge."""
BAD_NUMBERS = ("1e400", "-1e309", "9" * 309, "1" * 401, "0." + "1" * 400, "1e" + "0" * 400 + "1")
NO_NUMBERS = (
    "01",
    "-",
    "1.",
    ".5",
    "+1",
    "1e",
    "1e+",
    "NaN",
    "Infinity",
    "-Infinity",
    "0x1",
    "--1",
    "tru",
    "nulll",
)

names = st.sampled_from(NAMES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
named_paths = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple), max_size=6)
numbers = (
    st.sampled_from(SPELLED)
    | st.integers().map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
)
texts = st.sampled_from(our.TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
spaces = st.sampled_from(("", "", "", " ", "\n\t", "\r  "))


class Number(str):
    """A number as it is written."""

    __slots__ = ()


def _larger(smaller: st.SearchStrategy[Any], arrays: bool) -> st.SearchStrategy[Any]:
    objects = st.lists(st.tuples(names, smaller), max_size=5).map(tuple)
    return objects | st.lists(smaller, max_size=3) if arrays else objects


def trees(arrays: bool = True) -> st.SearchStrategy[Any]:
    """Documents before they are written: objects are tuples of pairs, so that names may repeat."""
    leaves = st.none() | st.booleans() | numbers.map(Number) | texts
    return st.recursive(leaves, lambda smaller: _larger(smaller, arrays), max_leaves=12)


def objects(arrays: bool = True) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(names, trees(arrays)), max_size=6).map(tuple)


@st.composite
def written(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> bytes:
    """The document as bytes, written in one of many ways."""
    space, style = draw(spaces), draw(st.integers(0, 3))
    return f"{space}{_write(draw(documents), space, style)}{space}".encode()


def _write(value: Any, space: str, style: int) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Number():
            return str(value)
        case str():
            return _quoted(value, style)
        case list():
            inside = f"{space},{space}".join(_write(each, space, style) for each in value)
            return f"[{space}{inside}{space}]"
    pairs = (f"{_quoted(name, style)}{space}:{space}{_write(each, space, style)}" for name, each in value)
    return f"{{{space}{f'{space},{space}'.join(pairs)}{space}}}"


def _quoted(text: str, style: int) -> str:
    """With no more escapes than needed, with an escape for each character, or for every other one."""
    escaped = (_escape(each, style == 1 or (style == 2 and at % 2 == 0)) for at, each in enumerate(text))
    return f'"{"".join(escaped)}"'


_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\b": "\\b",
    "\f": "\\f",
    "/": "\\/",
}


def _escape(character: str, always: bool) -> str:
    code = ord(character)
    if not always and character not in '"\\' and code >= 0x20:
        return character
    if character in _SHORT:
        return _SHORT[character]
    if code >= 0x10000:
        high, low = 0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF)
        return f"\\u{high:04x}\\u{low:04X}"
    return f"\\u{code:04x}"


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


_CODES = ("d7ff", "d800", "DBFF", "dc00", "dFFf", "e000", "0000", "ffff", "d8", "d80g")
EDGES = (
    *(f'{{"a":"\\u{one}\\u{two}"}}'.encode() for one in _CODES for two in _CODES),
    *(f'{{"\\u{code}":"a","z":"\\u{code}"}}'.encode() for code in _CODES),
    *(nested(EVENT_MAX_DEPTH - 1), nested(EVENT_MAX_DEPTH), nested(EVENT_MAX_DEPTH + 1)),
    *(f'{{"a":{number},"z":[{number}]}}'.encode() for number in (*SPELLED, *BAD_NUMBERS, *NO_NUMBERS)),
    *(
        f'{{"{"n" * length}":1}}'.encode()
        for length in (NAME_MAX_BYTES - 1, NAME_MAX_BYTES, NAME_MAX_BYTES + 1)
    ),
)
"""Documents at the edge of a limit or of the grammar."""
