"""Letters, topologies and the records of `filters` read back, and whatever is none is a rejection."""

import json
from base64 import b64decode, b64encode
from itertools import pairwise
from typing import Any

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st
from table_filters import entries, filters_in, sql

from branchline.kafka.advertisements import identity_of_key
from branchline.kafka.exchanges import filters_from_text, filters_text
from branchline.kafka.fields import COUNTED_MAX, FORMAT_VERSION
from branchline.kafka.letters import (
    REPORT_PIECE,
    TOPOLOGY_KEY,
    Told,
    decode_letter,
    decode_recorded,
    encode_letter,
    encode_recorded,
    told_fields,
    told_from_fields,
)
from branchline.kafka.messages import LETTER_MAX_BYTES, REQUEST_ID_MAX_CHARS, decode_change
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.dissemination import pulling, telling
from branchline.routing.dissemination.adverts import Advertised, Unremembered
from branchline.routing.dissemination.telling import Exchange, Stream
from branchline.routing.filters import conjoin
from branchline.routing.limits import FILTER_MAX_BYTES, REQUESTS_REMEMBERED
from branchline.routing.optimise.learned import Learned
from branchline.routing.overlay.letters import Body, Complete, Due, Expire, Letter, Report
from branchline.routing.overlay.topology import (
    BROKER_NUMBER_MAX,
    LINK_COST_MAX,
    TOPOLOGY_NUMBER_MAX,
    Link,
    Member,
    Topology,
    founded,
    link,
)

