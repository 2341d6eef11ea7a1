"""Where filters go in a Routing Tree: the paper's cases, and what they leave open."""

import pytest
from prefix_scripts import cover

from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.tree import describe_tree


def grown(*texts: str, settings: Settings | None = None) -> Optimizer:
    """An optimizer that has heard of these filters in this order."""
    optimizer = Optimizer(1, settings)
    for text in texts:
        optimizer.subscribe(cover(text))
    return optimizer


def tree(*texts: str, settings: Settings | None = None) -> list[str]:
    """The tree that these filters make in this order, line by line."""
    part = grown(*texts, settings=settings).part(0)
    return describe_tree(part.tree, part.tree)


def test_table_2_a_range_that_starts_lower() -> None:
    """Against x>5, x<9∧y>2 is split: what they share goes below it, and x<=5∧y>2 beside it."""
    assert tree("x > 5", "x < 9 AND y > 2") == [
        "  1 x <= 5",
        "    0 y > 2",
        "  0 x > 5",
        "    0 x > 5 AND x < 9",
        "      0 y > 2",
    ]


def test_table_2_a_range_that_ends_higher() -> None:
    """Against x<=6, x>1∧z<7 is split: what they share goes below it, and x>6∧z<7 beside it."""
    assert tree("x <= 6", "x > 1 AND z < 7") == [
        "  0 x <= 6",
        "    0 x > 1 AND x <= 6",
        "      0 z < 7",
        "  1 x > 6",
        "    0 z < 7",
    ]


def test_a_range_is_split_at_both_ends() -> None:
    """Of a range that partly overlaps two children, three pieces are made, and the middle one adopts."""
    assert tree("x < 2", "x > 8", "x > 4 AND x < 5", "x > 1 AND x < 9") == [
        "  0 x < 2",
        "    0 x > 1 AND x < 2",
        "  3 x >= 2 AND x <= 8",
        "    0 x > 4 AND x < 5",
        "  1 x > 8",
        "    0 x > 8 AND x < 9",
    ]


def test_pieces_that_are_all_there_make_no_node() -> None:
    """A filter whose pieces all equal nodes that are there ends at these."""
    texts = ("x > 5", "x < 9", "x <= 5")
    assert tree(*texts) == tree(*texts[:2])
    assert tree("x > 5", "x <= 5", "x < 9") == ["  1 x <= 5", "  0 x > 5", "    0 x > 5 AND x < 9"]


def test_what_equals_a_child_goes_on_below_it() -> None:
    """The constraint is done with, the rest goes on."""
    assert tree("x > 5 AND y = 1", "x > 5 AND z = 2") == ["  0 x > 5", "    0 y = 1", "    1 z = 2"]


def test_what_a_child_covers_goes_below_it() -> None:
    """The constraint is kept on its way down."""
    assert tree("x > 5", "x > 7 AND y = 1") == ["  0 x > 5", "    0 x > 7", "      0 y = 1"]


def test_all_children_that_a_constraint_covers_move_below_it() -> None:
    """Not one of them only, and those that it does not cover stay."""
    assert tree("x = 1 AND y = 1", "x > 2 AND x < 4", "x < 0", "x > 0 AND x < 9") == [
        "  2 x < 0",
        "  3 x > 0 AND x < 9",
        "    0 x = 1",
        "      0 y = 1",
        "    1 x > 2 AND x < 4",
    ]


def test_what_meets_nothing_is_a_new_child() -> None:
    """Disjoint ranges and other dimensions stand side by side, under numbers in the order they came in."""
    assert tree("x > 5", "x < 3", "y = 1", "x = 'a'") == [
        "  1 x < 3",
        "  0 x > 5",
        "  3 x = 'a'",
        "  2 y = 1",
    ]


def test_words_go_below_words_that_are_part_of_them() -> None:
    """A word covers the words that contain it; unrelated ones stand side by side."""
    assert tree("q LIKE '%cab%'", "q LIKE '%bc%'", "q LIKE '%a%'", "q LIKE '%xbc%'") == [
        "  2 q CONTAINS 'a'",
        "    0 q CONTAINS 'cab'",
        "  1 q CONTAINS 'bc'",
        "    0 q CONTAINS 'xbc'",
    ]


def test_a_word_goes_where_it_went_before() -> None:
    """A node that is put above a word's path does not send the word elsewhere."""
    texts = [f"q LIKE '%{word}%'" for word in ("ab", "c", "abc", "a")]
    assert tree(*texts, texts[2]) == tree(*texts)
    optimizer = grown(*texts)
    optimizer.subscribe(cover("q LIKE '%abc%' AND z = 1"))
    assert "      0 q CONTAINS 'abc'\n        0 z = 1" in optimizer.describe()


def test_the_filter_for_everything_ends_at_the_root() -> None:
    """It makes no node, and is never beside the tree."""
    part = grown("TRUE", settings=Settings(pieces=1, nodes_per_filter=0, spare_nodes=0)).part(0)
    assert part.tree.nodes == 0
    assert not part.overflow


@pytest.mark.parametrize(("pieces", "beside"), [(3, False), (2, True)])
def test_a_filter_of_too_many_pieces_goes_beside_the_tree(pieces: int, beside: bool) -> None:
    """The budget of pieces counts those that the filter would be split into, and may be used up."""
    part = grown("x < 2", "x > 8", "x > 1 AND x < 9", settings=Settings(pieces=pieces)).part(0)
    assert bool(part.overflow) is beside


@pytest.mark.parametrize(("spare", "beside"), [(1, False), (0, True)])
def test_a_filter_of_too_many_nodes_goes_beside_the_tree(spare: int, beside: bool) -> None:
    """The node budget grows with the filters in the tree, and may be used up."""
    settings = Settings(nodes_per_filter=1, spare_nodes=spare)
    part = grown("x = 1", "y = 1 AND z = 1", settings=settings).part(0)
    assert bool(part.overflow) is beside
    assert part.tree.nodes == (1 if beside else 3)


def test_a_filter_that_needs_no_node_is_in_the_tree_beyond_all_budgets() -> None:
    """It ends at nodes that are there."""
    settings = Settings(nodes_per_filter=0, spare_nodes=2)
    part = grown("x = 1 AND y = 1", "x = 1", "z = 1", settings=settings).part(0)
    assert [*part.overflow] == [*cover("z = 1")]
