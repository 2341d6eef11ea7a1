"""The table of subscriptions is the fold of its changes, and matching agrees with the plain loop."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Change, Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.evaluate import evaluate
from branchline.routing.limits import ENDED_REMEMBERED_MS
from branchline.routing.spellings.sql import read
from branchline.routing.subscriptions import SubscriptionTable
from branchline.routing.values import JsonValue

ALICE = Identity("dublin", "alice", "default")
events = our.events(our.few_names)


def subscribed(identity: Identity, counter: int, text: str = "TRUE") -> Subscribed:
    return Subscribed(identity, Number(1, counter), "sql", text)


def known(table: SubscriptionTable) -> dict[Identity, Change]:
    return {change.identity: change for change in table.changes()}


def newest(changes: Iterable[Change]) -> dict[Identity, Change]:
    """The definition: per subscription, the change with the highest number."""
    found: dict[Identity, Change] = {}
    for change in changes:
        if change.identity not in found or change.number > found[change.identity].number:
            found[change.identity] = change
    return found


def numbered(changes: list[Change]) -> list[Change]:
    """The changes with numbers that rise through several incarnations, whose counters start again."""
    return [replace(change, number=Number(1 + at // 3, at % 3)) for at, change in enumerate(changes)]


histories = st.lists(our.changes(), max_size=12).map(numbered)
"""Changes in the order of their numbers, each number used once."""

lasting = st.lists(our.changes().filter(lambda change: not isinstance(change, Forgotten)), max_size=12).map(
    numbered
)
"""The same without forgetting, which is the one change that order matters for."""


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[Change], list[Change]]:
    """A history, and the same changes in any order, some of them repeated."""
    history = draw(lasting)
    repeats = draw(st.lists(st.sampled_from(history), max_size=6)) if history else []
    return history, draw(st.permutations(history + repeats))


@given(shuffled())
def test_the_table_is_the_fold_by_highest_number(drawn: tuple[list[Change], list[Change]]) -> None:
    """Any order of the changes, with repeats, gives the table that the definition gives."""
    history, arrived = drawn
    table = SubscriptionTable(arrived)
    assert known(table) == newest(history)
    assert table.describe() == SubscriptionTable(history).describe()
    assert len(table) == sum(isinstance(change, Subscribed) for change in newest(history).values())


@given(lasting, st.data())
def test_a_straggler_changes_nothing(history: list[Change], data: st.DataObject) -> None:
    """A change whose number is not above the last seen is not obeyed, not even read."""
    table = SubscriptionTable(history)
    before = list(table.changes())
    for change in before:
        number = data.draw(
            st.sampled_from([change.number, Number(change.number.incarnation, -1), Number(0, 99)])
        )
        text = data.draw(st.sampled_from(our.FILTERS + our.BAD_FILTERS))
        assert table.apply(Subscribed(change.identity, number, "sql", text)) is False
        assert table.apply(Ended(change.identity, number, 0)) is False
    assert list(table.changes()) == before


@given(lasting)
def test_forgetting_undoes_exactly_its_end(history: list[Change]) -> None:
    """Forgotten with an end's number leaves the table as if nothing were known of it, and all else alone."""
    table = SubscriptionTable(history)
    for ended in [change for change in table.changes() if isinstance(change, Ended)]:
        others = [change for change in table.changes() if change != ended]
        assert table.apply(Forgotten(ended.identity, ended.number)) is True
        assert table.find(ended.identity) is None
        assert list(table.changes()) == others


@pytest.mark.parametrize("counter", [4, 6])
def test_forgetting_another_number_changes_nothing(counter: int) -> None:
    """Forgotten with a lower or a higher number than the end's leaves the end remembered."""
    ended = Ended(ALICE, Number(1, 5), 0)
    table = SubscriptionTable([ended])
    assert table.apply(Forgotten(ALICE, Number(1, counter))) is False
    assert table.find(ALICE) == ended


def test_forgetting_never_touches_a_standing_subscription() -> None:
    """Forgotten undoes an end: with the number of a subscription in force it changes nothing."""
    standing = subscribed(ALICE, 5)
    table = SubscriptionTable([standing])
    assert table.apply(Forgotten(ALICE, standing.number)) is False
    assert table.find(ALICE) == standing


def test_forgetting_the_unknown_changes_nothing() -> None:
    """Forgotten for a subscription never heard of is not obeyed."""
    table = SubscriptionTable()
    assert table.apply(Forgotten(ALICE, Number(1, 1))) is False
    assert list(table.changes()) == []


@given(histories, st.lists(events, max_size=4))
def test_changes_rebuild_an_equal_table(history: list[Change], published: list[dict[str, JsonValue]]) -> None:
    """A table made from `changes()` describes itself the same and matches the same, in the same order."""
    table = SubscriptionTable(history)
    rebuilt = SubscriptionTable(table.changes())
    assert rebuilt.describe() == table.describe()
    assert list(rebuilt.changes()) == list(table.changes())
    assert rebuilt.highest_number() == table.highest_number()
    for event in published:
        assert list(rebuilt.match(event).items()) == list(table.match(event).items())


