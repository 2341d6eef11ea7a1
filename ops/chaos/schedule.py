"""The schedule of a run: which faults, in which order, how long, drawn from the seed and nothing else."""

import random
from collections.abc import Iterator, Sequence

from branchline.ops.chaos.faults import Fault, Kind

PAUSE_S = (0.5, 3.0)
INTO_MOST = 0.9


def schedule(seed: int, kinds: Sequence[Kind]) -> Iterator[Fault]:
    """Faults without an end; each kind comes once before any comes again."""
    draw = random.Random(f"faults {seed}")
    while True:
        for kind in draw.sample(kinds, len(kinds)):
            yield Fault(
                kind.name,
                hold_s=round(draw.uniform(*kind.hold_s), 1),
                pause_s=round(draw.uniform(*PAUSE_S), 1),
                into=round(draw.uniform(0, INTO_MOST), 2),
                pick=round(draw.random(), 3),
            )
