"""Plots of a simulation's table, as its file describes them.

    [[plots]]
    name = "nodes"              # part of the files' names
    title = "Nodes of the Routing Tree"
    x = "filters"               # a column
    y = ["tree_nodes"]          # columns of numbers
    lines = "population"        # a line for each of its values
    panels = "y"                # side by side: each of `y`, or each value of a column; one panel if left out
    log = ["x", "y"]            # axes with a logarithmic scale
    seeds = "each"              # a thin line for each seed, or "mean": one line, where all seeds have values

Several `y` in one panel differ in the style of their lines. A plot has no date in it and its SVG no random
ids, so that the same rows give the same bytes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import SEED, Column, Row, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_INCHES = (5.0, 3.8)
DOTS_PER_INCH = 100
STYLES = ("-", "--", ":", "-.")
"""Of the lines of several `y` in one panel."""


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn against what."""

    name: str
    title: str
    x: str
    y: tuple[str, ...]
    lines: str
    panels: str = ""
    log: tuple[str, ...] = ()
    mean: bool = False


def read_plots(section: Section, columns: Sequence[Column]) -> tuple[Plot, ...]:
    """The plots that a file asks for, of columns that there are."""
    names = [column.name for column in columns]
    numbers = [column.name for column in columns if column.type is not str]
    plots: list[Plot] = []
    for each in section.sections("plots", optional=True):
        name = each.text("name")
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
            each.wrong("name", f"not {name!r}", "small letters, digits and dashes: it is part of a file name")
        if name in [plot.name for plot in plots]:
            each.wrong("name", f"{name!r} is another plot's", "give each plot a name of its own")
        y = each.texts("y")
        for column in y:
            if column not in numbers:
                each.wrong("y", f"no column {column!r} of numbers", f"there are {', '.join(numbers)}")
        log = each.texts("log", ())
        if not {"x", "y"}.issuperset(log):
            each.wrong("log", f"not {list(log)!r}", "it must be a list of 'x', 'y' or both")
        plots.append(
            Plot(
                name,
                each.text("title"),
                each.choice("x", numbers),
                y,
                each.choice("lines", names),
                each.choice("panels", ["y", *names], ""),
                log,
                each.choice("seeds", ["each", "mean"], "each") == "mean",
            )
        )
        each.done()
    return tuple(plots)


def draw(
    simulation: str, plot: Plot, columns: Sequence[Column], rows: Sequence[Row], folder: Path
) -> list[Path]:
    """The plot as PNG and SVG; the files."""
    # Here, since importing it takes as long as many a command.
    import matplotlib
    import matplotlib.style
    from matplotlib.figure import Figure

    name = f"{simulation}-{plot.name}"
    labels = {column.name: column.label for column in columns}
    panels = _panels(plot, rows)
    width, height = PANEL_INCHES
    files = [folder / f"{name}.png", folder / f"{name}.svg"]
    with matplotlib.style.context("default"), matplotlib.rc_context({"svg.hashsalt": name}):
        figure = Figure((width * len(panels), height), dpi=DOTS_PER_INCH, layout="constrained")
        figure.suptitle(plot.title)
        # Panels of one column's values are there to be compared with each other.
        shared = plot.panels not in ("", "y")
        places: Any = figure.subplots(1, len(panels), sharex=shared, sharey=shared, squeeze=False)
        for axes, (heading, y, chosen) in zip(places[0], panels, strict=True):
            _panel(axes, plot, heading, y, chosen, labels)
        for file in files:
            # Matplotlib would write the date and its own version.
            metadata = {"Date": None, "Creator": None} if file.suffix == ".svg" else {"Software": None}
            figure.savefig(file, metadata=metadata)
    return files


def _panels(plot: Plot, rows: Sequence[Row]) -> list[tuple[str, tuple[str, ...], Sequence[Row]]]:
    """For each panel its heading, its `y` and its rows."""
    if plot.panels == "":
        return [("", plot.y, rows)]
    if plot.panels == "y":
        return [("", (y,), rows) for y in plot.y]
    return [
        (str(value), plot.y, [row for row in rows if row[plot.panels] == value])
        for value in distinct(row[plot.panels] for row in rows)
    ]


def _panel(
    axes: "Axes", plot: Plot, heading: str, y: tuple[str, ...], rows: Sequence[Row], labels: dict[str, str]
) -> None:
    import matplotlib

    values = distinct(row[plot.lines] for row in rows)
    # Numbers have an order, which shows as one; the last colour of the scale is too pale on white.
    in_order = all(isinstance(value, int | float) for value in values) and len(values) > 1
    colours = matplotlib.colormaps["viridis" if in_order else "tab10"]
    for place, value in enumerate(values):
        colour = colours(0.9 * place / (len(values) - 1)) if in_order else colours(place % 10)
        mine = [row for row in rows if row[plot.lines] == value]
        for column, style in zip(y, STYLES * len(y), strict=False):
            for number, (xs, ys) in enumerate(series(mine, plot.x, column, plot.mean)):
                label = _named(value) if column == y[0] and number == 0 else None
                axes.plot(xs, ys, style, color=colour, label=label, marker=".", markersize=4, linewidth=1)
    if len(y) > 1:
        for column, style in zip(y, STYLES * len(y), strict=False):
            axes.plot([], [], style, color="black", label=labels[column], linewidth=1)
    axes.set_title(heading)
    axes.set_xlabel(labels[plot.x])
    axes.set_ylabel(labels[y[0]] if len(y) == 1 else "")
    axes.set(**{f"{name}scale": "log" for name in plot.log})
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if name not in plot.log:
            axis.set_major_formatter("{x:,g}")
    axes.grid(alpha=0.3)
    axes.legend(title=labels[plot.lines], fontsize="small", title_fontsize="small")


def series(rows: Iterable[Row], x: str, y: str, mean: bool) -> list[tuple[list[Value], list[float]]]:
    """The points of a line: one for each seed, or one of the means where all seeds have a value."""
    by_seed: dict[Value, dict[Value, float]] = {}
    for row in rows:
        value = row[y]
        assert isinstance(value, int | float), f"{y} is a column of numbers"
        by_seed.setdefault(row[SEED.name], {})[row[x]] = value
    if mean and by_seed:
        first, *others = by_seed.values()
        common = {
            at: fmean(each[at] for each in by_seed.values()) for at in first if all(at in o for o in others)
        }
        by_seed = {0: common}
    return [(sorted(each), [each[at] for at in sorted(each)]) for each in by_seed.values()]


def distinct(values: Iterable[Value]) -> list[Value]:
    """Each value once, in the order in which they came."""
    return list(dict.fromkeys(values))


def _named(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:,}"