identities = st.builds(Identity, our.legal_names, our.legal_names, our.legal_names)
counts = st.integers(0, COUNTED_MAX)
members = st.builds(
    Member,
    our.legal_names,
    st.integers(0, BROKER_NUMBER_MAX),
    our.legal_names,
    st.integers(1, TOPOLOGY_NUMBER_MAX),
    st.booleans(),
)
topologies = st.builds(
    Topology,
    st.integers(1, TOPOLOGY_NUMBER_MAX),
    st.lists(members, max_size=4).map(tuple),
    st.lists(
        st.builds(Link, our.legal_names, our.legal_names, st.integers(1, LINK_COST_MAX)), max_size=4
    ).map(tuple),
    st.lists(st.tuples(our.legal_names, st.integers(0, BROKER_NUMBER_MAX)), max_size=3).map(tuple),
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    home = draw(our.legal_names)
    own = st.builds(Identity, st.just(home), our.legal_names, our.legal_names)
    has = draw(st.lists(st.tuples(own, our.numbers), max_size=4))
    return Report(home, draw(our.legal_names), (draw(counts), draw(st.integers(0, 2**64 - 1))), tuple(has))


streams = st.builds(Stream, st.tuples(counts, st.integers(0, 2**63)), counts)
filter_sets = entries(3).map(lambda drawn: tuple(filters_in(drawn)))
exchanges = st.builds(Exchange, filter_sets, filter_sets)
bodies: st.SearchStrategy[Body] = st.one_of(
    st.builds(telling.Told, streams, counts, exchanges, exchanges, st.booleans(), st.booleans()),
    st.builds(telling.Settled, streams, counts),
    st.builds(telling.Ask, st.tuples(counts, st.integers(0, 2**63))),
    st.builds(pulling.Pull, st.tuples(counts, st.integers(0, 2**63)), our.legal_names, counts, counts),
    st.builds(pulling.Reply, st.tuples(counts, st.integers(0, 2**63)), our.legal_names, counts),
    our.changes(identities, forgetting=False),  # type: ignore[arg-type]
    reports(),
    topologies,
    st.just(Complete()),
    st.just(Due()),
    st.builds(Expire, identities, our.numbers, counts),
    our.learned,
)
letters = st.builds(Letter, our.legal_names, our.legal_names, bodies)

ALICE = Identity("dublin", "alice", "default")
TOPOLOGY = (
    founded(["dublin", "virginia"], [link("dublin", "virginia", 3)])
    .joined("oregon", {"dublin": 2})
    .left("oregon")
    .without("oregon")
    .joined("ohio", {"dublin": 1}, "other")
    .left("ohio")
)
EVERY_BODY: list[Body] = [
    Subscribed(ALICE, Number(1, 2), "sql", "TRUE", ("r1",), 1, 60_000, 99),
    Ended(ALICE, Number(1, 2), 3, ("r1",), True, 1),
    Report("dublin", "virginia", (3, 2**63 + 1), ((ALICE, Number(1, 2)),)),
    TOPOLOGY,
    Complete(),
    Expire(ALICE, Number(1, 2), 1_700_000_000_000),
    Learned(3, 400, 100_000, bytes(range(20))),
    telling.Told(Stream((3, 2**63 + 1), 17), 4, Exchange(tuple(filters_in(sql("x > 1", "y = 'k'"))))),
    telling.Settled(Stream((3, 2**63 + 1), 17), 4),
    telling.Ask((3, 2**63 + 1)),
    pulling.Pull((3, 2**63 + 1), "dublin", 17, 5_000),
    pulling.Reply((3, 2**63 + 1), "dublin", 17),
]


def fields_of(body: Body) -> dict[str, Any]:
    ((_, value),) = encode_letter(Letter("dublin", "virginia", body))
    read: dict[str, Any] = json.loads(value)
    return read


def rejected(fields: Any) -> Rejection:
    found = decode_letter("dublin", json.dumps(fields).encode())
    assert isinstance(found, Rejection), found
    return found


@given(letters)
def test_a_letter_reads_back(letter: Letter) -> None:
    """What is written to a broker's link is what it reads there; the key is the sender."""
    ((key, value),) = encode_letter(letter)
    assert key == letter.sender.encode()
    assert decode_letter(letter.to, value) == letter


@given(bodies | st.builds(Forgotten, identities, our.numbers))
def test_what_is_told_reads_back_from_its_fields(told: Told) -> None:
    """`told_from_fields` is the inverse of `told_fields`, also by way of JSON."""
    assert told_from_fields(told_fields(told)) == told
    assert told_from_fields(json.loads(json.dumps(told_fields(told)))) == told


@given(our.advertised(identities) | our.unadvertised(identities))
def test_an_advertisement_on_filters_reads_back_under_a_key_of_its_own(recorded: Any) -> None:
    """Which no subscription has; to whoever reads subscriptions alone it is none, and it is no letter."""
    key, value = encode_recorded(recorded)
    assert decode_recorded(value) == recorded
    assert identity_of_key(key) == recorded.identity
    assert identity_of_key(str(recorded.identity).encode()) is None
    assert isinstance(decode_change(value), Rejection)
    fields = {"version": 1, "from": "virginia", **told_fields(recorded)}
    assert rejected(fields).code is Code.CONTROL_INVALID
    gone = Unremembered(recorded.identity, recorded.number)
    assert encode_recorded(gone) == (key, None)
    assert told_from_fields(told_fields(gone)) == gone


@pytest.mark.parametrize("field", ["publisher", "number", "filter", "requests", "state"])
def test_an_advertisement_without_a_field_is_none(field: str) -> None:
    """Nor one with a field of another type, or one more."""
    whole = {"version": 1, **told_fields(Advertised(ALICE, Number(1, 2), "sql", "TRUE"))}
    assert isinstance(decode_recorded(json.dumps(whole).encode()), Advertised)
    for broken in ({**whole, field: 5.5}, {**whole, "lease_ms": 5}):
        assert isinstance(decode_recorded(json.dumps(broken).encode()), Rejection)
    del whole[field]
    assert isinstance(decode_recorded(json.dumps(whole).encode()), Rejection)


@given(topologies | our.changes(identities, forgetting=False))
def test_a_record_of_filters_reads_back(recorded: Any) -> None:
    """A subscription under its identity, the topology under a key that no identity is."""
    key, value = encode_recorded(recorded)
    assert decode_recorded(value) == recorded
    if isinstance(recorded, Topology):
        assert key == TOPOLOGY_KEY and b"/" not in key
        assert isinstance(decode_change(value), Rejection), "it is no subscription"
    else:
        assert key == str(recorded.identity).encode()
        assert decode_change(value) == recorded


def test_a_forgotten_subscription_is_a_tombstone_and_no_letter() -> None:
    """On `filters` it is the key alone; to other brokers it is told by nobody."""
    forgotten = Forgotten(ALICE, Number(1, 2))
    assert encode_recorded(forgotten) == (b"dublin/alice/default", None)
    fields = {"version": 1, "from": "virginia", **told_fields(forgotten)}
    assert rejected(fields).code is Code.CONTROL_INVALID


def test_a_report_of_very_much_is_several_letters() -> None:
    """A batch may report more than a record holds; the pieces say the same together."""
    has = tuple((Identity("d" * 63, f"{n:063}", "i" * 63), Number(2**50, n)) for n in range(2_500))
    report = Report("d" * 63, "v" * 63, (2**53, 2**64 - 1), has)
    pieces = list(encode_letter(Letter("d" * 63, "v" * 63, report)))
    assert len(pieces) == -(-2_500 // REPORT_PIECE)
    read = [decode_letter("d" * 63, value) for _, value in pieces]
    bodies = [letter.body for letter in read if isinstance(letter, Letter)]
    assert all(isinstance(body, Report) for body in bodies)
    assert tuple(each for body in bodies if isinstance(body, Report) for each in body.has) == has


@pytest.mark.parametrize("filler", ["x", "\x01"])
def test_the_largest_subscription_fits_a_letter(filler: str) -> None:
    """A filter of full size and all remembered ids, escaped, is not too large to tell."""
    requests = tuple("\x01" * REQUEST_ID_MAX_CHARS for _ in range(REQUESTS_REMEMBERED))
    change = Subscribed(ALICE, Number(1, 2), "sql", filler * FILTER_MAX_BYTES, requests)
    ((_, value),) = encode_letter(Letter("virginia", "dublin", change))
    assert decode_letter("virginia", value) == Letter("virginia", "dublin", change)


def test_a_topology_of_a_thousand_brokers_fits_a_letter() -> None:
    """What an operator may write, brokers can tell each other."""
    names = [f"broker-{number}" for number in range(1_000)]
    topology = founded(names, [link(one, other) for one, other in pairwise(names)])
    ((_, value),) = encode_letter(Letter("broker-1", "broker-0", topology))
    assert decode_letter("broker-1", value) == Letter("broker-1", "broker-0", topology)


@pytest.mark.parametrize("body", EVERY_BODY, ids=lambda body: type(body).__name__)
def test_every_field_of_a_letter_is_needed_and_none_other_taken(body: Body) -> None:
    """Without a field, or with one more, it is no letter; but what may be left out may."""
    fields = fields_of(body)
    optional = {"revision", "lease_ms", "until_ms", "expired"}
    for field in fields.keys() - optional:
        code = rejected({name: value for name, value in fields.items() if name != field}).code
        assert code is (Code.CONTROL_VERSION if field == "version" else Code.CONTROL_INVALID)
    assert rejected({**fields, "fitler": 1}).code is Code.CONTROL_INVALID
    assert rejected({**fields, "from": "No Name"}).code is Code.CONTROL_INVALID
    assert rejected({**fields, "version": FORMAT_VERSION + 1}).code is Code.CONTROL_VERSION


WRONG = (None, True, 1.5, "No Such", [True, 1], [1], [1, 2, "3"], [[1, 2]], {}, {"a": 1})
PARTS = [
    (body, field)
    for body in EVERY_BODY
    for field in fields_of(body)
    if field not in ("version", "spelling", "filter", "expired", "whole", "complete")
]


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize(("body", "field"), PARTS, ids=lambda part: getattr(part, "__name__", str(part))[:20])
def test_a_letter_with_a_wrong_field_is_rejected(body: Body, field: str, value: Any) -> None:
    """A field of the wrong type or against its rule is a rejection with a short reason."""
    rejection = rejected({**fields_of(body), field: value})
    assert rejection.code is Code.CONTROL_INVALID
    assert len(rejection.reason) < 500


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("brokers", 0, "number"), -1),
        (("brokers", 0, "number"), BROKER_NUMBER_MAX + 1),
        (("brokers", 0, "number"), 10**12),
        (("brokers", 0, "since"), 0),
        (("brokers", 0, "name"), "Dublin"),
        (("brokers", 0, "leaving"), 1),
        (("brokers", 0, "rank"), 1),
        (("brokers", 0), ["dublin", 0]),
        (("links", 0, "cost"), 0),
        (("links", 0, "cost"), 1.0),
        (("links", 0, "between"), ["dublin"]),
        (("links", 0, "between"), ["dublin", "Ohio"]),
        (("retired", 0, "number"), -1),
        (("retired", 0, "why"), "x"),
        (("number",), 0),
        (("number",), TOPOLOGY_NUMBER_MAX + 1),
    ],
)
def test_a_topology_with_a_wrong_part_is_rejected(path: tuple[Any, ...], value: Any) -> None:
    """Numbers that would make a scope or a header too large are refused before anybody counts with them."""
    fields = fields_of(TOPOLOGY)
    at: Any = fields
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert rejected(fields).code is Code.CONTROL_INVALID


