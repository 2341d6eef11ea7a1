"""The names of topics read back, and a namespace's patterns match its own topics only."""

import re

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka import topics as kinds
from branchline.kafka.topics import OWN_CONTROL, TOPIC_KINDS, TopicKind, Topics, is_name
from branchline.routing.methods.naming import Methods

namespaces = st.builds(
    str.__add__, st.sampled_from("aZ0_-"), st.text("aZ0._-", max_size=20) | st.just(".in") | st.just(".out.x")
)


def all_topics(topics: Topics, name: str) -> dict[str, tuple[TopicKind, str | None]]:
    """Every topic of the namespace for one broker or subscriber: its kind, and whose it is."""
    return {
        topics.entry(name): (kinds.ENTRY, name),
        topics.broker(name): (kinds.BROKER, name),
        topics.link(name): (kinds.LINK, name),
        topics.out(name): (kinds.OUT, name),
        topics.control: (kinds.CONTROL, None),
        topics.acks: (kinds.ACKS, None),
        topics.filters: (kinds.FILTERS, None),
        topics.rt_updates: (kinds.RT_UPDATES, None),
        topics.dead_letters: (kinds.DEAD_LETTERS, None),
        topics.positions: (kinds.POSITIONS, None),
        topics.stats: (kinds.STATS, None),
        topics.markers(name): (kinds.MARKERS, name),
        topics.bridge(name): (kinds.BRIDGE, name),
        topics.own_control(name): (kinds.OWN_CONTROL, name),
        topics.own_acks(name): (kinds.OWN_ACKS, name),
    }


@given(namespaces, our.legal_names)
def test_every_name_reads_back(namespace: str, name: str) -> None:
    """`kind` and `named` give what the topic's name was made from, in any namespace."""
    topics = Topics(namespace)
    made = all_topics(topics, name)
    assert {kind for kind, _ in made.values()} == set(TOPIC_KINDS)
    for topic, expected in made.items():
        assert (topics.kind(topic), topics.named(topic)) == expected


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "branchline",
        "branchline.",
        "branchline.in",
        "branchline.in.",
        "branchline.in.A",
        "branchline.in.a.b",
        "branchline.control.",
        "branchline.control.alice.bob",
        "branchline.control.Alice",
        "branchline.acks.",
        "branchline.unknown",
        "branchlineXcontrol",
        "other.control",
        "x.branchline.control",
    ],
)
def test_any_other_topic_is_not_ours(topic: str) -> None:
    """A name that no topic is made with has no kind and belongs to nobody."""
    assert Topics().kind(topic) is None
    assert Topics().named(topic) is None


@given(namespaces, our.legal_names, st.data())
def test_only_names_that_we_make_have_a_kind(namespace: str, name: str, data: st.DataObject) -> None:
    """What `kind` knows is, to the letter, one of the topics of its broker or subscriber."""
    topics = Topics(namespace)
    topic = data.draw(st.sampled_from(list(all_topics(topics, name))))
    at = data.draw(st.integers(0, len(topic)))
    changed = topic[:at] + data.draw(st.sampled_from([".", "-", "a", "A", "\n"])) + topic[at:]
    if topics.kind(changed) is not None:
        assert changed in all_topics(topics, topics.named(changed) or "x")


@given(namespaces, st.lists(our.legal_names, min_size=1, max_size=4, unique=True))
def test_patterns_match_the_topics_of_the_brokers_served_only(namespace: str, names: list[str]) -> None:
    """A router reads control, links and updates for control, in and broker for events, and nothing else.

    Subscribers are not known in advance: all their own control topics are read.
    """
    topics, served = Topics(namespace), tuple(names)
    unserved = {"x" + name[:62] for name in names} - set(names)
    candidates = {topic for name in unserved.union(names) for topic in all_topics(topics, name)}
    candidates |= {topic for name in names for topic in all_topics(Topics("x" + namespace), name)}
    shared = {topics.control, topics.rt_updates}
    expected = shared | {topics.link(name) for name in names} | set(topics.of_kind(OWN_CONTROL, candidates))
    pattern = topics.control_pattern(served)
    assert {topic for topic in candidates if re.fullmatch(pattern, topic)} == expected
    assert set(topics.event_topics(served)) == {
        kind(name) for name in names for kind in (topics.entry, topics.broker)
    }


def test_a_dot_in_the_namespace_matches_only_a_dot() -> None:
    """The namespace is quoted: `a.b` does not read the topics of `a-b` or `aXb`."""
    topics = Topics("a.b")
    for other in (Topics("a-b"), Topics("aXb")):
        assert re.fullmatch(topics.control_pattern(("dublin",)), other.control) is None
    assert re.fullmatch(topics.control_pattern(("dublin",)), "a.bXlink.dublin") is None


@pytest.mark.parametrize("namespace", ["", ".", "..", ".a", "a b", "a/b", "a\n", "é", "a" * 101])
def test_a_bad_namespace_is_refused(namespace: str) -> None:
    """A namespace is what Kafka allows in a topic's name, and short enough to leave room."""
    with pytest.raises(ValueError, match="namespace"):
        Topics(namespace)


def test_every_topic_fits_kafkas_limit() -> None:
    """With the longest namespace and names, no topic's name has more than Kafka's 249 characters."""
    assert max(map(len, all_topics(Topics("n" * 100), "x" * 63))) <= 249


@pytest.mark.parametrize("text", ["", "-a", "A", "a.b", "a_b", "a\n", "é", "٣", "a" * 64])
def test_what_is_no_name(text: str) -> None:
    """Names are short, lower case, ASCII, and hold no dot."""
    assert not is_name(text)


@given(our.legal_names)
def test_what_is_a_name(text: str) -> None:
    """Letters, digits and dashes, not beginning with a dash, at most 63."""
    assert is_name(text)


def test_what_a_router_needs_is_of_the_kinds_that_its_names_say() -> None:
    """`of_broker` lists all topics that a broker needs, each of the kind that its name reads as."""
    topics = Topics()
    needed = topics.of_broker("dublin")
    assert {topic: topics.kind(topic) for topic in needed} == needed
    others = (topics.out, topics.markers, topics.bridge, topics.own_control, topics.own_acks)
    assert set(needed) == set(all_topics(topics, "dublin")) - {topic("dublin") for topic in others}
    both = topics.of_brokers(("dublin", "virginia"))
    assert both == needed | topics.of_broker("virginia")


def test_updates_of_the_tree_have_a_partition_for_each_part() -> None:
    """Updates of one part keep their order, and those of two need not wait for each other."""
    assert kinds.RT_UPDATES.partitions == Methods().parts


@pytest.mark.parametrize("kind", TOPIC_KINDS, ids=lambda kind: kind.name)
def test_a_topic_is_kept_by_time_or_compacted(kind: TopicKind) -> None:
    """`filters`, `positions`, markers and marks are compacted; all else is dropped after some time."""
    config, compacted = kind.config(), kind in (kinds.FILTERS, kinds.POSITIONS, kinds.MARKERS, kinds.BRIDGE)
    assert config["cleanup.policy"] == ("compact" if compacted else "delete")
    assert ("retention.ms" in config) is not compacted
