"""Between brokers: letters, copies of events and what becomes of them, as records on one Kafka of lists."""

import json

from prefix_scripts import cover
from record_nets import BROKERS, NOW_MS, TOPICS, Net, overlay

from branchline.kafka import headers as bl
from branchline.kafka.dead_letters import decode_dead_letter, retry_headers
from branchline.kafka.dispatch import Step, count, dispatch, one_by_one
from branchline.kafka.intake import read_batch
from branchline.kafka.letters import encode_letter
from branchline.kafka.messages import encode_proposal, encode_request
from branchline.kafka.record import Headers, Place, Record
from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request
from branchline.routing.limits import HOPS_MAX
from branchline.routing.overlay.letters import Letter, Propose
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix import telling
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.shard import Shard, alone

JSON_TYPE = ("content-type", b"application/json")


def net() -> Net:
    """A subscriber at each end and one in the middle."""
    made = Net(overlay(), {}, {})
    for name in BROKERS:
        request = Request(Operation.SUBSCRIBE, f"at-{name}", "default", name, filter="a = 1")
        made.write(TOPICS.control, encode_request(request))
    made.run()
    return made


def test_subscriptions_and_events_travel_as_records() -> None:
    """In force everywhere by letters; an event goes to all homes by copies, whole and with its origin."""
    made = net()
    acks = [json.loads(record.value or b"") for record in made.topics[TOPICS.acks]]
    in_force = [ack for ack in acks if ack["status"] == "in-force"]
    assert sorted(ack["home"] for ack in in_force) == sorted(BROKERS)
    assert all("place" not in ack for ack in in_force), "they wait for reports, which come later"
    assert {record.key for record in made.topics[TOPICS.link("virginia")]} == {b"dublin", b"oregon"}

    headers: Headers = (("trace", b"1"), ("null", None), ("trace", b"2"))
    entered = made.write(TOPICS.entry("dublin"), b'{"a": 1}', b"k", (("bl-prefix", b"forged"), *headers))
    made.run()
    for name in BROKERS:
        (delivered,) = made.topics[TOPICS.out(f"at-{name}")]
        assert (delivered.key, delivered.value, delivered.headers) == (b"k", b'{"a": 1}', headers)
    scopes = []
    for name, hops in (("virginia", 1), ("oregon", 2)):
        (copy,) = made.topics[TOPICS.broker(name)]
        assert (copy.key, copy.value, bl.foreign(copy.headers)) == (b"k", b'{"a": 1}', headers)
        assert bl.text(copy.headers, bl.ORIGIN) == str(entered.place)
        (value,) = bl.values(copy.headers, bl.PREFIX)
        header = decode(value or b"")
        assert header is not None and (header.hops, header.topology) == (hops, 1)
        scopes.append(header.scope)
    assert scopes == [0b110, 0b100]
    assert TOPICS.broker("dublin") not in made.topics and TOPICS.dead_letters not in made.topics


def test_the_topics_of_a_new_neighbour_are_made_first() -> None:
    """Its job may not run yet; what it is told, and sent, waits for it."""
    topology = founded(["dublin"]).joined("virginia", {"dublin": 1})
    record = Record(Place(TOPICS.control, 0, 0, NOW_MS), None, encode_proposal(Propose(topology, "t1")))
    intake = read_batch(TOPICS, [record], [])
    outputs = Shard(alone("dublin"), 0).handle(NOW_MS, [], intake.control, intake.events())
    dispatches = list(one_by_one(TOPICS, dispatch(TOPICS, "dublin", True, NOW_MS, intake, outputs)))
    made = [item.topic for item in dispatches if item.step is Step.CREATE]
    assert made == [TOPICS.link("virginia"), TOPICS.broker("virginia")]
    assert [item.topic for item in dispatches[2:]] == [
        TOPICS.filters,
        *[TOPICS.link("virginia")] * len(outputs.letters),
        TOPICS.acks,
    ]
    assert dispatches[2].key == b"topology"
    fields = json.loads(dispatches[-1].value or b"")
    assert (fields["status"], fields["request"], "subscriber" in fields) == ("accepted", "t1", False)