@given(st.binary(max_size=60) | our.values().map(lambda value: json.dumps(value).encode()))
def test_garbage_never_raises(value: bytes) -> None:
    """Random bytes and random JSON are no letters and no records."""
    assert isinstance(decode_letter("dublin", value), Rejection)
    assert isinstance(decode_recorded(value), Rejection)


@given(
    st.sampled_from(EVERY_BODY),
    st.dictionaries(
        st.sampled_from(
            ["state", "from", "number", "home", "brokers", "links", "retired", "has", "topology"]
        ),
        our.values(),
        min_size=1,
        max_size=3,
    ),
)
def test_a_letter_with_random_fields_never_raises(body: Body, fields: dict[str, Any]) -> None:
    """It is a letter that reads back, or a rejection."""
    decoded = decode_letter("dublin", json.dumps({**fields_of(body), **fields}).encode())
    if isinstance(decoded, Letter):
        ((_, value),) = encode_letter(decoded)
        assert decode_letter("dublin", value) == decoded


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b"1", b"\xff"])
def test_what_is_no_json_object_is_invalid(value: bytes | None) -> None:
    """A tombstone, too, is no letter."""
    found = decode_letter("dublin", value)
    assert isinstance(found, Rejection)
    assert found.code is Code.CONTROL_INVALID


def test_an_oversize_letter_is_refused() -> None:
    """Limit and size are named."""
    found = decode_letter("dublin", b" " * LETTER_MAX_BYTES + b"{}")
    assert isinstance(found, Rejection)
    assert found.code is Code.CONTROL_TOO_LARGE
    assert str(LETTER_MAX_BYTES) in found.reason


@given(st.binary(max_size=60) | filter_sets.map(lambda filters: b64decode(filters_text(filters))), st.data())
def test_what_is_no_set_of_filters_is_no_letter(data: bytes, draw: st.DataObject) -> None:
    """Whatever bytes stand there, they are read as filters in normal form, or refused with a ValueError."""
    if data:
        at = draw.draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    try:
        read = filters_from_text(b64encode(data).decode())
    except ValueError:
        return
    assert all(conjoin(filter_) == filter_ for filter_ in read)
