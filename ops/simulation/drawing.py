"""Random overlays, filters and events: small, so that much meets, and odd, so that rare cases come up.

All is drawn from the source that is given, in a fixed order, so a seed stands for what it draws. Drawing one
thing more, or earlier, changes what every seed stands for, also those that tests have chosen.
"""

from dataclasses import replace
from random import Random

from branchline.ops.simulation.setting import Faults, Setting
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import Link, founded, link
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.values import JsonValue

BROKERS_MAX = 8
NAMES = ("x", "y", "z")
"""Of attributes: few, so that filters overlap."""


def random_setting(random: Random, methods: Methods | None = None) -> Setting:
    """A small overlay of a random shape, its jobs, and what goes wrong in it."""
    names = [f"b{number}" for number in range(random.randint(1, BROKERS_MAX))]
    clusters = random.random() < 0.5
    jobs = _grouped(random, names)
    topology = founded(names, _random_links(random, names))
    if clusters:
        cluster = {name: f"c{place}" for place, job in enumerate(jobs) for name in job}
        members = tuple(member._replace(cluster=cluster[member.name]) for member in topology.members)
        topology = replace(topology, members=members)
    parts = random.choice((1, 1, 2))
    trees = Settings(
        parts=parts,
        threshold=random.choice((0.0, 0.3, 0.8)),
        limit_ms=random.choice((20, 100, None)),
        pieces=random.choice((2, 32)),
        nodes_per_filter=random.choice((1, 20)),
        spare_nodes=random.choice((2, 1_000)),
        snapshot_edges=random.choice((3, 5_000)),
        snapshot_ms=random.choice((200, None)),
    )
    drawn = Methods(parts=parts, height=random.choice((None, None, None, 0, 1, 2)))
    if methods is not None:
        drawn = replace(methods, parts=parts, height=drawn.height)
    calm = random.random() < 0.2
    faults = Faults(
        delay_ms=random.choice((0, 5, 50, 400)),
        lost=0 if calm else random.choice((0, 0.1, 0.3)),
        doubled=0 if calm else random.choice((0, 0.1, 0.5)),
        crashes=0 if calm else random.choice((0, 0.02, 0.1)),
        restarts=0 if calm else random.choice((0, 0.03)),
        updates_lost=0 if calm else random.choice((0, 0, 0.3)),
        updates_delay_ms=random.choice((5, 300)),
        exactly_once=random.random() < 0.3,
    )
    return Setting(
        topology,
        tuple(map(tuple, jobs)),
        shards=random.randint(1, 3),
        partitions=random.randint(1, 2),
        batch_ms=random.choice((1, 10, 50)),
        methods=drawn,
        trees=trees,
        faults=faults,
    )


def _grouped(random: Random, names: list[str]) -> list[list[str]]:
    jobs: list[list[str]] = []
    for name in names:
        if jobs and random.random() < 0.4:
            random.choice(jobs).append(name)
        else:
            jobs.append([name])
    return jobs


def _random_links(random: Random, names: list[str]) -> list[Link]:
    """A random tree, and sometimes a few links more."""
    made = {
        link(names[place], names[random.randrange(place)])[:2]: random.choice((1, 1, 2, 5))
        for place in range(1, len(names))
    }
    for _ in range(random.choice((0, 0, 1, 3)) if len(names) > 2 else 0):
        one, other = random.sample(names, 2)
        made.setdefault(link(one, other)[:2], random.choice((1, 2)))
    return [Link(one, other, cost) for (one, other), cost in made.items()]


def random_filter(random: Random) -> str:
    """A filter that often matches, covers others and is covered, and sometimes has a residual."""

    def term() -> str:
        name = random.choice(NAMES)
        low = random.randint(0, 8)
        return random.choice(
            (
                f"{name} = {low}",
                f"{name} > {low}",
                f"{name} <= {low}",
                f"{name} BETWEEN {low} AND {low + random.randint(0, 4)}",
                f"{name} <> {low}",
                f"t LIKE '{random.choice('ab')}%'",
                f"t LIKE '%{random.choice('abc')}%'",
                f"{name} IS NULL",
                f"x < {random.choice('yz')}",
            )
        )

    shape = random.random()
    if shape < 0.05:
        return "TRUE"
    terms = [term() for _ in range(random.choice((1, 1, 2, 2, 3)))]
    if shape < 0.2:
        return f"({' OR '.join(terms)}) AND {term()}"
    if shape < 0.25:
        return f"NOT ({' AND '.join(terms)})"
    return " AND ".join(terms)


def random_event(random: Random) -> dict[str, JsonValue]:
    """An event that some filters match."""
    event: dict[str, JsonValue] = {}
    for name in NAMES:
        chance = random.random()
        if chance < 0.8:
            event[name] = random.randint(0, 9)
        elif chance < 0.87:
            event[name] = [random.randint(0, 9), random.randint(0, 9)]
        elif chance < 0.9:
            event[name] = "text"
    if random.random() < 0.6:
        event["t"] = "".join(random.choice("abc") for _ in range(random.randint(0, 3)))
    return event
