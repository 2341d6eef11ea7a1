"""Kind `reuse`: what lookup reuse saves, beside matching at every broker, by how much an event matches.

    kind = "reuse"
    subscriptions = 10_000      # of all brokers together
    events = 10
    attributes = 5              # numbers from 0 to 1; every filter asks for a range of each
    densities = [0.1, 20.0]     # per cent of the subscriptions that match an event, on the average
    matchings = ["counting"]
    forwardings = ["rematch", "always-reuse", "partial-reuse(80)", "always-reuse, undivided"]

    [overlay]                   # see `shapes.py`
    shape = "balanced-tree"
    brokers = 100

A case is a seed, a matching and a density; a row is a forwarding, all with the same subscriptions
and events. A range has the length at which an event meets as many as the density says, and lies anywhere
within 0 to 1. How the network is made is told in `reuse_model.py`. Times are measured: they are the only
figures that are others every time.

What is delivered must be what the ranges say, to nobody else: that is the verdict.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.reuse_model import ELSEWHERE, ENTRY, FORWARDING, HERE, UNDIVIDED, Model, Run
from branchline.ops.simulation.shapes import Shape, read_shape
from branchline.routing.control import Identity
from branchline.routing.methods.naming import Methods, misfit

SUBSCRIPTIONS_MAX = 1_000_000
EVENTS_MAX = 100_000
ATTRIBUTES_MAX = 20

MATCHING = Column("matching", str, "matching")
DENSITY = Column("density", float, "matching density, %")

COLUMNS = (
    Column("forwarding", str, "forwarding"),
    Column("events", int, "events"),
    Column("matching_mean", float, "subscriptions that match an event, mean"),
    Column("visits_mean", float, "brokers that an event comes to, mean"),
    Column("ms_mean", float, "CPU ms an event, all brokers"),
    Column("slower_percent", float, "% slower than the best"),
    Column("saved_percent", float, "% saved of matching everywhere"),
    Column("entry_ms", float, "ms: match where it enters"),
    Column("elsewhere_ms", float, "ms: later matches for neighbours"),
    Column("here_ms", float, "ms: later matches for subscriptions here"),
    Column("keys_ms", float, "ms: keys, and all else"),
    Column("matches_mean", float, "brokers that look at the content, mean"),
    Column("keys_mean", float, "keys of a copy, mean"),
    Column("keys_max", int, "keys of a copy, maximum"),
    Column("key_bytes_mean", float, "bytes of keys on all links, an event"),
    Column("complete_share", float, "share of lists that are complete"),
    Column("cut_share", float, "share of lists too long for a header"),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """What is subscribed to and published, and how it is forwarded."""

    shape: Shape
    subscriptions: int
    events: int
    attributes: int
    densities: tuple[float, ...]
    matchings: tuple[str, ...]
    forwardings: tuple[str, ...]


def read(section: Section) -> Spec:
    matchings, forwardings = section.texts("matchings"), section.texts("forwardings")
    for forwarding in forwardings:
        if forwarding != UNDIVIDED and not forwarding.startswith(
            ("rematch", "always-reuse", "partial-reuse")
        ):
            section.wrong(
                "forwardings", f"{forwarding!r} is not measured here", "name lookup reuse or rematch"
            )
        for matching in matchings:
            name = "always-reuse" if forwarding == UNDIVIDED else forwarding
            wrong = misfit(Methods(name, matching))
            if wrong is not None:
                section.wrong("forwardings", wrong, "name methods that go together")
    return Spec(
        shape=read_shape(section.section("overlay")),
        subscriptions=section.integer("subscriptions", 1, SUBSCRIPTIONS_MAX),
        events=section.integer("events", 1, EVENTS_MAX),
        attributes=section.integer("attributes", 1, ATTRIBUTES_MAX),
        densities=section.numbers("densities", 0.001, 100),
        matchings=matchings,
        forwardings=forwardings,
    )


def sweep(spec: Spec) -> list[Row]:
    return [
        {MATCHING.name: matching, DENSITY.name: density}
        for matching in spec.matchings
        for density in spec.densities
    ]


@dataclass(frozen=True, slots=True)
class Box:
    """What a subscription asks for: a range of each attribute."""

    lows: tuple[float, ...]
    length: float

    def text(self) -> str:
        """The filter."""
        ranges = (
            f"a{place} BETWEEN {low!r} AND {low + self.length!r}" for place, low in enumerate(self.lows)
        )
        return " AND ".join(ranges)

    def has(self, event: Mapping[str, float]) -> bool:
        return all(low <= event[f"a{place}"] <= low + self.length for place, low in enumerate(self.lows))


def drawn_boxes(spec: Spec, density: float, homes: list[str], random: Random) -> dict[Identity, Box]:
    """Subscriptions, as many at each home."""
    length = (density / 100) ** (1 / spec.attributes)
    return {
        Identity(homes[number % len(homes)], f"s{number}", "one"): Box(
            tuple(random.random() * (1 - length) for _ in range(spec.attributes)), length
        )
        for number in range(spec.subscriptions)
    }


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    random = Random(f"reuse {case.seed}")
    topology = spec.shape.topology(random)
    homes = [member.name for member in topology.members]
    boxes = drawn_boxes(spec, float(case.swept[DENSITY.name]), homes, random)
    events = [{f"a{place}": random.random() for place in range(spec.attributes)} for _ in range(spec.events)]
    owed = [
        frozenset(identity.subscriber for identity, box in boxes.items() if box.has(event))
        for event in events
    ]
    beat("brokers hear of the subscriptions")
    texts = {identity: box.text() for identity, box in boxes.items()}
    model = Model(topology, texts, str(case.swept[MATCHING.name]), case.seed)
    rows: list[Row] = []
    failures: list[str] = []
    for forwarding in spec.forwardings:
        beat(forwarding)
        made = model.run(forwarding, events)
        wrong = sum(got != wanted for got, wanted in zip(made.delivered, owed, strict=True))
        if wrong:
            failures.append(f"{forwarding} did not deliver what {wrong} events are owed, or more")
        rows.append(_row(forwarding, len(events), sum(map(len, owed)) / len(events), made))
    best = min(float(row["ms_mean"]) for row in rows)
    never = next((float(row["ms_mean"]) for row in rows if row["forwarding"] == "rematch"), None)
    for row in rows:
        ms = float(row["ms_mean"])
        row["slower_percent"] = (ms / best - 1) * 100
        row["saved_percent"] = (1 - ms / never) * 100 if never is not None else 0.0
    return Result(rows, failures)


def _row(forwarding: str, events: int, matching: float, made: Run) -> Row:
    counts, ns = made.counts, made.watch.ns
    copies = max(counts["copies"], 1)
    matches = ns[ENTRY] + ns[ELSEWHERE] + ns[HERE]

    def ms(spent_ns: int) -> float:
        return spent_ns / 1e6 / events

    return {
        "forwarding": forwarding,
        "events": events,
        "matching_mean": matching,
        "visits_mean": counts["visits"] / events,
        "ms_mean": ms(ns[FORWARDING]),
        "slower_percent": 0.0,
        "saved_percent": 0.0,
        "entry_ms": ms(ns[ENTRY]),
        "elsewhere_ms": ms(ns[ELSEWHERE]),
        "here_ms": ms(ns[HERE]),
        "keys_ms": ms(ns[FORWARDING] - matches),
        "matches_mean": (counts["content_matches"] + counts["afresh_matches"]) / events,
        "keys_mean": counts["keys"] / copies,
        "keys_max": counts["keys_most"],
        "key_bytes_mean": counts["key_bytes"] / events,
        "complete_share": counts["complete"] / copies,
        "cut_share": counts["cut"] / copies,
    }


KIND = Kind(
    name="reuse",
    read=read,
    sweep=sweep,
    run=run,
    swept=(MATCHING, DENSITY),
    columns=COLUMNS,
    shown=("matching_mean", "forwarding", "ms_mean", "slower_percent", "saved_percent"),
    verdict="by every forwarding, each event reached those whose ranges it lies in, and nobody else",
    timed=True,
)
