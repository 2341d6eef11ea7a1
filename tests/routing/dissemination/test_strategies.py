"""Strategies as a configuration names them."""

import pytest

from branchline.routing.dissemination.strategies import make_dissemination, strategy_fault
from branchline.routing.limits import LINGER_MS
from branchline.routing.methods.choosing import read_methods, spelled
from branchline.routing.methods.naming import Methods, misfit
from branchline.routing.methods.protocols import OnTree
from branchline.routing.methods.simple import Simple


@pytest.mark.parametrize(
    "text",
    [
        "simple",
        "identity",
        "covering",
        "cbcb",
        "simple+advertised",
        "covering+poset",
        "covering+rto(1)",
        "covering+rto(50)+merging",
        "covering+merging+imperfect(5)+advertised",
    ],
)
def test_a_strategy_is_made(text: str) -> None:
    """Only simple dissemination by itself floods; whatever is made of it goes along the tree."""
    assert strategy_fault(text) is None
    made = make_dissemination(text)
    assert isinstance(made, Simple) == (text == "simple")
    assert not isinstance(made, OnTree) or made.inflating == (text == "cbcb")
    assert (isinstance(made, OnTree) and made.advertising == ("advertised" in text)) or text == "simple"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("flood", "dissemination = 'flood' is not known; known are simple, identity, covering, cbcb"),
        ("merging", "dissemination = 'merging' is not known; known are simple, identity, covering, cbcb"),
        ("covering(2)", "dissemination = 'covering(2)': covering takes no number"),
        ("identity+merging+merging", "dissemination = 'identity+merging+merging' names something twice"),
        (
            "covering+hiding",
            "dissemination = 'hiding' is not known; known are poset, rto, ff, merging, "
            "imperfect, pre-prune, advertised, advertised-counted",
        ),
        ("covering+rto(51)", "dissemination = 'rto(51)': the number must be from 1 to 50"),
        (
            "covering+poset+rto",
            "dissemination = 'covering+poset+rto': poset and rto exclude each other",
        ),
        ("identity+poset", "dissemination = 'identity+poset': poset goes with covering only"),
        (
            "identity+advertised-counted(5)",
            "dissemination = 'advertised-counted(5)': advertised-counted takes no number",
        ),
        (
            "identity+advertised+advertised-counted",
            "dissemination = 'identity+advertised+advertised-counted': advertised refuses what "
            "advertised-counted lets in",
        ),
    ],
)
def test_what_names_no_strategy_is_said(text: str, why: str) -> None:
    """With what there is."""
    assert misfit(Methods(dissemination=text)) == why


def test_advertisements_are_required_or_counted() -> None:
    """Required, they linger for so many seconds as the name says, or a day; counted, they gate nothing."""
    for text, advertising, counting, linger_ms in (
        ("covering+advertised", True, False, LINGER_MS),
        ("identity+merging+advertised(7)", True, False, 7_000),
        ("simple+advertised-counted", False, True, LINGER_MS),
        ("covering", False, False, LINGER_MS),
    ):
        made = make_dissemination(text)
        assert isinstance(made, OnTree)
        assert (made.advertising, made.counting, made.linger_ms) == (advertising, counting, linger_ms)
        assert made.takes_adverts == (advertising or counting)


def test_keys_of_all_go_with_simple_dissemination_only() -> None:
    """Otherwise nobody knows them all; some keys go with any."""
    for text in ("identity", "covering+merging", "simple+advertised"):
        why = misfit(Methods("always-reuse", "table", text))
        assert why is not None and why.startswith("always-reuse names all")
        assert misfit(Methods("partial-reuse(60)", "table", text)) is None


@pytest.mark.parametrize(
    "text", ["identity", "covering+merging", "covering+poset", "covering+imperfect(5)+advertised"]
)
def test_a_strategy_stands_in_the_word_for_all_methods(text: str) -> None:
    """With a mark before each of its parts, since optimisations of tables have the same names."""
    methods = Methods("rematch", "access", text, optimise=("covering",))
    assert read_methods(spelled(methods)) == methods
    assert spelled(Methods(dissemination="covering+merging")) == "prefix+tell-covering+tell-merging"
