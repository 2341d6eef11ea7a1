"""What methods are compared on: subscriptions at the brokers of an overlay, and events that enter there.

A *load* is drawn by name, read from a file, or taken from a namespace that runs. A file has a JSON object a
line: `{"filter": ...}` is a subscription, as `subscriptions export` writes it, and `{"event": {...}}` an
event; a `home` or `broker` may be said where there are several.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, EventMissing
from branchline.kafka.events import Event as Decoded
from branchline.kafka.events import decode_event
from branchline.kafka.fields import dump
from branchline.kafka.jsontext import read_json
from branchline.kafka.listing import read_filters
from branchline.kafka.rebuilding import bounds_of, offsets_since
from branchline.kafka.topics import Topics
from branchline.ops.chaos.reading import read_all
from branchline.ops.matching_workloads import MATCHING, Shape, draw_filters
from branchline.ops.overlay import small_overlay
from branchline.ops.paper_workloads import PAPERS
from branchline.ops.sql_texts import sql_text
from branchline.ops.subscription_files import read_lines
from branchline.ops.workloads import WORKLOADS
from branchline.routing.control import Identity
from branchline.routing.overlay.topology import Topology
from branchline.routing.values import JsonValue

OURS = [name for name in MATCHING if name != "spellings"]
NAMES = (*OURS, *(name for name in WORKLOADS if name not in OURS), *PAPERS)
"""Of the loads that are drawn."""
PER_SUBSCRIBER = 10
MAX_ATTRIBUTES = 20
"""Of what is advertised: enough to tell what it overlaps, and never too long a filter."""
LINE_HINT = (
    'each line is {"filter": "price < 100"} for a subscription or {"event": {"price": 42}} for an event'
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription."""

    identity: Identity
    spelling: str
    text: str


@dataclass(frozen=True, slots=True)
class Entering:
    """An event, and the broker where it enters."""

    at: str
    attributes: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Load:
    """What methods are compared on."""

    name: str
    topology: Topology
    subscriptions: Sequence[Wanted]
    events: Sequence[Entering]

    @property
    def brokers(self) -> list[str]:
        return [member.name for member in self.topology.members]

    def advertised(self) -> dict[str, str]:
        """Of each broker where events enter, a filter in SQL that holds for all of them."""
        entering: dict[str, list[Mapping[str, JsonValue]]] = {}
        for event in self.events:
            entering.setdefault(event.at, []).append(event.attributes)
        return {broker: _holding_for(some) for broker, some in entering.items()}

    def first(self, subscriptions: int, events: int) -> "Load":
        """A smaller one."""
        return replace(self, subscriptions=self.subscriptions[:subscriptions], events=self.events[:events])


def _holding_for(events: Sequence[Mapping[str, JsonValue]]) -> str:
    """Ranges of numbers, and texts that are always the same, of attributes that all events have."""
    terms = []
    for name in sorted(set(events[0]).intersection(*events)):
        values = [event[name] for event in events]
        quoted = name.replace('"', '""')
        numbers = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
        if len(numbers) == len(values):
            terms.append(f'"{quoted}" BETWEEN {min(numbers)!r} AND {max(numbers)!r}')
        elif isinstance(values[0], str) and all(each == values[0] for each in values):
            text = values[0].replace("'", "''")
            terms.append(f"\"{quoted}\" = '{text}'")
    return " AND ".join(terms[:MAX_ATTRIBUTES]) or "TRUE"


def drawn(name: str, brokers: int, subscriptions: int, events: int, seed: int) -> Load:
    """A load of that name; the same for the same seed."""
    if name not in NAMES:
        raise ConfigError(f"there is no workload {name!r}", hint=f"known are {', '.join(NAMES)}; or --file")
    topology, random = small_overlay(brokers, "main"), Random(f"{seed} events")
    names = [member.name for member in topology.members]
    if name in PAPERS:
        draw = Random(f"{seed} filters")
        texts = [PAPERS[name].text(draw) for _ in range(subscriptions)]
        event = PAPERS[name].event
    elif name in OURS:
        texts = [sql_text(each) for each in draw_filters(MATCHING[name], subscriptions, seed, Shape.FLAT)]
        event = MATCHING[name].event
    else:
        filters = WORKLOADS[name].filters(Random(f"{seed} filters"))
        texts = [sql_text(each) for each in islice(filters, subscriptions)]
        event = WORKLOADS[name].event
    wanted = [
        Wanted(_identity(names, number, subscriptions), "sql", text) for number, text in enumerate(texts)
    ]
    return Load(
        name, topology, wanted, [Entering(random.choice(names), event(random)) for _ in range(events)]
    )


