"""How a configuration names one method: a name, and for some a number behind it, as in `counting(10)`."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple


class Named(NamedTuple):
    """A method as a configuration names it."""

    name: str
    number: int | None = None


def named(text: str) -> Named | None:
    """The method that the text names; None if no text of a name, with a number or not, looks like that."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return Named(name)
    digits = rest[:-1]
    if not rest.endswith(")") or not digits.isascii() or not digits.isdigit():
        return None
    return Named(name, int(digits))


def chosen_name(text: str) -> Named:
    """The method that the text names, which was checked before."""
    chosen = named(text)
    assert chosen is not None, "a configuration was checked before"
    return chosen


def unknown(what: str, text: str, known: Iterable[str]) -> str | None:
    """Why the text names no method of these; None if it does."""
    found = named(text)
    if found is not None and found.name in known:
        return None
    return f"{what} = {text!r} is not known; known are {', '.join(known)}"


def number_fault(
    what: str, text: str, numbered: Collection[str], bounds: Mapping[str, range] = MappingProxyType({})
) -> str | None:
    """Why a known name has a number that it should not have; None if it has none, or one that it may have."""
    name, number = chosen_name(text)
    if number is None:
        return None
    if name not in numbered:
        return f"{what} = {text!r}: {name} takes no number"
    usable = bounds.get(name)
    if usable is not None and number not in usable:
        return f"{what} = {text!r}: the number must be from {usable[0]} to {usable[-1]}"
    return None
