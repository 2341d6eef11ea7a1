"""Numbers as options take them: finite ones."""

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A number within bounds. Click's own range takes NaN, which is neither below nor above anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number
