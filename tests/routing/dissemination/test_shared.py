"""One table for all neighbours: each is told what a table of its own would tell it, with fewer tests."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from table_filters import compiled, filters_in, sql

from branchline.routing.dissemination.shared import SharedTable, View
from branchline.routing.dissemination.summaries import CoveringSummary
from branchline.routing.filters import EVERYTHING, Filter
from branchline.routing.posets.checking import poset_faults

known = st.lists(compiled, min_size=1, max_size=6).map(
    lambda many: [*(each for one in many for each in one.cover)][:20]
)


@given(known, st.integers(0, 10**6))
def test_each_neighbour_is_told_as_by_a_table_of_its_own(filters: list[Filter], seed: int) -> None:
    """Whatever comes and goes, for whomever, and though neighbours come and go as well."""
    random, table = Random(seed), SharedTable()
    pairs: list[tuple[View, CoveringSummary, list[Filter]]] = []
    for _ in range(40):
        if not pairs or random.random() < 0.1:
            pairs.append((table.view(), CoveringSummary(), []))
        at = random.randrange(len(pairs))
        view, alone, has = pairs[at]
        if has and random.random() < 0.4:
            filter_ = has.pop(random.randrange(len(has)))
            view.remove(filter_)
            alone.remove(filter_)
        elif len(pairs) > 1 and random.random() < 0.1:
            view.drop()
            del pairs[at]
        else:
            has.append(random.choice([*filters, EVERYTHING]))
            view.add(has[-1])
            alone.add(has[-1])
        for view, alone, _has in pairs:
            assert set(view.told()) == set(alone.told()) or EVERYTHING in view.told()
    for view, _, _ in pairs:
        view.drop()
    assert not len(table.poset) and not table.waiting


def test_a_filter_is_compared_once_for_all_neighbours() -> None:
    """However many there are; tables of their own compare it once for each of them."""
    filters = filters_in(sql(*(f"x BETWEEN {at} AND {at + 40 - at % 7}" for at in range(40))))
    made = []
    for neighbours in (1, 10):
        table, alone = SharedTable(), [CoveringSummary() for _ in range(neighbours)]
        views = [table.view() for _ in alone]
        for filter_ in filters:
            for view, summary in zip(views, alone, strict=True):
                view.add(filter_)
                summary.add(filter_)
        assert all(set(view.told()) == set(alone[0].told()) for view in views)
        assert table.counts["table_placed"] == len(filters)
        assert table.counts["told_covered"] == sum(each.counts["told_covered"] for each in alone)
        assert poset_faults(table.poset) == []
        made.append((table.counts["covering_tests"], sum(each.counts["covering_tests"] for each in alone)))
    (one, one_alone), (ten, ten_alone) = made
    assert one == ten < ten_alone == 10 * one_alone


def test_what_changes_elsewhere_is_seen() -> None:
    """A view says so if something else is told; here, because a filter that waited has its place."""
    table = SharedTable(waits=True)
    one, other = table.view(), table.view()
    wide, narrow = filters_in(sql("x > 1", "x > 5"))
    one.add(wide)
    one.add(narrow)
    other.add(narrow)
    assert not one.told() and not other.told()
    assert not table.is_placed(1)
    before = one.version
    table.place_by_tests(narrow)
    assert (one.told(), other.told()) == ({narrow}, {narrow})
    assert one.version > before and not table.is_placed(1)
    seen = other.version
    table.place_by_tests(wide)
    assert (one.told(), other.told()) == ({wide}, {narrow})
    assert table.is_placed(2) and other.version == seen


def test_nothing_leaves_a_frozen_table() -> None:
    """Until it thaws; what is wanted again by then stays."""
    table = SharedTable()
    view = table.view()
    kept, gone = filters_in(sql("x > 1", "y > 5"))
    view.add(kept)
    view.add(gone)
    table.frozen = True
    view.remove(kept)
    view.remove(gone)
    assert not view.told() and len(table.poset) == 2
    view.add(kept)
    table.thaw()
    assert len(table.poset) == 1 and view.told() == {kept}
