"""What the kinds `strategies` and `refreshes` measure, in a small network."""

from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

from branchline.ops.simulation import refreshes, strategies
from branchline.ops.simulation.kind import Case, Kind
from branchline.ops.simulation.overlapping import Overlapping
from branchline.ops.simulation.refreshes import Policy
from branchline.ops.simulation.shapes import Shape
from branchline.ops.simulation.tables import check_rows

TREE = Shape("balanced-tree", 5)
SPEC = strategies.Spec(("simple", "identity", "covering", "cbcb"), (10, 40), (0.8,), 10, 20, TREE)
CHURN = refreshes.Spec(
    20,
    4,
    8,
    0.8,
    100,
    TREE,
    {
        "covering": Policy("covering", 0, 1),
        "never": Policy("cbcb", 0, 1),
        "all": Policy("cbcb", 2, 5),
    },
)


def rows(kind: Kind[Any], spec: object, **swept: str | float) -> list[dict[str, Any]]:
    result = kind.run(spec, Case(1, {**swept}), lambda _: None)
    check_rows(kind.columns, result.rows)
    assert result.failures == [], "each got what it had asked for"
    return [dict(row) for row in result.rows]


def test_strategies_tell_less_and_less_and_deliver_the_same() -> None:
    """Flooding tells all brokers of all, identity of what is different, covering of what is not covered."""
    found = {name: rows(strategies.KIND, SPEC, strategy=name, overlap=0.8)[-1] for name in SPEC.strategies}
    assert len({row["delivered"] for row in found.values()}) == 1
    assert found["simple"]["filters_told"] == 40 * 4, "each of 40 over each of 4 links"
    told = [row["filters_told"] for row in found.values()]
    assert told[0] >= told[1] > told[2] >= told[3] > 0
    assert found["simple"]["table"] == 40 * 4 / 5
    assert found["covering"]["table"] < found["identity"]["table"]
    assert found["covering"]["covering_tests"] > 0 == found["identity"]["covering_tests"]
    assert found["covering"]["needless_per_event"] == 0


def test_subscribers_spare_brokers_tests() -> None:
    """All who come compare slices for a broker, or claim where their filters go; what is told is the same."""
    names = ("covering+poset", "covering+rto(5)", "covering+ff")
    spec = replace(SPEC, strategies=names, subscriptions=(40, 160), batch=20)
    alone, offloaded, fixed = (rows(strategies.KIND, spec, strategy=name, overlap=0.8)[-1] for name in names)
    for row in (offloaded, fixed):
        assert row["spared"] > 0 == alone["spared"]
        assert row["covering_tests"] < alone["covering_tests"]
        assert (row["table"], row["delivered"]) == (alone["table"], alone["delivered"])


def test_tables_inflate_and_refreshes_deflate_them() -> None:
    """To what covering has, where everybody is refreshed."""
    found = {label: rows(refreshes.KIND, CHURN, policy=label) for label in CHURN.policies}
    tables = {label: [row["table"] for row in its] for label, its in found.items()}
    assert tables["never"] == sorted(tables["never"]) and tables["never"][-1] > tables["never"][0]
    assert tables["never"][-1] > tables["covering"][-1]
    assert tables["all"][2] == tables["covering"][2] and tables["all"][4] == tables["covering"][4]
    needless = {label: sum(row["needless_per_event"] for row in its) for label, its in found.items()}
    assert needless["never"] > 0 == needless["covering"]


def test_the_overlap_says_how_many_are_made_of_others() -> None:
    """None at 0; at 1, all but the first are of its kind."""
    afresh, made = (list(islice(Overlapping(each).wishes(Random(3)), 200)) for each in (0.0, 1.0))
    assert len(set(afresh)) > 190
    assert len(set(made)) < 160 and {wish.kind for wish in made} == {made[0].kind}
