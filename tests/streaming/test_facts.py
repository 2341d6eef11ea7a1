"""A shard's state as bytes: every kind of fact, and all that the Tree Optimizer told, comes back."""

import json

import strategies as our
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import cover
from table_filters import entries, filters_in

from branchline.kafka.arrivals import Received
from branchline.kafka.letters import encode_letter
from branchline.kafka.record import Place, Record
from branchline.routing.control import Ended, Forgotten, Identity, Operation, Request, Subscribed
from branchline.routing.dissemination.adverts import (
    AdvertAwaited,
    Gated,
    Lingering,
    Unremembered,
    Withdrawn,
)
from branchline.routing.dissemination.link_facts import (
    Answered,
    Confirmed,
    Deferred,
    Heard,
    Owed,
    Sent,
    Spared,
)
from branchline.routing.dissemination.pulling import Concluded, Pulled, Replied
from branchline.routing.dissemination.telling import Exchange, Settled, Stream, Told
from branchline.routing.filters import Filter
from branchline.routing.offloading.facts import (
    Assigned,
    Began,
    Placed,
    Queue,
    RoundOver,
    Standing,
    Table,
    Volunteered,
    Waits,
    Worked,
)
from branchline.routing.offloading.messages import Answer, Assignment, Between
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.facts import Fact, Held, Kept, Lapsed, Limited, Released, Removed, Vacant
from branchline.routing.overlay.letters import Complete, Letter, Report
from branchline.routing.overlay.pending import Awaited
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.keys import Keys
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import UNMATCHED, PartPrefix, Prefix
from branchline.routing.prefix.updates import Version
from branchline.routing.shard import EventBatch, Job, Shard, ShardState
from branchline.streaming.facts import fact_fields, fact_from_fields, pack, unpack

HOME = "dublin"
NOW_MS = 1_700_000_000_000

part = PartPrefix(Version(7, 3), ((1, 0), (2, 5), (1, 3)), (1, 9), True, False)
headers = st.builds(
    Header,
    st.sampled_from((UNMATCHED, Prefix((part,), True), Prefix((), keys=Keys((1, 7), (3,), 5)))),
    st.integers(0, 2**80),
    st.integers(0, 2**40),
    st.integers(0, 64),
)
odd_headers = st.sampled_from(((), (("\ud800", b"x"), ("", None), ("trace", b"\xff"))))
records = st.builds(Record, our.places, our.contents, our.contents, odd_headers | our.foreign_headers)
arrivals = st.builds(
    Arrival, st.builds(Received, records, our.places), st.none() | headers, st.none() | our.subscribers
)
own = our.identities((HOME,))
reports = st.builds(
    Report,
    st.just(HOME),
    st.sampled_from(our.BROKERS),
    st.tuples(st.integers(0, 9), st.integers(0, 2**64 - 1)),
    st.lists(st.tuples(own, our.numbers), max_size=3).map(tuple),
)
asking = st.lists(st.none() | our.texts, max_size=3).map(tuple)
identities = st.builds(Identity, our.legal_names, our.legal_names, our.legal_names)
request_ids = st.lists(our.texts, max_size=3).map(tuple)
times = st.none() | st.integers(0, 2**50)
marks = st.lists(st.tuples(our.legal_names, st.integers(0, 99)), max_size=2).map(tuple)
streams = st.builds(Stream, st.tuples(st.integers(0, 9), st.integers(0, 2**63)), st.integers(0, 2**50))
exchanges = st.builds(Exchange, *[entries(2).map(lambda drawn: tuple(filters_in(drawn)))] * 2)
told = st.builds(Told, streams, st.integers(0, 99), exchanges, exchanges, st.booleans(), st.booleans())
some_filters = entries(2).map(lambda drawn: tuple(filters_in(drawn)))
places = st.integers(0, 99)
pairs = st.tuples(places, places)
indices = st.lists(places, max_size=3).map(tuple)
claimed = st.lists(indices, max_size=2).map(tuple)
orders = st.lists(st.builds(Between, indices, indices), max_size=2).map(tuple)


def assignments_of(filters: tuple[Filter, ...]) -> st.SearchStrategy[Assignment]:
    """Fixed sets of these filters, linked in any way."""
    some = st.lists(st.sampled_from(range(len(filters))), max_size=2).map(tuple) if filters else st.nothing()
    order = st.tuples(*(st.builds(Between, some, some) for _ in filters))
    return st.builds(Assignment, places, st.just(filters), order)


