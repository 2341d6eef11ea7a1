"""What is compared, with whom, and what is aimed at."""

from dataclasses import dataclass

from benchmarks.verdicts import Verdict
from branchline.ops.matching_workloads import Shape

RULER, LUCENE = "event-ruler", "lucene-monitor"
ACCESS, TREE = "access", "tree"


@dataclass(frozen=True, slots=True)
class Case:
    """One workload at one number of filters, and who takes part."""

    workload: str
    filters: int
    ours: tuple[str, ...]
    peers: tuple[str, ...] = ()
    events: int = 20_000
    shape: Shape = Shape.FLAT
    slow_share: float = 0.0
    array_share: float = 0.0

    @property
    def name(self) -> str:
        slow = f", {self.slow_share:.0%} slow" if self.slow_share else ""
        arrays = f", {self.array_share:.0%} with arrays" if self.array_share else ""
        return f"{self.workload}, {self.shape}{slow}{arrays}, {self.filters:,} filters"


@dataclass(frozen=True, slots=True)
class Done:
    """What a case gave: microseconds an event for each who took part, and facts of ours."""

    case: Case
    us: dict[str, float]
    bytes_per_constraint: float = 0.0
    build_s: float = 0.0
    resident_mb: float = 0.0


CASES: tuple[Case, ...] = (
    Case("equalities", 10_000, (ACCESS, TREE), (RULER,)),
    Case("equalities", 100_000, (ACCESS, TREE), (RULER,)),
    Case("equalities-range", 10_000, (ACCESS, TREE), (RULER,)),
    Case("equalities-range", 100_000, (ACCESS, TREE), (RULER,)),
    Case("equalities", 10_000, (ACCESS,), (RULER,), shape=Shape.NESTED, slow_share=0.1),
    Case("equalities-range", 10_000, (ACCESS,), (RULER,), shape=Shape.NESTED, slow_share=0.1),
    Case("equalities", 10_000, (ACCESS,), (RULER,), shape=Shape.NESTED, array_share=0.1),
    Case("equalities-range", 10_000, (ACCESS,), (RULER,), shape=Shape.NESTED, array_share=0.1),
    # Few events: it takes milliseconds for each.
    Case("equalities", 10_000, (ACCESS,), (LUCENE,), events=1_000),
    Case("equalities-range", 10_000, (ACCESS,), (LUCENE,), events=1_000),
    Case("contains", 1_000, (ACCESS,), (RULER, LUCENE), events=1_000),
    Case("gaussian-1", 1_000, (ACCESS,), (RULER, LUCENE), events=1_000),
    Case("gaussian-1", 10_000, (ACCESS,)),
    Case("cw", 250_000, (ACCESS,), events=5_000),
    Case("cw", 1_000_000, (ACCESS,), events=5_000),
)

RATIOS = {  # by workload and filters, over event-ruler
    ("equalities", 10_000): 15,
    ("equalities-range", 10_000): 15,
    ("equalities", 100_000): 20,
    ("equalities-range", 100_000): 20,
}
TREE_RATIO = 10
SLOW_RATIO = 8
GROWTH = 5
"""From 10,000 to 100,000 filters."""
CW_US, CW_BYTES, CW_BUILD_S = 100, 40, 10
GAUSSIAN_US, GAUSSIAN_MB = 20, 200


def verdicts(done: Done, before: Done | None) -> list[Verdict]:
    """What the case was aimed at; `before` is the same case with a tenth of the filters, if it was run."""
    case, us = done.case, done.us
    made: list[Verdict] = []
    if RULER in us:
        odd = case.slow_share or case.array_share
        wanted = SLOW_RATIO if odd else RATIOS.get((case.workload, case.filters))
        if wanted is not None and ACCESS in us:
            made.append(Verdict(f"{case.name}: {ACCESS} over {RULER}", us[RULER] / us[ACCESS], wanted))
        if TREE in us:
            made.append(Verdict(f"{case.name}: {TREE} over {RULER}", us[RULER] / us[TREE], TREE_RATIO))
    if before is not None:
        made += [
            Verdict(f"{case.name}: growth of {name}", us[name] / before.us[name], GROWTH, at_least=False)
            for name in (ACCESS, TREE)
            if name in us and name in before.us
        ]
    if case.workload == "cw" and case.filters == 1_000_000 and ACCESS in us:
        made += [
            Verdict(f"{case.name}: a message", us[ACCESS], CW_US, at_least=False, unit="us"),
            Verdict(f"{case.name}: a constraint", done.bytes_per_constraint, CW_BYTES, False, "bytes"),
            Verdict(f"{case.name}: building", done.build_s, CW_BUILD_S, at_least=False, unit="s"),
        ]
    if case.workload == "gaussian-1" and case.filters == 10_000 and ACCESS in us:
        made += [
            Verdict(f"{case.name}: an event", us[ACCESS], GAUSSIAN_US, at_least=False, unit="us"),
            Verdict(f"{case.name}: memory", done.resident_mb, GAUSSIAN_MB, at_least=False, unit="MB"),
        ]
    return made
