"""Kind `reuse`: what lookup reuse saves, beside matching at every broker, by how much an event matches.

    kind = "reuse"
    subscriptions = 10_000      # of all brokers together
    events = [1000, 100]        # for each density
    attributes = 5              # numbers from 0 to 1; every filter asks for a range of each
    densities = [0.1, 20.0]     # per cent of the subscriptions that match an event, on the average
    matchings = ["access", "compiled counting", "k-d trees", "compiled counting, by link"]
    forwardings = ["rematch", "always-reuse", "partial-reuse(80)", "always-reuse, undivided"]

    [overlay]                   # see `shapes.py`
    shape = "balanced-tree"
    brokers = 100

A case is a seed and a density; a row is a matching and a forwarding, all with the same subscriptions and
events. A matching is one that brokers have, asked event by event, or one of `reuse_indexes.py`, which match
many events at once; `, by link` gives a broker an index for each neighbour. A range has the length at which
an event meets as many as the density says, and lies anywhere within 0 to 1. How the network is made is told
in `reuse_model.py`. Times are measured: they are the only figures that are others every time.

What is delivered must be what the ranges say, to nobody else: that is the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.reuse_charging import BY_LINK, make_kits
from branchline.ops.simulation.reuse_indexes import MAKERS
from branchline.ops.simulation.reuse_kits import ELSEWHERE, ENTRY, FORWARDING, HERE
from branchline.ops.simulation.reuse_model import UNDIVIDED, Model, Run
from branchline.ops.simulation.reuse_world import World
from branchline.ops.simulation.shapes import Shape, read_shape
from branchline.routing.methods.naming import Methods, misfit

SUBSCRIPTIONS_MAX = 1_000_000
EVENTS_MAX = 100_000
ATTRIBUTES_MAX = 20

DENSITY = Column("density", float, "matching density, %")

COLUMNS = (
    Column("matching", str, "matching"),
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
    events: tuple[int, ...]
    """For each density."""
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
            ours = matching.removesuffix(BY_LINK) in MAKERS
            wrong = misfit(Methods(name, "table" if ours else matching))
            if wrong is not None:
                section.wrong("forwardings", wrong, "name methods that go together")
    densities = section.numbers("densities", 0.001, 100)
    events = tuple(map(int, section.numbers("events", 1, EVENTS_MAX)))
    if len(events) != len(densities):
        section.wrong("events", f"{len(events)} for {len(densities)} densities", "give a number for each")
    return Spec(
        shape=read_shape(section.section("overlay")),
        subscriptions=section.integer("subscriptions", 1, SUBSCRIPTIONS_MAX),
        events=events,
        attributes=section.integer("attributes", 1, ATTRIBUTES_MAX),
        densities=densities,
        matchings=matchings,
        forwardings=forwardings,
    )


def sweep(spec: Spec) -> list[Row]:
    return [{DENSITY.name: density} for density in spec.densities]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    density = float(case.swept[DENSITY.name])
    count = spec.events[spec.densities.index(density)]
    beat("brokers hear of the subscriptions")
    world = World(spec.shape, spec.subscriptions, spec.attributes, density, count, case.seed)
    owed = [world.owed(event) for event in range(count)]
    matching = sum(map(len, owed)) / count
    rows: list[Row] = []
    failures: list[str] = []
    beat("indexes are made")
    for kit in make_kits(world, spec.matchings):
        model = Model(world, kit)
        for forwarding in spec.forwardings:
            beat(forwarding)
            made = model.run(forwarding)
            wrong = sum(got != wanted for got, wanted in zip(made.delivered, owed, strict=True))
            if wrong:
                failures.append(f"{forwarding} did not deliver what {wrong} events are owed, or more")
            rows += [_row(each, forwarding, count, matching, made) for each in kit.matchings]
    rows.sort(key=lambda row: spec.matchings.index(str(row["matching"])))
    for each in spec.matchings:
        _compare([row for row in rows if row["matching"] == each])
    return Result(rows, failures)


def _compare(rows: Sequence[Row]) -> None:
    """Say of each forwarding with one matching how much slower it is than the best."""
    best = min(float(row["ms_mean"]) for row in rows)
    never = next((float(row["ms_mean"]) for row in rows if row["forwarding"] == "rematch"), None)
    for row in rows:
        ms = float(row["ms_mean"])
        row["slower_percent"] = (ms / best - 1) * 100
        row["saved_percent"] = (1 - ms / never) * 100 if never is not None else 0.0


def _row(matching: str, forwarding: str, events: int, matching_mean: float, made: Run) -> Row:
    counts, ns = made.counts, made.watch.ns(matching)
    copies = max(counts["copies"], 1)
    matches = ns[ENTRY] + ns[ELSEWHERE] + ns[HERE]

    def ms(spent_ns: int) -> float:
        return spent_ns / 1e6 / events

    return {
        "matching": matching,
        "forwarding": forwarding,
        "events": events,
        "matching_mean": matching_mean,
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
    swept=(DENSITY,),
    columns=COLUMNS,
    shown=("matching_mean", "matching", "forwarding", "ms_mean", "slower_percent", "saved_percent"),
    verdict="by every forwarding, each event reached those whose ranges it lies in, and nobody else",
    timed=True,
)