def test_what_could_not_go_on_is_owed_to_its_scope_and_retried_for_it() -> None:
    """A copy of too many hops is a dead letter for its scope; retried, it reaches just these homes."""
    made = net()
    origin = Place(TOPICS.entry("dublin"), 0, 7, NOW_MS)
    header = encode(Header(UNMATCHED, 0b101, 1, HOPS_MAX + 1))
    headers = (("trace", b"1"), (bl.ORIGIN, str(origin).encode()), (bl.PREFIX, header))
    made.write(TOPICS.broker("virginia"), b'{"a": 1}', b"k", headers)
    made.run()
    (record,) = made.topics[TOPICS.dead_letters]
    letter = decode_dead_letter(record)
    assert (letter.code, letter.owed, letter.place) == (Code.HOPS_TOO_MANY, "scope:5", origin)
    assert letter.retryable
    made.write(TOPICS.broker("virginia"), letter.record.value, letter.record.key, retry_headers(letter))
    made.run()
    assert {name: len(made.topics.get(TOPICS.out(f"at-{name}"), ())) for name in BROKERS} == {
        "dublin": 1,
        "virginia": 0,
        "oregon": 1,
    }
    assert len(made.topics[TOPICS.dead_letters]) == 1


def test_a_copy_that_nobody_looks_into_is_not_read() -> None:
    """What passes on is not decoded by the intake; if somebody must look and cannot, its scope is owed it."""
    made = net()
    origin = ((bl.ORIGIN, b"a.b.in.elsewhere:0:3:5"),)
    for value in (b'{"a": 1}', b"{"):
        headers = (JSON_TYPE, *origin, (bl.PREFIX, encode(Header(UNMATCHED, 0b100, 1, 1))))
        made.write(TOPICS.broker("virginia"), value, b"k", headers)
    intake = read_batch(TOPICS, [], made.topics[TOPICS.broker("virginia")])
    assert (len(intake.arrivals), intake.bad_events) == (2, [])
    made.run()
    (record,) = made.topics[TOPICS.dead_letters]
    letter = decode_dead_letter(record)
    assert (letter.code, letter.owed, letter.record.value) == (Code.JSON_INVALID, "scope:4", b"{")
    (delivered,) = made.topics[TOPICS.out("at-oregon")]
    assert delivered.value == b'{"a": 1}'


def test_updates_of_the_tree_are_read_and_what_is_none_owes_nothing() -> None:
    """An update reaches the shard with its batch; other bytes become a dead letter, and no ack."""
    optimizer = Optimizer(1, Settings(threshold=0.0, limit_ms=0))
    optimizer.subscribe(cover("price < 100"))
    updates = optimizer.updates(NOW_MS)
    made = net()
    records = [made.write(TOPICS.rt_updates, telling.encode(update)) for update in updates]
    bad = [
        made.write(TOPICS.rt_updates, value) for value in (None, b"", b"{}", telling.encode(updates[0])[:-1])
    ]
    intake = read_batch(TOPICS, [*records, *bad], [])
    assert intake.updates == updates and [record for record, _ in intake.bad_told] == bad
    shard = made.shards["dublin"]
    outputs = shard.handle(NOW_MS, intake.updates, intake.control, intake.events())
    assert outputs.changed is not None and outputs.changed.told == tuple(updates)
    done = list(one_by_one(TOPICS, dispatch(TOPICS, "dublin", True, NOW_MS, intake, outputs)))
    assert {item.topic for item in done} == {TOPICS.dead_letters}
    letters = [decode_dead_letter(Record(bad[0].place, item.key, item.value, item.headers)) for item in done]
    assert {(letter.code, letter.owed) for letter in letters} == {(Code.CONTROL_INVALID, "nothing")}
    assert len(letters) == len(bad)
    assert count(intake, outputs, leads=True)["requests"] == 0


def test_a_copy_of_a_newer_topology_is_held_and_then_released() -> None:
    """It waits in the state until the topology is there, and then goes its way as it came."""
    made = net()
    topology = founded(BROKERS, [link("dublin", "virginia"), link("oregon", "virginia")])
    origin = ((bl.ORIGIN, b"a.b.in.elsewhere:0:3:5"),)
    headers = (("trace", b"1"), *origin, (bl.PREFIX, encode(Header(UNMATCHED, 0b111, 2, 1))))
    made.write(TOPICS.broker("virginia"), b'{"a": 1}', b"k", headers)
    made.run()
    assert all(TOPICS.out(f"at-{name}") not in made.topics for name in BROKERS)
    newer = topology.linked("dublin", "oregon", 9)
    ((key, value),) = encode_letter(Letter("virginia", "dublin", newer))
    made.write(TOPICS.link("virginia"), value, key)
    made.run()
    for name in BROKERS:
        (delivered,) = made.topics[TOPICS.out(f"at-{name}")]
        assert (delivered.key, delivered.value, delivered.headers) == (b"k", b'{"a": 1}', (("trace", b"1"),))
    assert [record.key for record in made.topics[TOPICS.filters]].count(b"topology") == len(BROKERS)
