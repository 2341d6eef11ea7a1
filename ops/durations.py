"""Durations as people write them: a number and a unit."""

import re

import click

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")


def duration_ms(text: str) -> int:
    """The milliseconds of 500ms, 90s, 30m, 1h or 7d: the type of an option."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no duration: write a whole number and ms, s, m, h or d")
    return int(found[1]) * _UNITS_MS[found[2]]
