"""The figures of a comparison as bars, one panel for each, as SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PANEL_INCHES = (4.2, 0.9)
BAR_INCHES = 0.28
COLUMNS = 3


def draw_bars(name: str, labels: Mapping[str, str], rows: Sequence[Mapping[str, Any]], file: Path) -> Path:
    """All figures that have numbers, side by side; the methods from top to bottom in their order."""
    # Here, since importing it takes as long as many a command.
    import matplotlib
    import matplotlib.style
    from matplotlib.figure import Figure

    words = [str(row["methods"]) for row in rows]
    figures = [each for each in labels if all(row[each] is not None for row in rows)]
    lines = -(-len(figures) // COLUMNS)
    width, height = PANEL_INCHES[0] * COLUMNS, (PANEL_INCHES[1] + BAR_INCHES * len(rows)) * lines
    with matplotlib.style.context("default"), matplotlib.rc_context({"svg.hashsalt": name}):
        figure = Figure((width, height), layout="constrained")
        figure.suptitle(name)
        places: Any = figure.subplots(lines, COLUMNS, squeeze=False)
        for place, axes in enumerate(places.flat):
            if place >= len(figures):
                axes.set_axis_off()
                continue
            axes.barh(words, [row[figures[place]] for row in rows], color="tab:blue")
            axes.invert_yaxis()
            axes.set_title(labels[figures[place]], fontsize="small")
            axes.tick_params(labelsize="small", labelleft=place % COLUMNS == 0)
            axes.xaxis.set_major_formatter("{x:,g}")
            axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))
            axes.grid(axis="x", alpha=0.3)
        # Matplotlib would write the date and its own version.
        figure.savefig(file, metadata={"Date": None, "Creator": None})
    return file
