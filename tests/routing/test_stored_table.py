"""A table that was stored and opened knows the same of every subscriber as one that lived."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.control import Change, Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.stored_table import StoredTable
from branchline.routing.subscriptions import SubscriptionTable

SUBSCRIBERS = ("ann", "bob", "cy")

wishes = st.lists(
    st.tuples(
        st.sampled_from(["h", "g"]),
        st.sampled_from(SUBSCRIBERS),
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from(["subscribed", "ended", "forgotten"]),
    ),
    max_size=20,
)


def changes(drawn: Sequence[tuple[str, str, str, str]], first: int) -> list[Change]:
    made: list[Change] = []
    for counter, (home, subscriber, id_, state) in enumerate(drawn, first):
        identity, number = Identity(home, subscriber, id_), Number(1, counter)
        if state == "subscribed":
            made.append(Subscribed(identity, number, "sql", f"price < {counter}", own=counter % 2 > 0))
        else:
            made.append(Ended(identity, number, counter, own=counter % 3 > 0))
            if state == "forgotten":
                made.append(Forgotten(identity, number))
    return made


@given(wishes, wishes, wishes)
def test_subscribers_have_what_they_had(before: list, between: list, after: list) -> None:  # type: ignore[type-arg]
    """Also after further changes, and when what was opened is stored again."""
    lived = SubscriptionTable()
    opened = SubscriptionTable()
    first = 1
    for stage in (before, between, after):
        for change in changes(stage, first):
            assert opened.apply(change) == lived.apply(change)
        first += len(stage)
        for subscriber in SUBSCRIBERS:
            assert opened.of(subscriber) == lived.of(subscriber)
            assert opened.homes(subscriber) == lived.homes(subscriber)
        assert {change.identity: change for change in opened.changes()} == {
            change.identity: change for change in lived.changes()
        }
        opened = SubscriptionTable(stored=StoredTable(memoryview(opened.stored("h"))))
