"""Matching by counting finds who a table of all filters finds, whatever came and went."""

from random import Random

import pytest
from counted import OWNERS, Some, covers, events_with_arrays, interest, owners
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from branchline.ops.matching_workloads import MATCHING
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods import counting
from branchline.routing.methods.counting import CountingMatching
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.protocols import Interest
from branchline.routing.methods.table import TableMatching
from branchline.routing.prefix.trees import Trees
from branchline.routing.values import JsonValue

subsets = st.none() | st.frozensets(owners).map(Some)


@pytest.fixture(params=["as it is", "small"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tables also where there is little."""
    if request.param == "small":
        monkeypatch.setattr(counting, "FRESH_MAX", 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_it_finds_what_asking_every_filter_finds(sizes: None, data: st.DataObject) -> None:
    """After any additions and removals, of any covers, for any of the owners; in doubt only with arrays."""
    made, table = CountingMatching(data.draw(st.sampled_from((0, 1, 10)))), TableMatching()
    standing: list[Interest] = []
    for _ in range(data.draw(st.integers(6, 20))):
        if standing and data.draw(st.integers(0, 3)) == 0:
            gone = standing.pop(data.draw(st.integers(0, len(standing) - 1)))
            made.remove(gone)
            table.remove(gone)
        else:
            standing.append(interest(data.draw(owners), *data.draw(covers)))
            made.add(standing[-1])
            table.add(standing[-1])
        attributes = data.draw(events_with_arrays)
        wanted = data.draw(subsets)
        found = made.match(event := Event(attributes), wanted)
        expected = table.match(Event(attributes), wanted)
        assert found.certain | found.doubtful == expected.certain | expected.doubtful
        assert not found.certain if event.met_array else not found.doubtful
    for each in standing:
        made.remove(each)
    assert made.match(Event({})).certain == set()


@given(st.lists(st.tuples(owners, covers), max_size=8), events_with_arrays, st.integers(1, 3))
def test_it_may_stop_when_enough_are_found(
    given: list[tuple[str, tuple[object, ...]]], attributes: dict[str, JsonValue], enough: int
) -> None:
    """It finds as many as are enough, if there are so many, and nobody who is not interested."""
    made, table = CountingMatching(), TableMatching()
    for owner, cover in given:
        made.add(interest(owner, *cover))  # type: ignore[arg-type]
        table.add(interest(owner, *cover))  # type: ignore[arg-type]
    expected = table.match(Event(attributes))
    found = made.match(Event(attributes), Some(frozenset(OWNERS), enough))
    everybody = expected.certain | expected.doubtful
    assert found.certain | found.doubtful <= everybody
    assert len(found.certain | found.doubtful) >= min(enough, len(everybody))


@pytest.mark.parametrize("name", ["equalities-range", "gaussian-10", "contains", "cw", "spellings"])
@pytest.mark.parametrize("owners", [7, 400])
def test_many_filters_of_the_shapes_that_are_measured(name: str, owners: int) -> None:
    """Few interfaces with many filters, and many with one; after a third has gone, too."""
    filters = list(dict.fromkeys(MATCHING[name].filters("7", 400)))
    interests = [interest(f"o{place % owners}", each) for place, each in enumerate(filters)]
    made, table = CountingMatching(), TableMatching()
    for each in interests:
        made.add(each)
        table.add(each)
    random = Random(7)
    events = [MATCHING[name].event(random) for _ in range(15)]
    for each in (None, *interests[::3]):
        if each is not None:
            made.remove(each)
            table.remove(each)
        if each is None or each is interests[::3][-1]:
            for attributes in events:
                assert made.match(Event(attributes)).certain == table.match(Event(attributes)).certain


def matching(*texts: tuple[str, str], rounds: int = 10) -> CountingMatching:
    """A matching in which owners have filters, all of them in a table."""
    made = make_matching(Methods(matching=f"counting({rounds})"), Trees())
    assert isinstance(made, CountingMatching)
    for owner, text in texts:
        compiled = compile_filter("sql", text)
        assert isinstance(compiled, Compiled)
        made.add(Interest(Identity("home", owner, "one"), compiled, owner))
    return made


@pytest.fixture
def no_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "FRESH_MAX", 0)


def test_an_interface_is_counted_until_it_is_found(no_delta: None) -> None:
    """One filter is enough; what comes after it is not counted, and when all are found nothing is."""
    made = matching(("a", "x = 1"), ("a", "x > 0 AND y = 2"), ("b", "x >= 1"), rounds=0)
    found = made.match(Event({"x": 1, "y": 2}))
    assert found.certain == {"a", "b"}
    assert found.counts == {"interfaces_excluded": 0, "constraints_counted": 2, "interfaces_early": 2}
    found = made.match(Event({"y": 2, "x": 0.5}))
    assert found.certain == {"a"}
    assert found.counts == {"interfaces_excluded": 0, "constraints_counted": 2, "interfaces_early": 0}


def test_determinants_rule_interfaces_out(no_delta: None) -> None:
    """Who asks in every filter for what an event lacks is not counted, but by IS NULL nobody needs it."""
    texts = (
        *(("a", "x = 1 AND y = 2"), ("a", "x = 1 AND z = 3")),
        *(("b", "y = 2"), ("b", "z = 3")),
        ("c", "x IS NULL AND y = 2"),
    )
    event = Event({"y": 2, "z": 3})
    without, with_one = (matching(*texts, rounds=rounds).match(event) for rounds in (0, 1))
    assert without.certain == with_one.certain == {"b", "c"}
    assert (without.counts["interfaces_excluded"], with_one.counts["interfaces_excluded"]) == (0, 1)
    assert without.counts["constraints_counted"] > with_one.counts["constraints_counted"]


def test_the_most_selective_names_come_first(no_delta: None) -> None:
    """With one round it is the name that most interfaces need."""
    made = matching(("a", "x = 1"), ("b", "y = 1 AND x = 1"), ("c", "y = 2 AND x = 2"), rounds=1)
    assert made.match(Event({"y": 1})).counts["interfaces_excluded"] == 3
    assert made.match(Event({"x": 1})).counts["interfaces_excluded"] == 0
    assert "asked first: x (3)" in made.describe()


def test_one_change_makes_no_large_table_anew() -> None:
    """Whatever comes and goes by ones, what is large stays as it is until the rest is a good part of it."""
    made = CountingMatching()
    filters = MATCHING["equalities"].filters("1", 2_400)
    for place, each in enumerate(filters[:2_000]):
        made.add(interest(f"o{place}", each))
    made.match(Event({}))
    [large] = made._tables
    for place, each in enumerate(filters[2_000:]):
        made.add(interest(f"n{place}", each))
        made.remove(interest(f"o{place}", filters[place]))
        made.match(Event({}))
    assert made._tables[0] is large and 1 < len(made._tables) < 5
    for place, each in enumerate(filters[400:2_000], 400):
        made.remove(interest(f"o{place}", each))
    made.match(Event({}))
    [small] = made._tables
    assert len(small) == 400


def test_it_describes_itself(no_delta: None) -> None:
    """Tables, names and indexes."""
    made = matching(("a", "x > 1 AND y LIKE 'ab%'"), ("b", "y LIKE '%a' OR y LIKE '%b%'"))
    made.match(Event({}))
    text = made.describe()
    assert "2 interfaces, 3 filters, 4 constraints, 4 of them different" in text
    assert "y as text: trie of 4 nodes with 1 prefixes, 1 suffixes, 1 substrings" in text
    assert "x as number: 0 points, 1 from and 0 up to an end" in text
