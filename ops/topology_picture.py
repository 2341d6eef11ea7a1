"""A topology as a picture in a file: brokers as boxes coloured by cluster, links with their costs.

Brokers stand in columns by how many links they are away from the one in the middle, and in rows such that the
lines of the tree (`topology_text.py`) never cross; further links are dashed arcs. The same topology gives the
same bytes.
"""

from collections.abc import Collection, Mapping
from math import dist
from pathlib import Path
from typing import Any

from branchline.kafka.errors import ConfigError
from branchline.ops.topology_text import Spanning, spanning
from branchline.routing.overlay.topology import Topology

FORMATS = (".svg", ".png")
ROW_INCHES = 0.55
CHARACTER_INCHES = 0.095
GAP_INCHES = 1.1
"""Between two columns: room for a line with its cost."""

MARGIN_INCHES = 0.8


def places(topology: Topology, tree: Spanning) -> dict[str, tuple[int, float]]:
    """Column and row of each broker: who has nothing below gets a row of its own, others stand in between."""
    below = tree.children(topology)
    rows: dict[str, float] = {}
    free = 0
    pending = [(tree.root, False)]
    while pending:
        name, children_placed = pending.pop()
        if not below[name]:
            rows[name], free = float(free), free + 1
        elif children_placed:
            rows[name] = (rows[below[name][0]] + rows[below[name][-1]]) / 2
        else:
            pending += [(name, True), *((child, False) for child in reversed(below[name]))]
    return {name: (tree.depths[name], row) for name, row in rows.items()}


def draw_picture(topology: Topology, file: Path, notes: Mapping[str, str] | None = None) -> None:
    """Write the picture; `notes` stand below the names of some brokers."""
    if file.suffix not in FORMATS:
        raise ConfigError(f"{file} is neither an SVG nor a PNG file", hint="end its name in .svg or .png")
    # Here, since importing it takes as long as many a command.
    import matplotlib
    import matplotlib.style
    from matplotlib.figure import Figure

    tree = spanning(topology)
    found = places(topology, tree)
    labels = {
        member.name: f"{member.name}\n{said}" if said else member.name
        for member in topology.members
        for said in [(notes or {}).get(member.name, "leaving" if member.leaving else "")]
    }
    across = GAP_INCHES + CHARACTER_INCHES * max(max(map(len, each.split("\n"))) for each in labels.values())
    columns, rows = (max(each[part] for each in found.values()) + 1 for part in (0, 1))
    with matplotlib.style.context("default"), matplotlib.rc_context({"svg.hashsalt": "topology"}):
        size = (columns * across + MARGIN_INCHES, rows * ROW_INCHES + 2 * MARGIN_INCHES)
        figure = Figure(size, dpi=100, layout="constrained")
        axes: Any = figure.subplots()
        axes.set_axis_off()
        axes.set_title(f"topology {topology.number}")
        at = {name: (column * across, -row * ROW_INCHES) for name, (column, row) in found.items()}
        taken = list(at.values())
        for child, (parent, cost) in tree.parents.items():
            _line(axes, at[parent], at[child], cost, taken, further=False)
        for one, other, cost in tree.further:
            _line(axes, at[one], at[other], cost, taken, further=True)
        _boxes(axes, topology, at, labels)
        axes.set_xlim(-across / 2, (columns - 1) * across + across / 2)
        axes.set_ylim(-(rows - 1) * ROW_INCHES - ROW_INCHES, ROW_INCHES)
        metadata = {"Date": None, "Creator": None} if file.suffix == ".svg" else {"Software": None}
        figure.savefig(file, metadata=metadata)


Place = tuple[float, float]


def _line(axes: Any, start: Place, end: Place, cost: int, taken: list[Place], further: bool) -> None:
    bend = 0.3 if further else 0.0
    style = {"linestyle": "--", "color": "#888888"} if further else {"linestyle": "-", "color": "#333333"}
    arrow = {"arrowstyle": "-", "connectionstyle": f"arc3,rad={bend}", "shrinkA": 0, "shrinkB": 0, **style}
    axes.annotate("", xy=end, xytext=start, arrowprops=arrow, zorder=1)
    taken.append(_free_place(start, end, bend, taken))
    axes.text(
        *taken[-1],
        str(cost),
        ha="center",
        va="center",
        fontsize=8,
        color=style["color"],
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        zorder=2,
    )


def _free_place(start: Place, end: Place, bend: float, taken: Collection[Place]) -> Place:
    """The place on the line, near its middle, that is furthest from all brokers and costs."""
    (x1, y1), (x2, y2) = start, end
    # The control point of matplotlib's arc, a quadratic curve.
    x, y = (x1 + x2) / 2 + bend * (y2 - y1), (y1 + y2) / 2 - bend * (x2 - x1)
    on_line = [
        (
            (1 - t) ** 2 * x1 + 2 * t * (1 - t) * x + t**2 * x2,
            (1 - t) ** 2 * y1 + 2 * t * (1 - t) * y + t**2 * y2,
        )
        for t in ((0.5, 0.4, 0.6, 0.3, 0.7) if bend else (0.5,))
    ]
    return max(on_line, key=lambda place: min(dist(place, other) for other in taken))


def _boxes(
    axes: Any, topology: Topology, at: Mapping[str, tuple[float, float]], labels: Mapping[str, str]
) -> None:
    import matplotlib
    from matplotlib.patches import Patch

    clusters = list(dict.fromkeys(member.cluster for member in topology.members))
    scale = matplotlib.colormaps["Set3"]
    colours = {cluster: scale(place % 12) for place, cluster in enumerate(clusters)}
    for member in topology.members:
        axes.text(
            *at[member.name],
            labels[member.name],
            ha="center",
            va="center",
            fontsize=9,
            bbox={
                "boxstyle": "round,pad=0.4",
                "facecolor": colours[member.cluster],
                "edgecolor": "#333333",
                "linestyle": "--" if member.leaving else "-",
            },
            zorder=3,
        )
    if len(clusters) > 1:
        axes.legend(
            handles=[Patch(facecolor=colours[each], edgecolor="#333333", label=each) for each in clusters],
            title="cluster",
            loc="upper left",
            bbox_to_anchor=(1, 1),
            fontsize="small",
            title_fontsize="small",
        )
