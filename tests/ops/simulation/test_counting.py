"""What is said of forwarding by counting is what tables find, in both forms."""

from pathlib import Path

import pytest

from branchline.kafka.errors import ConfigError
from branchline.ops.cw_workload import cw_event, cw_filters
from branchline.ops.simulation import counting
from branchline.ops.simulation.counting import FLAT, PLAIN, Spec, Tables
from branchline.ops.simulation.growing import events_of
from branchline.ops.simulation.kind import Case, Row
from branchline.ops.simulation.simulation import read_simulation
from branchline.ops.simulation.tables import check_rows
from branchline.routing.event import Event

EVENTS = 20


def rows(form: str = FLAT, hops: int = 1, constraints: int = 600, **divided: tuple[int, ...]) -> list[Row]:
    tables = Tables(
        form, (constraints,), divided.get("interfaces", ()), divided.get("each", ()), (0, 3, 30), hops
    )
    beats: list[str] = []
    result = counting.run(Spec(EVENTS, 1, {"it": tables}), Case(1, {"table": "it"}), beats.append)
    check_rows(counting.KIND.columns, result.rows)
    assert not result.failures and beats
    return result.rows


@pytest.mark.parametrize("form", [FLAT, PLAIN])
def test_what_is_found_is_what_filters_say(form: str) -> None:
    """With one filter an interface: as many as match, and as many are ruled out as lack what they need."""
    random = events_of(1)
    events = [cw_event(random) for _ in range(EVENTS)]
    for row in rows(form, each=(1,)):
        filters = cw_filters("1 filters", int(row["filters"]))
        matched = [sum(Event(event).may_match((each,)) for each in filters) for event in events]
        assert row["found_per_event"] == sum(matched) / EVENTS
        assert row["constraints"] == sum(map(len, filters)) and row["interfaces"] == len(filters)
        assert row["us_per_event"] > 0 and row["bytes_per_constraint"] > 0  # type: ignore[operator]
        if not row["rounds"]:
            assert row["excluded_per_event"] == 0 and row["saved_percent"] == 0


def test_both_forms_count_alike() -> None:
    """They find and rule out the same; where nobody is done early, their counters go up as often."""
    flat, plain = (rows(form, each=(1, 3)) for form in (FLAT, PLAIN))
    assert len(flat) == 6
    for one, other in zip(flat, plain, strict=True):
        same = ("constraints", "interfaces", "found_per_event", "excluded_per_event")
        assert [one[name] for name in same] == [other[name] for name in same]
    assert [row["counted_per_event"] for row in flat[:3]] == [row["counted_per_event"] for row in plain[:3]]


def test_rounds_and_early_exits_save_counting() -> None:
    """More rounds rule out more; fewer interfaces are done sooner."""
    central, few = rows(each=(1,), constraints=10_000), rows(interfaces=(2,), constraints=10_000)
    counted = [row["counted_per_event"] for row in central]
    assert counted == sorted(counted, reverse=True) and counted[0] > counted[-1]
    assert few[0]["counted_per_event"] < counted[0]  # type: ignore[operator]


def test_interfaces_have_from_one_to_nearly_twice_as_many_filters() -> None:
    """Every filter has an interface, and every interface a filter."""
    of_filter = counting._spread(10_000, 4, 1, 0)
    sizes = {int(each) for each in set(map(tuple, [of_filter])).pop()}
    assert sizes == set(range(max(sizes) + 1)) and len(of_filter) == 10_000
    counts = [of_filter.tolist().count(each) for each in range(max(sizes))]
    assert min(counts) == 1 and max(counts) == 7
    assert counting._spread(10, 1, 1, 0).tolist() == list(range(10))


def test_a_path_takes_what_its_routers_take() -> None:
    """Each has all filters, divided in another way; what is counted is of the first."""
    [row, *_] = rows(interfaces=(5,), hops=3)
    assert row["hops"] == 3 and row["interfaces"] == 5


def test_a_table_has_interfaces_or_filters_each(tmp_path: Path) -> None:
    """Not both, and not neither."""
    file = tmp_path / "small.toml"
    text = 'kind = "counting"\ntitle = "t"\nstatement = "s"\nseeds = 1\n[[tables]]\nlabel = "a"\n'
    for more in ("", "interfaces = [3]\nfilters_per_interface = [1]\n"):
        file.write_text(f"{text}constraints = [100]\n{more}")
        with pytest.raises(ConfigError, match="either these or filters_per_interface"):
            read_simulation(file)
    file.write_text(f"{text}constraints = [100]\ninterfaces = [3]\n")
    assert read_simulation(file).kind.timed
