"""Strict reading of a TOML file: whatever is unknown, missing or of the wrong kind is told with its place.

Each value is asked for once, with what it may be. `done` then finds the keys that nobody asked for, so that a
misspelled setting is never silently the default.
"""

import difflib
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from branchline.kafka.errors import ConfigError
from branchline.ops.toml_files import read_toml

T = TypeVar("T")


class _Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = _Required.REQUIRED
"""In place of a default: the key must be there."""


def open_config(file: Path) -> "Section":
    """The file's top level."""
    return Section(file, read_toml(file, hint="the file must be TOML, which is UTF-8"))


class Section:
    """A table of the file, and which of its keys have been asked for."""

    def __init__(self, file: Path, values: dict[str, Any], where: str = "") -> None:
        self.file = file
        self._values = values
        self._where = where
        self._asked: list[str] = []

    def text(self, key: str, default: str | _Required = REQUIRED) -> str:
        """A text that is not empty."""
        return self._take(
            key, default, "a text", lambda value: isinstance(value, str) and bool(value.strip())
        )

    def choice(self, key: str, choices: Sequence[str], default: str | _Required = REQUIRED) -> str:
        """One of a few words."""
        what = f"one of {', '.join(map(repr, choices))}"
        return self._take(key, default, what, lambda value: isinstance(value, str) and value in choices)

    def flag(self, key: str, default: bool | _Required = REQUIRED) -> bool:
        return self._take(key, default, "true or false", lambda value: isinstance(value, bool))

    def integer(self, key: str, low: int, high: int, default: int | _Required = REQUIRED) -> int:
        """A whole number between two, both included."""
        what = f"a whole number from {low:,} to {high:,}"
        return self._take(key, default, what, lambda value: _is_integer(value, low, high))

    def number(self, key: str, low: float, high: float, default: float | _Required = REQUIRED) -> float:
        """A number between two, both included."""
        what = f"a number from {low:g} to {high:g}"
        taken = self._take(
            key,
            default,
            what,
            lambda value: isinstance(value, int | float) and type(value) is not bool and low <= value <= high,
        )
        return float(taken)

    def integers(
        self, key: str, low: int, high: int, default: tuple[int, ...] | _Required = REQUIRED
    ) -> tuple[int, ...]:
        """Different whole numbers between two, at least one, in ascending order."""
        what = f"a list of different, ascending whole numbers from {low:,} to {high:,}"
        taken = self._take(
            key,
            default,
            what,
            lambda value: (
                _is_list(value, lambda each: _is_integer(each, low, high)) and sorted(set(value)) == value
            ),
        )
        return tuple(taken)

    def numbers(
        self, key: str, low: float, high: float, default: tuple[float, ...] | _Required = REQUIRED
    ) -> tuple[float, ...]:
        """Numbers between two, at least one."""
        what = f"a list of numbers from {low:g} to {high:g}"

        def valid(value: Any) -> bool:
            return isinstance(value, int | float) and type(value) is not bool and low <= value <= high

        return tuple(map(float, self._take(key, default, what, lambda value: _is_list(value, valid))))

    def texts(self, key: str, default: tuple[str, ...] | _Required = REQUIRED) -> tuple[str, ...]:
        """Different texts, at least one."""
        taken = self._take(
            key,
            default,
            "a list of different texts",
            lambda value: (
                _is_list(value, lambda each: isinstance(each, str) and bool(each))
                and len(set(value)) == len(value)
            ),
        )
        return tuple(taken)

    def section(self, key: str, optional: bool = False) -> "Section":
        """A table within; of an optional one that is not there, an empty one."""
        default: dict[str, Any] | _Required = {} if optional else REQUIRED
        taken = self._take(key, default, "a table", lambda value: isinstance(value, dict))
        return Section(self.file, taken, f"{self._where}{key}.")

    def sections(self, key: str, optional: bool = False) -> "list[Section]":
        """An array of tables within, at least one if it is there."""
        default: list[Any] | _Required = [] if optional else REQUIRED
        taken = self._take(
            key,
            default,
            f"an array of tables, each begun by [[{self._where}{key}]]",
            lambda value: _is_list(value, lambda each: isinstance(each, dict)),
        )
        return [Section(self.file, each, f"{self._where}{key}[{place}].") for place, each in enumerate(taken)]

    def value(self, key: str) -> Any:
        """Whatever stands there, None if nothing does; the caller checks it."""
        return self._take(key, None, "", lambda _: True)

    def keys(self) -> list[str]:
        """All keys that are there, for a table whose keys are data."""
        return list(self._values)

    def wrong(self, key: str, problem: str, hint: str) -> NoReturn:
        """Refuse the value of a key."""
        raise ConfigError(f"{self.file}: {self._where}{key}: {problem}", hint=hint)

    def done(self) -> None:
        """Refuse what nobody asked for."""
        for key in self._values:
            if key not in self._asked:
                near = difflib.get_close_matches(key, self._asked, 1)
                known = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(self._asked)}"
                self.wrong(key, "unknown key", known)

    def _take(self, key: str, default: T | _Required, what: str, valid: Callable[[Any], bool]) -> T:
        self._asked.append(key)
        if key not in self._values:
            if default is REQUIRED:
                self.wrong(key, "missing", f"it must be {what}")
            return default
        value: T = self._values[key]
        if not valid(value):
            self.wrong(key, f"not {value!r}", f"it must be {what}")
        return value


def _is_integer(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and type(value) is not bool and low <= value <= high


def _is_list(value: Any, valid: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(valid, value))
