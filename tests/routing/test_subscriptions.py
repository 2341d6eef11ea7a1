"""The table of subscriptions is the fold of its changes, and knows what they say."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.control import Change, Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS
from branchline.routing.subscriptions import SubscriptionTable

ALICE = Identity("dublin", "alice", "default")


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

lasting = st.lists(our.changes(forgetting=False), max_size=12).map(numbered)
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


@given(histories)
def test_changes_rebuild_an_equal_table(history: list[Change]) -> None:
    """A table made from `changes()` describes itself the same and knows the same, in the same order."""
    table = SubscriptionTable(history)
    rebuilt = SubscriptionTable(table.changes())
    assert rebuilt.describe() == table.describe()
    assert list(rebuilt.changes()) == list(table.changes())
    for home in our.BROKERS:
        assert rebuilt.highest_number(home) == table.highest_number(home)
    for subscriber in our.SUBSCRIBERS:
        assert rebuilt.homes(subscriber) == table.homes(subscriber)
    for change in table.changes():
        assert rebuilt.compiled(change.identity) == table.compiled(change.identity)


@given(st.lists(our.changes(numbers=st.builds(Number, st.just(1), st.integers(0, 9))), max_size=15))
def test_the_counts_are_right_after_any_sequence(arrived: list[Change]) -> None:
    """After each change, `homes` and `len` are what counting the subscriptions in force again gives."""
    table = SubscriptionTable()
    for change in arrived:
        table.apply(change)
        standing = [known for known in table.changes() if isinstance(known, Subscribed)]
        for name in our.SUBSCRIBERS:
            recount = Counter(each.identity.home for each in standing if each.identity.subscriber == name)
            assert dict(table.homes(name)) == dict(recount)
        assert len(table) == len(standing)


@given(lasting)
def test_the_compiled_filter_is_that_of_the_standing_change(history: list[Change]) -> None:
    """What stands has its filter compiled; what has ended, or is unknown, has none."""
    table = SubscriptionTable(history)
    for change in table.changes():
        expected = compile_filter("sql", change.filter) if isinstance(change, Subscribed) else None
        assert table.compiled(change.identity) == expected
    assert table.compiled(Identity("dublin", "nobody", "default")) is None


@given(st.permutations(range(4)))
def test_of_one_number_the_highest_revision_stands(order: list[int]) -> None:
    """A renewal keeps the number: of the same change told again, the last revision counts, in any order."""
    told = [replace(subscribed(ALICE, 3), revision=revision, until_ms=revision) for revision in range(4)]
    table = SubscriptionTable(told[place] for place in order)
    assert table.find(ALICE) == told[3]
    assert table.apply(Ended(ALICE, Number(1, 4), 0)) is True, "a higher number is above any revision"


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
    assert (table.describe(), table.homes("alice")) == (before, Counter(dublin=1))


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


def test_an_end_that_was_undone_is_not_forgotten() -> None:
    """Subscribed anew and ended later, it is remembered from the later end on; asking changes nothing."""
    table = SubscriptionTable([Ended(ALICE, Number(1, 1), 5), subscribed(ALICE, 2)])
    assert table.forgettable(5 + ENDED_REMEMBERED_MS) == []
    table.apply(Ended(ALICE, Number(1, 3), 9))
    table.apply(Ended(ALICE, Number(1, 3), 9, ("again",), revision=1))
    assert table.forgettable(8 + ENDED_REMEMBERED_MS) == []
    for _ in range(2):
        assert table.forgettable(9 + ENDED_REMEMBERED_MS) == [Forgotten(ALICE, Number(1, 3))]
    table.apply(Forgotten(ALICE, Number(1, 3)))
    assert table.forgettable(9 + ENDED_REMEMBERED_MS) == []


def test_the_highest_number_counts_ends_and_is_none_for_an_empty_table() -> None:
    """`highest_number` looks at standing and ended subscriptions of the home alike, and at no other's."""
    assert SubscriptionTable().highest_number("dublin") is None
    foreign = Ended(ALICE._replace(home="virginia"), Number(9, 1), 0)
    table = SubscriptionTable([subscribed(ALICE, 3), Ended(ALICE._replace(id="x"), Number(2, 1), 0), foreign])
    assert table.highest_number("dublin") == Number(2, 1)


def test_describe_gives_a_line_to_each_subscription() -> None:
    """A filter written over several lines still takes one line of the description."""
    table = SubscriptionTable(
        [subscribed(ALICE, 1, "a = 1\nAND b = 2"), subscribed(ALICE._replace(id="x"), 2)]
    )
    assert len(table.describe().splitlines()) == 2
