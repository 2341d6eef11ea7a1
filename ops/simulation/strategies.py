"""Kind `strategies`: who is told of which filter, by one dissemination or another.

A file has `strategies`, the disseminations as a router is told them, `subscriptions`, how many there are in
all at each row of a case, `overlaps` (`overlapping.py`), `batch` (50), how many of them come at a time,
`events` (200) that are published after each row's, and an `[overlay]` (`shapes.py`). A case is a strategy and
an overlap. Homes and brokers that events enter at are drawn.

Letters and filters told are of all links, requests and answers included; covering tests are those that find
out what is to be told (merging compares in ways of its own, which are not counted). That each subscriber got
what it had asked for is checked, and is the verdict. Where brokers let subscribers spare them work, all who
come volunteer before they subscribe, or learn the fixed set.
"""

from dataclasses import dataclass
from itertools import islice
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.overlapping import Overlapping, Wish, offers
from branchline.ops.simulation.shapes import Shape, read_shape
from branchline.ops.simulation.telling_world import TellingWorld
from branchline.routing.dissemination.strategies import NAMES, strategy_fault

MOST = 100_000

STRATEGY = Column("strategy", str, "dissemination")
OVERLAP = Column("overlap", float, "overlap of subscriptions")


@dataclass(frozen=True, slots=True)
class Spec:
    """What is told of, and by which strategies."""

    strategies: tuple[str, ...]
    subscriptions: tuple[int, ...]
    overlaps: tuple[float, ...]
    batch: int
    events: int
    overlay: Shape


def read(section: Section) -> Spec:
    spec = Spec(
        section.texts("strategies"),
        section.integers("subscriptions", 1, MOST),
        section.numbers("overlaps", 0, 1),
        section.integer("batch", 1, MOST, 50),
        section.integer("events", 1, MOST, 200),
        read_shape(section.section("overlay")),
    )
    for text in spec.strategies:
        wrong = strategy_fault(text)
        if wrong is not None:
            section.wrong("strategies", wrong, f"they are made of {', '.join(NAMES)}")
    return spec


def sweep(spec: Spec) -> list[Row]:
    return [
        {STRATEGY.name: strategy, OVERLAP.name: overlap}
        for overlap in spec.overlaps
        for strategy in spec.strategies
    ]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    random = Random(f"{case.seed} overlay")
    topology = spec.overlay.topology(random)
    world = TellingWorld(topology, str(case.swept[STRATEGY.name]), case.seed)
    homes = [member.name for member in topology.members]
    wishes = Overlapping(float(case.swept[OVERLAP.name])).wishes(Random(f"{case.seed} wishes"))
    asked = offers(Random(f"{case.seed} offers"))
    rows: list[Row] = []
    coming: dict[str, tuple[str, Wish]] = {}
    for place in range(max(spec.subscriptions)):
        coming[f"s{place}"] = random.choice(homes), next(wishes)
        if len(coming) == spec.batch or place + 1 in spec.subscriptions:
            world.subscribe(coming)
            coming = {}
            beat(f"{place + 1:,} subscriptions")
        if place + 1 in spec.subscriptions:
            found = world.offer(list(islice(asked, spec.events)))
            rows.append(_row(world, place + 1, spec.events, *found))
    return Result(rows, world.failures)


def _row(world: TellingWorld, subscriptions: int, events: int, given: int, copies: int, needless: int) -> Row:
    counts = world.counts
    return {
        "subscriptions": subscriptions,
        "letters": counts["letters"],
        "filters_told": counts["filters_told"],
        "covering_tests": counts["covering_tests"],
        "spared": counts["filters_claimed"] + counts["slices_offloaded"],
        "table": world.table_filters() / len(world.topology.members),
        "delivered": given,
        "copies_per_event": copies / events,
        "needless_per_event": needless / events,
    }


KIND = Kind(
    name="strategies",
    read=read,
    sweep=sweep,
    run=run,
    swept=(STRATEGY, OVERLAP),
    columns=(
        Column("subscriptions", int, "subscriptions"),
        Column("letters", int, "letters so far"),
        Column("filters_told", int, "filters told so far"),
        Column("covering_tests", int, "covering tests so far"),
        Column("spared", int, "filters placed by claims, or slices compared by subscribers, so far"),
        Column("table", float, "filters of others in a broker's table, mean"),
        Column("delivered", int, "deliveries"),
        Column("copies_per_event", float, "copies of an event, mean"),
        Column("needless_per_event", float, "needless copies of an event, mean"),
    ),
    shown=("subscriptions", "letters", "filters_told", "covering_tests", "table", "needless_per_event"),
    verdict="whatever the dissemination, each subscriber got the events that it had asked for, and no other",
)
