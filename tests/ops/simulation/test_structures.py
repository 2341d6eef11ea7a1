"""What is said of posets and forests is what a recount finds."""

from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from branchline.kafka.errors import ConfigError
from branchline.ops.simulation import structures
from branchline.ops.simulation.kind import Case, Row
from branchline.ops.simulation.simulation import read_simulation
from branchline.ops.simulation.structures import STRUCTURES, Spec
from branchline.ops.simulation.structures_ranges import (
    GAUSSIAN,
    UNIFORM,
    VALUES,
    ZIPF,
    Ranges,
    covered_share,
    minimal,
)
from branchline.ops.simulation.tables import check_rows
from branchline.routing.filters import Filter, covers
from branchline.routing.posets.checking import minimal_cover

RANGES = Ranges(UNIFORM, 2)


def drawn(ranges: Ranges, count: int) -> list[Filter]:
    return list(islice(ranges.filters(Random("1 filters")), count))


def rows(structure: str) -> list[Row]:
    spec = Spec({"it": RANGES}, (structure,), 4, (30, 80), 10)
    result = structures.run(spec, Case(1, {"ranges": "it", "structure": structure}), lambda _: None)
    check_rows(structures.KIND.columns, result.rows)
    assert not result.failures
    return result.rows


@pytest.mark.parametrize("structure", STRUCTURES)
def test_sizes_are_recounted(structure: str) -> None:
    """Roots are the minimal cover; what keeps all has all, what has no redundance the least there can be."""
    filters = drawn(RANGES, 80)
    for row in rows(structure):
        asked = [(each, number % 4) for number, each in enumerate(filters[: int(row["subscriptions"])])]
        needed = {
            (one, who)
            for one, who in asked
            if not any(who == other_who and one != other and covers(other, one) for other, other_who in asked)
        }
        assert row["roots"] == len(minimal_cover(each for each, _ in asked))
        if structure in ("plain", "combined"):
            assert row["entries"] == len(set(asked))
        elif structure in ("poset", "non-redundant"):
            assert row["entries"] == len(needed)
        else:
            assert len(needed) <= int(row["entries"]) <= len(asked)
        assert row["insert_us"] > 0 and row["delete_us"] > 0  # type: ignore[operator]


def test_a_poset_tests_nothing_to_delete() -> None:
    """A forest does, where children have to find another place."""
    assert [row["delete_tests"] for row in rows("poset")] == [0, 0]
    assert rows("plain")[-1]["delete_tests"] > 0  # type: ignore[operator]


def test_brute_force_in_arrays_is_brute_force() -> None:
    """The minimal cover and the share of pairs that are covered, as asked one by one."""
    filters = drawn(Ranges(UNIFORM, 1), 60)
    assert minimal(filters) == minimal_cover(filters)
    pairs = [(one, other) for one in filters for other in filters if one is not other]
    assert covered_share(filters) == sum(covers(*pair) for pair in pairs) / len(pairs)


@pytest.mark.parametrize("kind", [UNIFORM, GAUSSIAN, ZIPF])
def test_ends_are_distributed_as_they_say(kind: str) -> None:
    """Of 4,000 ends: a tenth in the middle tenth, or more; for Zipf a tenth of all are the first value."""
    found = [
        cut[1]
        for filter_ in drawn(Ranges(kind, 1), 2_000)
        for each in filter_
        for cut in each[2]
        if cut[1] >= 0
    ]
    assert len(found) == 4_000 and max(found) < VALUES
    middle = sum(0.45 * VALUES <= each < 0.55 * VALUES for each in found) / len(found)
    first = Counter(found)[0] / len(found)
    assert (middle < 0.15) == (kind != GAUSSIAN) and (first > 0.05) == (kind == ZIPF)
    assert all(each[0][2][0] < each[0][2][1] for each in drawn(Ranges(kind, 1), 100))


def test_narrow_ranges_are_as_narrow_as_they_say() -> None:
    """No wider than the share of all values; less of them is covered."""
    narrow = drawn(Ranges(UNIFORM, 2, 0.2), 300)
    widths = [each[2][1][1] - each[2][0][1] for filter_ in narrow for each in filter_]
    assert max(widths) <= 0.2 * VALUES
    assert covered_share(narrow) < covered_share(drawn(RANGES, 300))


def test_an_unknown_structure_is_refused(tmp_path: Path) -> None:
    """With what there is; and ranges with the same label are."""
    file = tmp_path / "small.toml"
    text = 'kind = "structures"\ntitle = "t"\nstatement = "s"\nseeds = 1\ncheckpoints = [5]\n'
    ranges = '[[ranges]]\nlabel = "a"\ndistribution = "zipf"\ndimensions = 1\n'
    file.write_text(f'{text}structures = ["tree"]\n{ranges}')
    with pytest.raises(ConfigError, match="no structure 'tree'"):
        read_simulation(file)
    file.write_text(text + ranges + ranges)
    with pytest.raises(ConfigError, match="another's"):
        read_simulation(file)
    file.write_text(text + ranges)
    assert read_simulation(file).kind.timed
