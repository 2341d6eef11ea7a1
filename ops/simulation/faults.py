"""Kind `faults`: random overlays, random scripts and random faults, and a history checker that finds nothing.

A file has `first`, the first seed (0); `scripts`, how many seeds; `steps`, the most steps of a script; and
`block` (100), how many scripts make one case and one row. To play one script again, set `first` to its seed
and `scripts` to 1. The frame's own `seeds` is 1 here: another one makes other scripts. `methods` are words
for methods, which scripts use in turn; without any, each script draws its own.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import cycle
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.scripts import play
from branchline.routing.methods.choosing import read_methods

FIRST = Column("first", int, "first script")
METHODS = Column("methods", str, "methods")
COUNTED = (
    ("events", "published"),
    ("visits", "visits"),
    ("letters", "letters"),
    ("crashes", "crashes"),
    ("restarts", "restarts"),
    ("doubled", "doubled"),
    ("resent", "lost_and_resent"),
    ("held", "held"),
    ("topologies", "topologies"),
    ("updates", "updates"),
    ("updates_lost", "updates_lost"),
    ("older_walks", "older_walks"),
    ("afresh_matches", "afresh_matches"),
    ("expired", "acks_expired"),
)
"""Columns, and what of a world's counts they are the sum of."""
DRAWN = "drawn"
"""The methods of scripts that draw their own."""
SCRIPTS_MAX = 1_000_000
STEPS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Spec:
    """Which scripts are played."""

    first: int
    scripts: int
    steps: int
    block: int
    methods: tuple[str, ...]


def read(section: Section) -> Spec:
    words = section.texts("methods", ())
    for word in words:
        wrong = read_methods(word)
        if isinstance(wrong, str):
            section.wrong("methods", wrong, "docs/methods.md has the methods there are")
    return Spec(
        section.integer("first", 0, 2**32, 0),
        section.integer("scripts", 1, SCRIPTS_MAX),
        section.integer("steps", 1, STEPS_MAX),
        section.integer("block", 1, SCRIPTS_MAX, 100),
        words,
    )


def sweep(spec: Spec) -> list[Row]:
    firsts = range(spec.first, spec.first + spec.scripts, spec.block)
    words = spec.methods or (DRAWN,)
    return [
        {FIRST.name: first, METHODS.name: word} for first, word in zip(firsts, cycle(words), strict=False)
    ]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    first, word = int(case.swept[FIRST.name]), str(case.swept[METHODS.name])
    methods = None if word == DRAWN else read_methods(word)
    assert not isinstance(methods, str), "the file was checked"
    last = min(first + spec.block, spec.first + spec.scripts)
    counts: Counter[str] = Counter()
    checked: Counter[str] = Counter()
    failures: list[str] = []
    for script in range(first, last):
        seed = script if case.seed == 1 else case.seed * 2**32 + script
        # Most are short: a short one that fails is easier to understand.
        random = Random(seed)
        steps = min(random.randint(1, spec.steps), random.randint(1, spec.steps))
        played = play(seed, steps, methods=methods)
        counts += played.counts
        checked += Counter(
            reads=played.verdict.reads, owed=played.verdict.owed, ordered=played.verdict.ordered, steps=steps
        )
        if not played.clean:
            failures.append(f"script {script} of {steps} steps: {played.describe()}")
        beat(f"{script - first + 1} of {last - first} scripts, {len(failures)} not clean")
    row: Row = {"scripts": last - first, "not_clean": len(failures)}
    row |= {name: checked[name] for name in ("steps", "owed", "reads", "ordered")}
    row |= {name: counts[counted] for name, counted in COUNTED}
    return Result([row], failures)


KIND = Kind(
    name="faults",
    read=read,
    sweep=sweep,
    run=run,
    swept=(FIRST, METHODS),
    columns=(
        Column("scripts", int, "scripts"),
        Column("not_clean", int, "scripts that are not clean"),
        Column("steps", int, "steps"),
        Column("owed", int, "deliveries owed"),
        Column("reads", int, "deliveries read"),
        Column("ordered", int, "deliveries checked for order"),
        *(Column(name, int, name.replace("_", " ")) for name, _ in COUNTED),
    ),
    shown=("scripts", "not_clean", "steps", "events", "owed", "reads", "crashes", "older_walks"),
    verdict="all scripts are clean: nothing lost, misrouted, duplicated, out of order or stuck",
)