def _identity(names: Sequence[str], number: int, count: int) -> Identity:
    """Ten subscriptions a subscriber, subscribers at all brokers in turn."""
    subscriber = number % max(count // PER_SUBSCRIBER, 1)
    return Identity(names[subscriber % len(names)], f"s{subscriber}", f"id{number}")


def read_load(file: Path, brokers: int) -> Load:
    """The load in a file; raises ConfigError."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", hint="check its path") from None
    topology = small_overlay(brokers, "main")
    names = [member.name for member in topology.members]
    filters: list[bytes] = []
    events: list[Entering] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        fields = read_json(line) if line.strip() else None
        if fields is None:
            continue
        if isinstance(fields, dict) and isinstance(event := fields.get("event"), dict):
            at = fields.get("broker", names[len(events) % len(names)])
            if at not in names:
                raise ConfigError(
                    f"{file}, line {number}: no broker {at!r}",
                    hint=f"there are {', '.join(names)}: --brokers",
                )
            events.append(Entering(at, event))
        elif isinstance(fields, dict) and "filter" in fields:
            place = len(filters)
            usual = {"subscriber": f"s{place}", "id": f"id{place}", "home": names[place % len(names)]}
            filters.append(dump({**usual, **fields}))
        else:
            raise ConfigError(f"{file}, line {number}: neither a subscription nor an event", hint=LINE_HINT)
    if not filters or not events:
        lacking = "events" if filters else "subscriptions"
        raise ConfigError(f"{file} has no {lacking}", hint=LINE_HINT)
    wanted = []
    for line_ in read_lines(str(file), b"\n".join(filters), None, None, None):
        request = line_.request
        if request.home not in names:
            raise ConfigError(
                f"{file}: no broker {request.home!r}", hint=f"there are {', '.join(names)}: --brokers"
            )
        wanted.append(
            Wanted(Identity(request.home, request.subscriber, request.id), request.spelling, request.filter)
        )
    return Load(file.stem, topology, wanted, events)


def taken(cluster: Cluster, topics: Topics, topic: str, since_ms: int, most: int) -> Load:
    """What entered by a topic lately, and the subscriptions of the namespace."""
    bounds = bounds_of(cluster, [topic])
    if topic not in bounds:
        raise EventMissing(
            f"there is no topic {topic}", hint="name one that events enter by: NAMESPACE.in.BROKER"
        )
    known = read_filters(cluster, topics)
    broker = topics.named(topic) or "main"
    topology = known.topology or small_overlay(1, "main")
    if topology.member(broker) is None:
        raise ConfigError(
            f"{topic} is no topic that events enter by",
            hint=f"name one of {', '.join(topics.entry(member.name) for member in topology.members)}",
        )
    at_ms = int(time.time() * 1000) - since_ms
    starts = {
        (name, int(number)): offset
        for name, each in offsets_since(cluster, bounds, at_ms).items()
        for number, offset in each.items()
    }
    events = list(islice(_events(cluster, topic, starts, broker), most))
    if not events:
        raise EventMissing(f"{topic} has no events since then", hint="go further back: --since 7d")
    if not known.subscriptions:
        raise EventMissing("the namespace has no subscriptions", hint="check --namespace")
    homes = {member.name for member in topology.members}
    wanted = [
        Wanted(each.identity, each.spelling, each.filter)
        for each in known.subscriptions
        if each.identity.home in homes
    ]
    return Load(topic, topology, wanted, events)


def _events(
    cluster: Cluster, topic: str, starts: Mapping[tuple[str, int], int], broker: str
) -> Iterator[Entering]:
    for record in read_all(cluster, [topic], starts):
        read = decode_event(record)
        if isinstance(read, Decoded):
            yield Entering(broker, read.attributes)


def event_bytes(attributes: Mapping[str, JsonValue]) -> int:
    """What an event takes on a link beside its header, as JSON."""
    return len(json.dumps(attributes, ensure_ascii=False, separators=(",", ":")).encode())
