"""TOML files that people write: read whole, within bounds, or told what is wrong with them."""

import tomllib
from pathlib import Path
from typing import Any

from branchline.kafka.errors import ConfigError
from branchline.routing.limits import EVENT_MAX_DEPTH

TOML_MAX_BYTES = 256 * 1024
"""A file that is larger was not written by hand, or has no end at all."""

LINE_MAX_DOTS = 200
"""Dots in a line: of a name in so many parts Python's reader takes as many steps as it has pairs of them."""


def read_toml(path: Path, *, hint: str) -> dict[str, Any]:
    """The tables of a file."""
    with path.open("rb") as file:
        data = file.read(TOML_MAX_BYTES + 1)
    if len(data) > TOML_MAX_BYTES:
        raise ConfigError(f"{path} has more than {TOML_MAX_BYTES} bytes", hint=hint)
    if any(line.count(b".") > LINE_MAX_DOTS for line in data.splitlines()):
        raise ConfigError(f"{path}: a line with more than {LINE_MAX_DOTS} dots", hint=hint)
    try:
        tables = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}", hint=hint) from None
    except ValueError as error:  # not TOML, or a number of thousands of digits
        raise ConfigError(f"{path}: not TOML as we read it: {error}", hint=hint) from None
    except RecursionError:
        raise _too_deep(path, hint) from None
    if _depth_beyond(tables, EVENT_MAX_DEPTH):
        raise _too_deep(path, hint)
    return tables


def _too_deep(path: Path, hint: str) -> ConfigError:
    return ConfigError(f"{path}: nested more than {EVENT_MAX_DEPTH} levels", hint=hint)


def _depth_beyond(tables: dict[str, Any], most: int) -> bool:
    """Whether there are more levels: dotted names make them without a bracket, and then nobody recurses."""
    level: list[Any] = [tables]
    for _ in range(most):
        below = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for inner in below for each in inner if isinstance(each, dict | list)]
        if not level:
            return False
    return True
