"""A simulation as its file describes it: what every kind has, and the kind's own spec.

    kind = "growth"
    title = "Routing Trees and the prefixes of events"
    statement = "What was said elsewhere, and is looked at here."
    seeds = [1, 2, 3]           # or a count: 3 stands for 1, 2, 3

    [[plots]]                   # see `plots.py`
    ...

All other keys are the kind's.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from branchline.ops.simulation.config import Section, open_config
from branchline.ops.simulation.kind import Case, Kind
from branchline.ops.simulation.kinds import KINDS
from branchline.ops.simulation.plots import Plot, read_plots

SEED_MAX = 2**32
SEEDS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Simulation:
    """A file that was read: nothing in it can be wrong any more."""

    name: str
    kind: Kind[Any]
    title: str
    statement: str
    seeds: tuple[int, ...]
    spec: Any
    plots: tuple[Plot, ...]

    def cases(self) -> list[Case]:
        """All cases, in the order of their rows."""
        return [Case(seed, swept) for swept in self.kind.sweep(self.spec) for seed in self.seeds]

    def with_seeds(self, seeds: tuple[int, ...]) -> "Simulation":
        """The same with other seeds, each once, if some are given."""
        return replace(self, seeds=tuple(dict.fromkeys(seeds))) if seeds else self


def read_simulation(file: Path) -> Simulation:
    """What the file describes, or a `ConfigError` that says what is wrong with it and where."""
    section = open_config(file)
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", file.stem):
        section.wrong(
            "file name", f"not {file.stem!r}", "small letters, digits and dashes: it names the results"
        )
    kind = KINDS[section.choice("kind", list(KINDS))]
    title, statement = section.text("title"), section.text("statement")
    seeds = _seeds(section)
    plots = read_plots(section, kind.table)
    spec = kind.read(section)
    section.done()
    return Simulation(file.stem, kind, title, " ".join(statement.split()), seeds, spec, plots)


def _seeds(section: Section) -> tuple[int, ...]:
    given = section.value("seeds")
    if isinstance(given, list):
        return section.integers("seeds", 0, SEED_MAX)
    if type(given) is not int or not 1 <= given <= SEEDS_MAX:
        what = f"a count up to {SEEDS_MAX:,}, or a list of different, ascending seeds up to {SEED_MAX:,}"
        section.wrong("seeds", "missing" if given is None else f"not {given!r}", f"it must be {what}")
    return tuple(range(1, given + 1))
