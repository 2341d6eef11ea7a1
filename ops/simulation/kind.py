"""What a kind of simulation is: how it reads its part of a file, what cases it has, and how one is run.

A simulation is a file (`simulation.py`), which names its kind. A *case* is one seed with one choice of the
swept values; it is run by itself, in whichever process, and everything it needs is in the spec and the case.
So a kind keeps no state, draws only from `Random`s that it makes of the case's seed, and reads no clock, but
for the CPU's where that is what it measures.

`read`, `sweep` and `run` are functions of a module, since cases travel to other processes by their names.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from branchline.ops.simulation.config import Section

Value: TypeAlias = int | float | str
Row: TypeAlias = dict[str, Value]
Beat: TypeAlias = Callable[[str], None]
"""Called now and then within a long case with how far it is; somebody may be waiting."""

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: its name, the type of its values, and what stands beside an axis of a plot."""

    name: str
    type: type[int] | type[float] | type[str]
    label: str


@dataclass(frozen=True, slots=True)
class Case:
    """One seed, and one value for each swept column."""

    seed: int
    swept: Row

    def describe(self) -> str:
        return ", ".join([*map(str, self.swept.values()), f"seed {self.seed}"])


@dataclass(frozen=True, slots=True)
class Result:
    """What a case gave: rows, each with the kind's columns, and what it found to be wrong."""

    rows: list[Row]
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind(Generic[Spec]):
    """One kind of simulation."""

    name: str
    read: Callable[[Section], Spec]
    """The spec: what of the file is the kind's own."""
    sweep: Callable[[Spec], list[Row]]
    """The swept values of each case, all with the columns of `swept`."""
    run: Callable[[Spec, Case, Beat], Result]
    swept: tuple[Column, ...]
    columns: tuple[Column, ...]
    """What rows have, beside the seed and the swept values, which the frame adds."""
    shown: tuple[str, ...]
    """The columns of which the last row of each case is printed."""
    verdict: str = ""
    """What is known if no case has failed; empty for kinds that only measure."""

    @property
    def table(self) -> tuple[Column, ...]:
        """All columns of the table, in order."""
        return (SEED, *self.swept, *self.columns)


SEED = Column("seed", int, "seed")
