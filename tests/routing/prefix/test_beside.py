"""The index of the filters beside the tree."""

from amounts import often
from filter_world import WORLD
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import ARRAYS, some_filters

from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.beside import Beside

numbered = st.lists(st.tuples(some_filters.filter(bool), st.booleans()), max_size=12)


@often
@given(numbered, st.sampled_from([*(dict(event.attributes) for event in WORLD), *ARRAYS]))
def test_the_index_finds_what_brute_force_does(filters: list[tuple[Filter, bool]], attributes: dict) -> None:  # type: ignore[type-arg]
    """The numbers, in order, of the filters that may hold; those taken out are gone, the rest is found."""
    index = Beside()
    for number, (filter_, _) in enumerate(filters):
        index.add(number, filter_)
    event = Event(attributes)
    assert index.match(event) == [n for n, (each, _) in enumerate(filters) if event.may_match((each,))]
    for number, (_, goes) in enumerate(filters):
        if goes:
            index.remove(number)
    left = [(n, each) for n, (each, goes) in enumerate(filters) if not goes]
    assert index.match(event) == [n for n, each in left if event.may_match((each,))]
    assert len(index) == len(left)
    for number, _ in left:
        index.remove(number)
    assert not any(vars(index).values()), "nothing is left of what was taken out"
