"""The index of trees finds what asking each tree finds, in whatever form they are kept."""

import strategies as our
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from branchline.routing.boolean.index import TreeIndex
from branchline.routing.boolean.trees import Node, holds, least, leaves, may_match, tree_of
from branchline.routing.boolean.words import Words
from branchline.routing.event import Event
from branchline.routing.filters import Constraint
from branchline.routing.values import JsonValue

Attributes = dict[str, JsonValue]
expressions = our.expressions(depth=2)


@st.composite
def drawn_trees(draw: st.DrawFn) -> Node:
    return tree_of(draw(expressions)).root


trees = drawn_trees()


def asked(kept: "dict[Node, int]", attributes: Attributes) -> tuple[set[int], int, int]:
    """What each tree says when it is asked by itself, and what counting should count."""
    event = Event(attributes)
    distinct = {each for tree in kept for each in leaves(tree)}
    fulfilled: set[Constraint] = {each for each in distinct if event.may_match(((each,),))}
    found = {number for tree, number in kept.items() if may_match(tree, event)}
    candidates = [tree for tree in kept if sum(each in fulfilled for each in leaves(tree)) >= least(tree) > 0]
    assert all(holds(tree, fulfilled.__contains__) is (number in found) for tree, number in kept.items())
    return found, len(fulfilled), len(candidates)


class Churn(RuleBasedStateMachine):
    """Trees come and go, with so few in the plain form that there are several tiers."""

    def __init__(self) -> None:
        super().__init__()
        self.index = TreeIndex(plain_most=2)
        self.kept: dict[Node, int] = {}

    @rule(several=st.lists(trees, min_size=1, max_size=6))
    def add(self, several: list[Node]) -> None:
        for tree in several:
            if tree not in self.kept:
                number = self.index.add(tree)
                assert number not in self.kept.values()
                self.kept[tree] = number

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.kept:
            for tree in data.draw(st.lists(st.sampled_from(list(self.kept)), unique=True, max_size=4)):
                del self.kept[tree]
                self.index.remove(tree)

    @rule(attributes=our.events())
    def match(self, attributes: Attributes) -> None:
        """Each tree that holds is found once, and what is counted does not hang on how trees came."""
        matched = self.index.match(Event(attributes))
        assert len(set(matched.trees)) == len(matched.trees)
        found, fulfilled, candidates = asked(self.kept, attributes)
        assert set(matched.trees) == found
        assert (matched.predicates, matched.evaluated) == (fulfilled, candidates)

    @invariant()
    def as_large_as_what_is_there(self) -> None:
        assert len(self.index) == len(self.kept)
        assert set(self.index.trees()) == set(self.kept)
        assert self.index.associations == sum(len(list(leaves(tree))) for tree in self.kept)
        assert self.index.predicates == len({each for tree in self.kept for each in leaves(tree)})


TestChurn = Churn.TestCase
TestChurn.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)


@given(st.lists(trees, min_size=1, max_size=30, unique=True), st.lists(our.events(), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_tiers_find_what_the_plain_form_finds(several: list[Node], events: list[Attributes]) -> None:
    """The same trees, and the same is counted, whatever is kept in arrays."""
    plain, tiers = TreeIndex(), TreeIndex(plain_most=0)
    numbers = {tree: plain.add(tree) for tree in several}
    same = {tiers.add(tree): numbers[tree] for tree in several}
    for attributes in events:
        one, other = plain.match(Event(attributes)), tiers.match(Event(attributes))
        assert sorted(one.trees) == sorted(same[each] for each in other.trees)
        assert one[1:] == other[1:]


def test_an_empty_index_is_as_if_nothing_had_been() -> None:
    """After the last tree is gone nothing is left to ask."""
    index = TreeIndex(plain_most=1)
    several = list({tree_of(each).root for each in SOME})
    for _ in range(3):
        for tree in several:
            index.add(tree)
        for tree in several:
            index.remove(tree)
    assert (len(index), index.predicates, index.associations) == (0, 0, 0)
    assert index.match(Event({"a": 1})) == ([], 0, 0)


SOME = [our.Comparison(("a",), operator, value) for operator in our.Operator for value in range(10)]


@given(st.lists(st.text("ab", max_size=4), max_size=12, unique=True), st.text("abc", max_size=6))
def test_words_are_found_however_many_there_are(words: list[str], text: str) -> None:
    """Each word that the text contains, once, also after others are gone."""
    index = Words((word, number) for number, word in enumerate(words))
    for word in words[::3]:
        index.remove(word)
    found = list(index.within(text))
    expected = [number for number, word in enumerate(words) if number % 3 and word in text]
    assert sorted(found) == expected
