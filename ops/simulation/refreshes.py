"""Kind `refreshes`: how tables inflate while subscriptions come and go, and what refreshes take back.

A file has `subscriptions`, how many there are at all times, `steps`, in each of which `changes` of them end
and as many others come, `overlap` (`overlapping.py`), `events` (100) that are published after each step, an
`[overlay]`, and `[[policies]]`: a label, a `dissemination`, and after every how many steps (`every`, 0 for
never) how many brokers (`brokers`, the first ones) are refreshed, one after the other. A case is a policy; it
has a row for each step, the first of which is 0, when all have just come.

That each subscriber got what it had asked for is checked at each step, and is the verdict.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.overlapping import Overlapping, offers
from branchline.ops.simulation.shapes import BROKERS_MAX, Shape, read_shape
from branchline.ops.simulation.telling_world import TellingWorld
from branchline.routing.dissemination.strategies import NAMES, strategy_fault

MOST = 100_000

POLICY = Column("policy", str, "who is refreshed")


@dataclass(frozen=True, slots=True)
class Policy:
    """A dissemination, and so many brokers that are refreshed after so many steps."""

    dissemination: str
    every: int
    brokers: int


@dataclass(frozen=True, slots=True)
class Spec:
    """What comes and goes, and who is refreshed meanwhile."""

    subscriptions: int
    steps: int
    changes: int
    overlap: float
    events: int
    overlay: Shape
    policies: Mapping[str, Policy]


def read(section: Section) -> Spec:
    subscriptions = section.integer("subscriptions", 1, MOST)
    return Spec(
        subscriptions,
        section.integer("steps", 1, MOST),
        section.integer("changes", 1, subscriptions),
        section.number("overlap", 0, 1),
        section.integer("events", 1, MOST, 100),
        read_shape(section.section("overlay")),
        _policies(section),
    )


def _policies(section: Section) -> Mapping[str, Policy]:
    found: dict[str, Policy] = {}
    for each in section.sections("policies"):
        label = each.text("label")
        if label in found:
            each.wrong("label", f"{label!r} is another policy's", "give each a label of its own")
        found[label] = Policy(
            each.text("dissemination"),
            each.integer("every", 0, MOST, 0),
            each.integer("brokers", 1, BROKERS_MAX, 1),
        )
        wrong = strategy_fault(found[label].dissemination)
        if wrong is not None:
            each.wrong("dissemination", wrong, f"they are made of {', '.join(NAMES)}")
        each.done()
    return found


def sweep(spec: Spec) -> list[Row]:
    return [{POLICY.name: label} for label in spec.policies]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    policy = spec.policies[str(case.swept[POLICY.name])]
    random = Random(f"{case.seed} overlay")
    topology = spec.overlay.topology(random)
    homes = [member.name for member in topology.members]
    world = TellingWorld(topology, policy.dissemination, case.seed)
    wishes = Overlapping(spec.overlap).wishes(Random(f"{case.seed} wishes"))
    asked = offers(Random(f"{case.seed} offers"))
    rows: list[Row] = []
    for step in range(spec.steps + 1):
        leaving = random.sample(sorted(world.wishes), spec.changes if step else 0)
        world.unsubscribe(leaving)
        coming = spec.changes if step else spec.subscriptions
        world.subscribe({f"s{step}-{each}": (random.choice(homes), next(wishes)) for each in range(coming)})
        refreshed = bool(step and policy.every and step % policy.every == 0)
        for name in homes[: policy.brokers] if refreshed else ():
            world.refresh(name)
            world.settle()
        _, copies, needless = world.offer(list(islice(asked, spec.events)))
        rows.append(
            {
                "step": step,
                "table": world.table_filters() / len(homes),
                "letters": world.counts["letters"],
                "filters_told": world.counts["filters_told"],
                "copies_per_event": copies / spec.events,
                "needless_per_event": needless / spec.events,
            }
        )
        beat(f"step {step} of {spec.steps}")
    return Result(rows, world.failures)


KIND = Kind(
    name="refreshes",
    read=read,
    sweep=sweep,
    run=run,
    swept=(POLICY,),
    columns=(
        Column("step", int, "steps in which subscriptions came and went"),
        Column("table", float, "filters of others in a broker's table, mean"),
        Column("letters", int, "letters so far"),
        Column("filters_told", int, "filters told so far"),
        Column("copies_per_event", float, "copies of an event, mean"),
        Column("needless_per_event", float, "needless copies of an event, mean"),
    ),
    shown=("step", "table", "letters", "filters_told", "copies_per_event", "needless_per_event"),
    verdict="whoever was refreshed, each subscriber got the events that it had asked for, and no other",
)
