"""Methods in one word."""

from dataclasses import replace
from itertools import product

import pytest
from every_method import EVERY_METHODS, every_pair

from branchline.routing.methods.choosing import KINDS, read_methods, spelled
from branchline.routing.methods.naming import FORWARDING, MATCHING, OPTIMISATIONS, Methods, misfit

OPTIMISED = [
    replace(methods, optimise=tuple(OPTIMISATIONS))
    for methods in EVERY_METHODS
    if methods.forwarding == "rematch"
]


@pytest.mark.parametrize("methods", [*EVERY_METHODS, *OPTIMISED], ids=spelled)
def test_a_word_says_which_methods_it_stands_for(methods: Methods) -> None:
    """What is spelled reads back, in any order of its parts, and with either sign between them."""
    word = spelled(methods)
    assert read_methods(word) == methods
    first, *rest = word.split("+")
    assert read_methods("+".join((*rest, first))) == methods
    assert read_methods(word.replace("+", " / ")) == methods


def test_the_usual_methods_have_the_shortest_word() -> None:
    """What is as usual is left out, and may be said."""
    assert spelled(Methods()) == "prefix"
    assert read_methods("tree") == read_methods("prefix+tree") == Methods()


def test_every_name_says_what_it_is() -> None:
    """No two kinds have a name in common, and none has a sign of the word in it."""
    names = [name for known in KINDS.values() for name in known]
    assert len(set(names)) == len(names)
    assert not set("+/( ") & set("".join(names))


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("flood", "'flood' is no method; there are prefix, "),
        ("", "'' is no method"),
        ("prefix+", "'' is no method"),
        ("rematch+prefix", "'rematch' and 'prefix' are both for forwarding"),
        ("rematch+table(", "'table(' is no method"),
        ("prefix+table", "Routing Tree"),
        ("prefix+covering", "prefix forwarding matches content once"),
    ],
)
def test_what_names_no_methods_is_refused_with_the_reason(word: str, why: str) -> None:
    """Unknown names, two of a kind, and what does not fit together."""
    read = read_methods(word)
    assert isinstance(read, str) and why in read


def test_the_full_grid_has_any_two_names_that_go_together() -> None:
    """Also those that go with little else."""
    grid = {(each.forwarding, each.matching) for each in every_pair()}
    assert grid == {each for each in product(FORWARDING, MATCHING) if misfit(Methods(*each)) is None}
    optimised = {(each.matching, each.optimise) for each in every_pair() if each.optimise}
    assert len(optimised) == len(MATCHING) * len(OPTIMISATIONS)
