"""What a run has to tell: the schedule as it went, and the verdict; for people, as JSON, as a row."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from branchline.ops.chaos.faults import Fault
from branchline.ops.output import table
from branchline.routing.history import SHOWN, Entry, Verdict

CLEAN, FINDINGS, VOID = 0, 1, 2
"""The exit codes."""

COLUMNS = (
    *("seed", "minutes", "faults", "in a batch", "events", "deliveries", "owed", "repeats"),
    *("lost", "misrouted", "duplicated", "out of order", "stuck", "verdict"),
)


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault as it happened."""

    fault: Fault
    at_s: float
    """Since the feed began."""
    batch: int | None
    """The batch that was in progress when it struck and not over when it had; None if none was."""
    recovered_s: float | None
    """From the end of the fault to the next batch done; None if there was none by the deadline."""
    note: str = ""

    def fields(self) -> dict[str, Any]:
        """As JSON has it."""
        more = {"at_s": round(self.at_s, 1), "batch": self.batch, "in_progress": self.batch is not None}
        return {**asdict(self.fault), **more, "recovered_s": self.recovered_s, "note": self.note}


@dataclass(frozen=True, slots=True)
class Report:
    """A run."""

    seed: int
    minutes: float
    nodes: int
    delivery: str
    again: str
    """The command that runs it once more."""
    verdict: Verdict
    struck: Sequence[Struck]
    repeats: int
    """Records that were there more than once; only exactly-once forbids that."""
    restarts: Sequence[str] = ()
    """Jobs that ended by themselves and were started again, and what they said."""
    wrong: Sequence[str] = ()
    """What should not be, beside what the checker finds."""
    dead_letters: dict[str, int] = field(default_factory=dict)
    """By code."""
    history: Sequence[Entry] = field(default=(), repr=False)
    """What the verdict is of."""

    @property
    def hits(self) -> int:
        """Faults that hit a batch in progress."""
        return sum(each.batch is not None for each in self.struck)

    @property
    def exit_code(self) -> int:
        if not self.verdict.clean or self.wrong:
            return FINDINGS
        return VOID if not self.struck or 2 * self.hits < len(self.struck) else CLEAN

    @property
    def outcome(self) -> str:
        return {CLEAN: "clean", FINDINGS: "not clean", VOID: "void"}[self.exit_code]

    def counts(self) -> dict[str, int]:
        """How much of each kind is wrong."""
        found = self.verdict
        return {
            "lost": len(found.lost),
            "misrouted": len(found.misrouted),
            "duplicated": len(found.duplicated),
            "out_of_order": len(found.out_of_order),
            "stuck": len(found.stuck),
        }

    def fields(self) -> dict[str, Any]:
        """As JSON has it."""
        found = self.verdict
        return {
            "seed": self.seed,
            "minutes": self.minutes,
            "nodes": self.nodes,
            "delivery": self.delivery,
            "verdict": self.outcome,
            "faults": len(self.struck),
            "in_progress": self.hits,
            "events": found.events,
            "requests": found.requests,
            "reads": found.reads,
            "owed": found.owed,
            "repeats": self.repeats,
            **self.counts(),
            "findings": [each.sentence for each in found.findings()][: 10 * SHOWN],
            "wrong": list(self.wrong),
            "restarts": list(self.restarts),
            "dead_letters": self.dead_letters,
            "schedule": [each.fields() for each in self.struck],
            "again": self.again,
        }

    def row(self) -> list[str]:
        """In the columns of `COLUMNS`."""
        found = self.verdict
        told = [f"{each:,}" for each in (found.events, found.reads, found.owed, self.repeats)]
        wrong = [str(count) for count in self.counts().values()]
        return [
            *(str(self.seed), f"{self.minutes:g}", str(len(self.struck)), str(self.hits)),
            *told,
            *wrong,
            self.outcome,
        ]

    def describe(self) -> str:
        """For people: the schedule as it went, what else happened, and the verdict."""
        rows = [_row(each) for each in self.struck]
        lines = [table(("at", "fault", "lasted", "pick", "batch hit", "recovered", ""), rows), ""]
        lines += [f"ended by itself, started again: {each}" for each in self.restarts]
        if self.dead_letters:
            told = ", ".join(f"{count} {code}" for code, count in sorted(self.dead_letters.items()))
            lines.append(f"dead letters: {told}")
        lines += [f"wrong: {each}" for each in self.wrong]
        lines.append(self.verdict.describe())
        lines.append(
            f"{len(self.struck)} faults, {self.hits} of them hit a batch in progress; {self.delivery}, "
            f"{self.repeats:,} repeats; seed {self.seed}"
        )
        void = ": fewer than half of the faults hit a batch in progress" if self.exit_code == VOID else ""
        lines.append(f"verdict: {self.outcome}{void}")
        if self.again:
            lines.append(f"once more: {self.again}")
        return "\n".join(lines)


def _row(struck: Struck) -> list[str]:
    fault = struck.fault
    recovered = "never" if struck.recovered_s is None else f"{struck.recovered_s:.1f} s"
    batch = "none" if struck.batch is None else str(struck.batch)
    what = [f"{struck.at_s:.1f} s", fault.kind, f"{fault.hold_s:.1f} s", f"{fault.pick:.2f}"]
    return [*what, batch, recovered, struck.note]


def markdown(reports: Sequence[Report]) -> str:
    """The runs as a table, a row for each."""
    rows = [COLUMNS, ["---"] * len(COLUMNS), *(report.row() for report in reports)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
