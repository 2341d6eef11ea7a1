"""Places and delivery ids read back, and nothing else reads as one."""

from random import Random

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka import headers as bl
from branchline.kafka.record import Headers, Place

almost_places = st.lists(
    st.sampled_from(
        (
            "t",
            "0",
            "1",
            "-1",
            "-",
            "--1",
            "+1",
            "01",
            "-0",
            "1.0",
            "1_0",
            " 1",
            "٣",
            "²",
            "9" * 19,
            "9" * 20,
            "",
        )
    ),
    min_size=1,
    max_size=6,
).map(":".join)


@given(our.places)
def test_a_place_reads_back(place: Place) -> None:
    """`read_place` is the inverse of `str`."""
    assert bl.read_place(str(place)) == place


@given(our.places, our.legal_names)
def test_a_delivery_id_reads_back(place: Place, subscriber: str) -> None:
    """`read_delivery_id` gives the place of publication and the subscriber."""
    assert bl.read_delivery_id(bl.delivery_id(place, subscriber)) == (place, subscriber)


@given(st.tuples(our.places, our.legal_names), st.tuples(our.places, our.legal_names))
def test_delivery_ids_are_equal_only_for_one_delivery(
    one: tuple[Place, str], other: tuple[Place, str]
) -> None:
    """Another place or another subscriber gives another id."""
    assert (bl.delivery_id(*one) == bl.delivery_id(*other)) == (one == other)


@given(st.text(max_size=30) | almost_places)
def test_what_no_place_is_written_as_reads_as_none(text: str) -> None:
    """Any text gives None or the one place that is written so; nothing raises."""
    place = bl.read_place(text)
    assert place is None or str(place) == text
    delivery = bl.read_delivery_id(text)
    assert delivery is None or bl.delivery_id(*delivery) == text


@pytest.mark.parametrize(
    "text", ["", ":", ":::", ":0:0:0", "t:0:0", "t:0:0:0:0", "t:0:x:0", "t::0:0", "t:0:0:1e3"]
)
def test_garbage_is_no_place(text: str) -> None:
    """Too few parts, too many, an empty topic, or a number that is none."""
    assert bl.read_place(text) is None


@pytest.mark.parametrize("text", ["t:-1:0:0", "t:0:-1:0"])
def test_only_the_timestamp_may_be_negative(text: str) -> None:
    """Kafka knows no negative partition or offset of a record, but a timestamp of -1."""
    assert bl.read_place(text) is None
    assert bl.read_place("t:0:0:-1") == Place("t", 0, 0, -1)


@given(our.foreign_headers, our.forged_headers, st.randoms(use_true_random=False))
def test_foreign_drops_ours_and_keeps_the_rest_in_order(
    foreign: Headers, forged: Headers, random: Random
) -> None:
    """Only names that begin with `bl-`, exactly, are ours; the others keep values, repeats and order."""
    mixed = list(foreign)
    for header in forged:
        mixed.insert(random.randint(0, len(mixed)), header)
    assert bl.foreign(tuple(mixed)) == foreign


def test_text_takes_the_first_value_and_never_raises() -> None:
    """A null is passed over, and bytes that are not UTF-8 are replaced."""
    headers = (("bl-id", None), ("bl-id", b"\xff"), ("bl-id", b"later"))
    assert bl.text(headers, "bl-id") == "\ufffd"
    assert bl.text(headers, "bl-only") is None
