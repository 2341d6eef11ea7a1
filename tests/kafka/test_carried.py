"""What a bridge relies on elsewhere, and what it says of a record, without a cluster."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import cover

from branchline.kafka import headers as bl
from branchline.kafka.intake import Intake, read_batch
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.returning import owed
from branchline.kafka.topics import Topics
from branchline.routing.prefix import telling
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.shard import EventBatch, Shard, alone

TOPICS = Topics()
ORIGIN = Place("branchline.in.dublin", 1, 42, 1_700_000_000_000)
_origin = (bl.ORIGIN, str(ORIGIN).encode())
_scope = (bl.PREFIX, encode(Header(UNMATCHED, 0b101, 3, 1)))


def updates() -> list[bytes]:
    """What a Tree Optimizer tells, version after version."""
    optimizer = Optimizer(1, Settings(threshold=0.0, limit_ms=0))
    told = []
    for number in range(4):
        optimizer.subscribe(cover(f"a = {number} AND b < {10 * number}"))
        told += [telling.encode(update) for update in optimizer.updates(number)]
    return told


def take(shard: Shard, values: list[bytes], headers: Headers = ()) -> tuple[Intake, bool]:
    """Let the shard read updates as records; whether they changed anything."""
    records = [
        Record(Place(TOPICS.rt_updates, 0, offset, 0), None, value, headers)
        for offset, value in enumerate(values)
    ]
    intake = read_batch(TOPICS, records, [])
    outputs = shard.handle(1, intake.updates, [], EventBatch())
    return intake, outputs.changed is not None


def test_the_path_of_an_update_is_nobody_elses_business() -> None:
    """With the header of a bridge or without it, an update is read alike."""
    bare, _ = take(Shard(alone("dublin"), 0), updates())
    carried, _ = take(Shard(alone("dublin"), 0), updates(), ((bl.PATH, b"virginia,singapore"),))
    assert bare == carried and len(bare.updates) == len(updates()) > 1


@given(st.data())
def test_updates_that_come_by_several_ways_do_no_harm(data: st.DataObject) -> None:
    """By two ways, each in order, however they mingle: the tree is the same; repeats change nothing."""
    told, straight, twice = updates(), Shard(alone("dublin"), 0), Shard(alone("dublin"), 0)
    take(straight, told)
    ways = data.draw(st.permutations([0] * len(told) + [1] * len(told)))
    each = [iter(told), iter(told)]
    take(twice, [next(each[way]) for way in ways])
    assert list(twice.trees.told()) == list(straight.trees.told())
    _, changed = take(twice, list(itertools.chain(told, told)))
    assert not changed


@pytest.mark.parametrize(
    ("topic", "headers", "expected"),
    [
        ("broker.virginia", (_origin, _scope), (ORIGIN, "scope:5")),
        ("broker.virginia", (_origin, (bl.ONLY, b"ann")), (ORIGIN, "subscriber:ann")),
        ("broker.virginia", (_origin, (bl.ONLY, b"ann"), _scope), (ORIGIN, "subscriber:ann")),
        ("broker.virginia", (_origin,), (ORIGIN, "event")),
        ("broker.virginia", (_origin, _scope, _scope), (ORIGIN, "event")),
        ("broker.virginia", (_origin, (bl.PREFIX, b"broken")), (ORIGIN, "event")),
        ("broker.virginia", (_scope,), (None, "scope:5")),
        ("link.virginia", (_origin, _scope), (None, "nothing")),
        ("rt-updates", (), (None, "nothing")),
    ],
)
def test_what_cannot_be_carried_is_owed_as_its_headers_say(
    topic: str, headers: Headers, expected: tuple[Place | None, str]
) -> None:
    """As whoever reads the copy would take it; a letter, or an update of the tree, owes nothing."""
    place = Place(f"branchline.{topic}", 0, 7, 1)
    origin, to_whom = expected
    assert owed(TOPICS, Record(place, None, b"{}", headers)) == (origin or place, to_whom)