@given(st.lists(our.changes(numbers=st.builds(Number, st.just(1), st.integers(0, 9))), max_size=15))
def test_the_count_is_right_after_any_sequence(arrived: list[Change]) -> None:
    """After each change, `count` and `len` are what counting the subscriptions in force again gives."""
    table = SubscriptionTable()
    for change in arrived:
        table.apply(change)
        standing = [known for known in table.changes() if isinstance(known, Subscribed)]
        recount = Counter(change.identity.subscriber for change in standing)
        assert {name: table.count(name) for name in our.SUBSCRIBERS if table.count(name)} == recount
        assert len(table) == len(standing)


def owed_naively(
    table: SubscriptionTable, event: dict[str, JsonValue], only: str | None
) -> dict[str, Rejection | None]:
    verdicts: dict[str, list[bool | Rejection]] = {}
    for change in table.changes():
        if isinstance(change, Subscribed) and only in (None, change.identity.subscriber):
            verdict = evaluate(read(change.filter), event)
            verdicts.setdefault(change.identity.subscriber, []).append(verdict)
    owed: dict[str, Rejection | None] = {}
    for subscriber, all_of_its in verdicts.items():
        rejections = [verdict for verdict in all_of_its if isinstance(verdict, Rejection)]
        if True in all_of_its:
            owed[subscriber] = None
        elif rejections:
            owed[subscriber] = rejections[-1]
    return owed


@given(lasting, events, st.none() | our.subscribers | st.just("nobody"), st.integers(1, 3))
def test_matching_agrees_with_the_plain_loop(
    history: list[Change], event: dict[str, JsonValue], only: str | None, most_choices: int
) -> None:
    """Each subscriber is owed once if one filter matches, undecided if none does and one is not evaluated.

    With `only`, nobody else is looked at.
    """
    table = SubscriptionTable(history)
    with pytest.MonkeyPatch.context() as patch:
        # So few choices that arrays as small as ours exceed them.
        patch.setattr("branchline.routing.evaluate.MAX_CHOICES", most_choices)
        assert table.match(event, only) == owed_naively(table, event, only)


@pytest.mark.parametrize("texts", [("items = 1", "a = 1"), ("a = 1", "items = 1")])
def test_another_filter_that_matches_hides_one_that_cannot_be_evaluated(texts: tuple[str, str]) -> None:
    """In either order, a match of one filter is a match; without it the rejection is reported."""
    table = SubscriptionTable(
        subscribed(Identity("dublin", "alice", f"s{index}"), index, text) for index, text in enumerate(texts)
    )
    too_many: JsonValue = [2] * 10_001
    assert table.match({"a": 1, "items": too_many}) == {"alice": None}
    undecided = table.match({"a": 2, "items": too_many})["alice"]
    assert undecided is not None
    assert undecided.code is Code.TOO_MANY_CHOICES


@pytest.mark.parametrize("text", our.BAD_FILTERS)
def test_an_unreadable_filter_is_a_rejection_and_changes_nothing(text: str) -> None:
    """A newer change whose filter cannot be read leaves the older one standing."""
    table = SubscriptionTable([subscribed(ALICE, 1)])
    before = table.describe()
    assert isinstance(table.apply(subscribed(ALICE, 2, text)), Rejection)
    unknown = Subscribed(ALICE, Number(1, 3), "klingon", "TRUE")
    rejection = table.apply(unknown)
    assert isinstance(rejection, Rejection)
    assert rejection.code is Code.SPELLING_UNKNOWN
    assert (table.describe(), table.count("alice")) == (before, 1)


@given(st.lists(st.integers(0, 10), max_size=6), st.integers(0, 12))
def test_ends_are_forgettable_after_a_day_oldest_first(ages: list[int], now: int) -> None:
    """Exactly the ends that are a day old or older may be forgotten, in the order of their ends."""
    ends = [
        Ended(Identity("dublin", "alice", f"s{index}"), Number(1, index), at_ms)
        for index, at_ms in enumerate(ages)
    ]
    table = SubscriptionTable(ends)
    due = sorted((ended for ended in ends if ended.at_ms <= now), key=lambda ended: ended.at_ms)
    expected = [Forgotten(ended.identity, ended.number) for ended in due]
    assert table.forgettable(now + ENDED_REMEMBERED_MS) == expected
    assert table.forgettable(0) == []


def test_the_highest_number_counts_ends_and_is_none_for_an_empty_table() -> None:
    """`highest_number` looks at standing and ended subscriptions alike."""
    assert SubscriptionTable().highest_number() is None
    table = SubscriptionTable([subscribed(ALICE, 3), Ended(ALICE._replace(id="x"), Number(2, 1), 0)])
    assert table.highest_number() == Number(2, 1)


def test_describe_gives_a_line_to_each_subscription() -> None:
    """A filter written over several lines still takes one line of the description."""
    table = SubscriptionTable(
        [subscribed(ALICE, 1, "a = 1\nAND b = 2"), subscribed(ALICE._replace(id="x"), 2)]
    )
    assert len(table.describe().splitlines()) == 2
