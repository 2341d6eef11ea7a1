"""Kind `optimise`: what it counts is what an oracle counts, and each optimisation shows where it should."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from branchline.kafka.errors import ConfigError
from branchline.ops.simulation import optimising
from branchline.ops.simulation.auctions import NARROW, Form, subscriptions
from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Case, Row
from branchline.ops.simulation.optimising import Spec, Table
from branchline.routing.compiling import Compiled, compile_expression

TABLES = {
    "none": Table("table", ()),
    "covering": Table("table", ("covering",)),
    "merging": Table("table", ("merging",)),
    "imperfect": Table("table", ("imperfect(60)",)),
    "replace": Table("table", ("replace(30)",)),
    "prune": Table("table", ("prune(70)",)),
    "all": Table("table", ("covering", "merging", "imperfect(60)", "replace(30)")),
    "trees": Table("boolean", ("prune(70)",)),
}


def rows(form: Form, tables: Mapping[str, Table] = TABLES) -> dict[str, Row]:
    spec = Spec(600, 2, (form,), 60, 40, tables)
    result = optimising.run(spec, Case(1, {"form": form.value}), lambda _: None)
    assert result.failures == []
    return {str(row["table"]): row for row in result.rows}


@pytest.mark.parametrize("form", Form)
def test_optimisations_differ_as_they_should(form: Form) -> None:
    """Exact ones send nothing extra, and each makes fewer of what it is for."""
    found = rows(form)
    none = found["none"]
    for name, row in found.items():
        assert row["entries"] <= none["entries"], name
        assert row["copies_per_event"] == pytest.approx(none["copies_per_event"] + row["extra_per_event"])
    assert found["covering"]["extra_per_event"] == found["merging"]["extra_per_event"] == 0
    assert found["covering"]["entries"] < none["entries"]
    assert found["imperfect"]["entries"] <= found["merging"]["entries"]
    assert found["replace"]["predicates"] < none["predicates"]
    assert found["prune"]["associations"] < none["associations"]
    assert found["prune"]["extra_per_event"] > 0


@pytest.mark.parametrize("form", Form)
def test_what_is_found_is_what_an_oracle_finds(form: Form) -> None:
    """The table that is not optimised finds just what subscriptions match, wherever it stands in the file."""
    first = rows(form, {"none": TABLES["none"]})["none"]
    later = rows(form, {"prune": TABLES["prune"], "none": TABLES["none"]})["none"]
    for name in ("entries", "predicates", "associations", "copies_per_event", "extra_per_event"):
        assert first[name] == later[name]


@pytest.mark.parametrize("form", Form)
def test_no_subscription_is_a_contradiction(form: Form) -> None:
    """Each has a cover that says just what it asks for."""
    made = map(compile_expression, islice(subscriptions(Random(2), NARROW, form=form), 60))
    assert all(isinstance(each, Compiled) and each.exact for each in made)


def test_a_table_that_cannot_be_is_refused() -> None:
    """With the reason that any configuration would get."""
    given = {"subscriptions": 5, "tables": [{"label": "one", "matching": "table", "optimise": ["hiding"]}]}
    with pytest.raises(ConfigError, match="'hiding' is not known"):
        optimising.read(Section(Path("some.toml"), given))
