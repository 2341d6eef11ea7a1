"""The matchers of EventBridge patterns that lay a pattern against text: `prefix`, `wildcard` and their like.

Each is a reader of what stands behind its name. A text that is empty is a prefix and a suffix of any text.
"""

from collections.abc import Callable, Collection
from typing import TypeAlias

from branchline.routing.codes import Code
from branchline.routing.expression import Expression, Matches, Path, Reading
from branchline.routing.patterns import Pattern, ending, exactly, starting
from branchline.routing.spellings.errors import clipped
from branchline.routing.spellings.json_places import JsonPath
from branchline.routing.spellings.json_text import Misfit, shown
from branchline.routing.values import JsonValue

Matcher: TypeAlias = Callable[[JsonValue, JsonPath, Path], Expression]
"""From a matcher's value, its place in the document and the attribute's path to an expression."""

_FOLDED = "equals-ignore-case"


def only_name(
    members: dict[str, JsonValue], at: JsonPath, known: Collection[str], what: str, hint: str = ""
) -> str:
    """The one name in an object that may hold one of several; the hint is for an object behind another."""
    if len(members) == 1:
        (name,) = members
        if name in known:
            return name
    names = ", ".join(known)
    if not members:
        raise Misfit(Code.FILTER_SYNTAX, f"expected {what}, found an empty object; known: {names}", at)
    for name, value in members.items():
        if name not in known:
            reason = f'"{clipped(name)}" is not {what}; known: {names}'
            if hint and isinstance(value, list | dict):
                reason += f"; {hint}"
            raise Misfit(Code.FILTER_SYNTAX, reason, (*at, name), of_name=True)
    first, second, *_ = members
    reason = f"expected one matcher in an object, found {second} after {first}"
    raise Misfit(Code.FILTER_SYNTAX, reason, (*at, second), of_name=True)


def needed_text(name: str, value: JsonValue, at: JsonPath) -> str:
    if not isinstance(value, str):
        raise Misfit(Code.FILTER_TYPE, f"{name} needs text, found {shown(value)}", at)
    return value


def _affix(name: str, made: Callable[[str], Pattern]) -> Matcher:
    def read(value: JsonValue, at: JsonPath, path: Path) -> Expression:
        if not isinstance(value, dict):
            return Matches(path, made(needed_text(name, value, at)))
        only_name(value, at, (_FOLDED,), f"what {name} takes beside text")
        return Matches(
            path, made(needed_text(_FOLDED, value[_FOLDED], (*at, _FOLDED))).fold(), Reading.FOLDED
        )

    return read


def _ignoring_case(value: JsonValue, at: JsonPath, path: Path) -> Expression:
    return Matches(path, exactly(needed_text(_FOLDED, value, at)).fold(), Reading.FOLDED)


def _wildcard(value: JsonValue, at: JsonPath, path: Path) -> Expression:
    return Matches(path, _wildcard_pattern(needed_text("wildcard", value, at), at))


def _wildcard_pattern(text: str, at: JsonPath) -> Pattern:
    pieces = [""]
    place = 0
    while place < len(text):
        symbol = text[place]
        if symbol == "*":
            if text[place + 1 : place + 2] == "*":
                reason = "two wildcards side by side mean no more than one"
                raise Misfit(Code.FILTER_SYNTAX, reason, at, within=place)
            pieces.append("")
        elif symbol == "\\":
            escaped = text[place + 1 : place + 2]
            if escaped not in ("*", "\\"):
                reason = (
                    r"in a wildcard a backslash stands only before * or a backslash; in JSON both are doubled"
                )
                raise Misfit(Code.FILTER_SYNTAX, reason, at, within=place)
            pieces[-1] += escaped
            place += 1
        else:
            pieces[-1] += symbol
        place += 1
    return Pattern.of(pieces)


TEXT_MATCHERS: dict[str, Matcher] = {
    "prefix": _affix("prefix", starting),
    "suffix": _affix("suffix", ending),
    "wildcard": _wildcard,
    _FOLDED: _ignoring_case,
}