assignments = some_filters.flatmap(assignments_of)
one_filter = some_filters.filter(bool).map(lambda several: several[0])
standing = st.builds(Standing, places, one_filter, indices)
queued = st.tuples(places, one_filter)
facts: dict[str, st.SearchStrategy[Fact]] = {
    "subscribed": st.builds(
        Subscribed,
        identities,
        our.numbers,
        our.texts,
        our.texts,
        request_ids,
        st.integers(0, 3),
        times,
        times,
        st.booleans(),
    ),
    "ended": st.builds(
        Ended,
        identities,
        our.numbers,
        st.integers(0, 2**50),
        request_ids,
        st.booleans(),
        st.integers(0, 3),
        st.booleans(),
    ),
    "forgotten": st.builds(Forgotten, identities, our.numbers),
    "number": our.numbers,
    "topology": st.just(founded(["dublin", "virginia"], [link("dublin", "virginia")]).left("virginia")),
    "awaited": st.builds(Awaited, own, our.numbers, asking, st.none() | marks, st.integers(0, 9)),
    "heard": st.builds(Heard, our.legal_names, told),
    "sent": st.builds(Sent, our.legal_names, told),
    "confirmed": st.builds(Confirmed, our.legal_names, st.builds(Settled, streams, st.integers(0, 99))),
    "owed": st.builds(Owed, our.legal_names, st.integers(0, 99), marks),
    "answered": st.builds(Answered, our.legal_names, st.integers(0, 99)),
    "pulled": st.builds(
        Pulled,
        our.legal_names,
        st.integers(0, 2**50),
        st.integers(0, 2**50),
        st.none() | our.legal_names,
        request_ids,
        st.integers(0, 99),
    ),
    "replied": st.builds(Replied, our.legal_names, our.legal_names, st.booleans()),
    "concluded": our.legal_names.map(Concluded),
    "report": reports,
    "kept": reports.map(Kept),
    "complete": st.just(Complete()),
    "lapsed": st.integers(-1, 2**50).map(Lapsed),
    "limited": st.integers(1, 10_000).map(Limited),
    "vacant": st.builds(Vacant, our.legal_names, st.integers(0, 2**50), st.booleans()),
    "removed": our.legal_names.map(Removed),
    "held": arrivals.map(Held),
    "released": st.just(Released()),
    "learned": our.learned,
    "advertised": our.advertised(identities),
    "unadvertised": our.unadvertised(identities),
    "unremembered": st.builds(Unremembered, identities, our.numbers),
    "lingering": st.builds(Lingering, our.texts, our.texts, st.integers(0, 2**50)),
    "withdrawn": st.integers(0, 2**50).map(Withdrawn),
    "advertawaited": st.builds(Awaited, own, our.numbers, asking, st.none() | marks).map(AdvertAwaited),
    "gated": st.booleans().map(Gated),
    "spared": st.builds(Spared, our.legal_names, some_filters, st.integers(0, 99)),
    "deferred": st.builds(
        Deferred, our.legal_names, st.integers(0, 99), st.lists(pairs, max_size=2).map(tuple)
    ),
    "volunteered": st.builds(Volunteered, our.legal_names, st.integers(0, 2**50), st.booleans()),
    "waits": st.builds(Waits, times),
    "began": st.builds(Began, places, places, places, request_ids, places),
    "worked": st.builds(Answer, places, places, our.legal_names, claimed, claimed, orders).map(Worked),
    "placed": st.builds(Placed, places, indices, indices),
    "roundover": st.builds(RoundOver, request_ids),
    "table": st.builds(Table, st.lists(standing, max_size=2).map(tuple), places),
    "assigned": st.builds(Assigned, indices, assignments, places),
    "queue": st.builds(Queue, st.lists(queued, max_size=2).map(tuple), places, places, places, st.booleans()),
}


def test_every_kind_of_fact_is_drawn() -> None:
    """What a broker can write down, the strategies here make."""
    kinds = {each.__name__.lower() for each in Fact.__args__}  # type: ignore[attr-defined]
    assert kinds == facts.keys()


@given(st.one_of(*facts.values()))
def test_a_fact_reads_back(fact: Fact) -> None:
    """Also by way of JSON, and with the same types: a number is no list."""
    read = fact_from_fields(json.loads(json.dumps(fact_fields(fact))))
    assert read == fact
    assert repr(read) == repr(fact), "an identity is no plain tuple"


@given(st.lists(st.tuples(st.sampled_from(our.BROKERS), st.one_of(*facts.values())), max_size=4))
def test_a_state_reads_back(drawn: list[tuple[str, Fact]]) -> None:
    """Facts in their order, each with its broker; equal states are equal bytes."""
    state = ShardState((), tuple(drawn))
    assert unpack(pack(state)) == state
    assert pack(unpack(pack(state))) == pack(state)


def test_an_empty_state_reads_back() -> None:
    """Nothing told, and no facts."""
    assert unpack(pack(ShardState())) == ShardState()


def test_what_the_optimizer_told_reads_back() -> None:
    """Updates and pieces of snapshots, beside the facts."""
    optimizer = Optimizer(1, Settings(threshold=0.0, snapshot_edges=1))
    for text in ("a < 5 AND b = 'x'", "a < 9", "b LIKE '%y%'"):
        optimizer.subscribe(cover(text))
    told = (*optimizer.updates(1), *optimizer.snapshots())
    assert len(told) > 3
    state = ShardState(told, ((HOME, Complete()),))
    assert unpack(pack(state)) == state


def test_a_held_event_survives_the_state_and_is_released_whole() -> None:
    """A shard that is built from the bytes of its state holds the event, and lets it go as it came."""
    topology = founded(["dublin", "virginia"], [link("dublin", "virginia")])
    job = Job((HOME,), topology)
    shard = Shard(job, 0)
    record = Record(Place("x.broker.dublin", 1, 2, 3), None, b'{"a": 1}', (("trace", b"\x00"),))
    content = Received(record, Place("x.in.virginia", 0, 1, 2))
    early = Arrival(content, Header(Prefix((part,)), 0b11, 2, 1))
    request = Request(Operation.SUBSCRIBE, "alice", "default", HOME, filter="a = 1", lease_ms=60_000)
    outputs = shard.handle(NOW_MS, [], [request], EventBatch([HOME], [early]))
    assert outputs.changed is not None and outputs.deliveries == []
    for state in ([outputs.changed], [shard.state()]):
        again = Shard(job, 0, [unpack(pack(each)) for each in state])
        assert again.state() == shard.state()
        newer = Letter(HOME, "virginia", topology.linked("dublin", "virginia", 2))
        later = again.handle(NOW_MS, [], [newer], EventBatch())
        assert later.released == [early]
        assert [(each.event, each.subscriber) for each in later.deliveries] == [(0, "alice")]
        assert later.changed is not None and unpack(pack(later.changed)) == later.changed
        assert list(encode_letter(newer)), "and what it was told can be told"
