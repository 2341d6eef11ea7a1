"""Counting for batches follows who comes and goes, and keeps no more than is there."""

from itertools import pairwise
from random import Random

import pytest

from branchline.ops.matching_workloads import MATCHING
from branchline.routing.compiled import counted
from branchline.routing.compiled.counted import CountedInterests
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.tiers import TIER_RATIO

MUTED_MAX = 16


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_whoever_is_interested_now(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tables their filters are in, and whoever had their codes before."""
    monkeypatch.setattr(counted, "MUTED_MIN", MUTED_MAX)
    random, paths = Random(seed), Paths()
    interests = CountedInterests(paths, 2)
    pool = [(), *dict.fromkeys(MATCHING["equalities-range"].filters(str(seed), 300))]
    events = [MATCHING["equalities-range"].event(random) for _ in range(10)]
    standing: dict[tuple[str, Filter], None] = {}
    tables = set()
    for _ in range(30):
        for _ in range(random.choice((0, 1, 5, 60))):
            pair = f"s{random.randrange(40)}", random.choice(pool)
            if pair not in standing:
                standing[pair] = None
                interests.joined(pair[1], pair[0])
        for _ in range(random.choice((0, 1, 5, 60))):
            if standing:
                owner, filter_ = random.choice(list(standing))
                del standing[owner, filter_]
                interests.left(filter_, owner)
        interests.settle()
        event, code = interests.match(rows_of(paths, events).scanned, len(events))
        found = {(number, interests.owner(each)) for number, each in zip(event, code.tolist(), strict=True)}
        assert len(found) == len(event) and (not len(code) or code.max() < interests.codes)
        assert found == {
            (number, owner)
            for number, attributes in enumerate(events)
            for owner, filter_ in standing
            if Event(attributes).may_match((filter_,))
        }
        assert len(interests) == len(standing)
        filed = [len(tier) for tier in interests._tiers]
        tables.add(len(filed))
        assert sum(filed) <= 2 * max(len(standing), MUTED_MAX)
        assert all(one > TIER_RATIO * other or other == 0 for one, other in pairwise(filed))
    assert max(tables) > 1


def test_whose_interests_change_is_told() -> None:
    """The codes of all that came or have something for one reason more, once."""
    interests = CountedInterests(Paths(), 0)
    (one, other) = MATCHING["equalities"].filters("1", 2)
    interests.joined(one, "ann")
    interests.joined(other, "ann")
    interests.again("ann")
    assert set(interests.renewed()) == {0} and not interests.renewed()
    for filter_ in (one, other):
        interests.left(filter_, "ann")
    interests.joined(one, "bob")
    assert interests.renewed() == [0] and interests.owner(0) == "bob" and interests.codes == 1
