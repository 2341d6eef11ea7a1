"""Random CESQL expressions, and events that they speak of."""

from hypothesis import strategies as st

from branchline.routing.cesql.casts import INTEGERS
from branchline.routing.cesql.functions import FUNCTIONS
from branchline.routing.cesql.text import read_pattern
from branchline.routing.cesql.tree import (
    All,
    Among,
    Any,
    Arithmetic,
    Calculate,
    Call,
    Compare,
    Constant,
    Exists,
    Identifier,
    Like,
    Negate,
    Node,
    Not,
    Xor,
)
from branchline.routing.values import JsonValue, Operator

NAMES = ("a", "b", "c")
TEXTS = (
    "",
    "a",
    "ab",
    "1",
    "+1",
    "-0",
    "007",
    "2.5",
    "true",
    "FALSE",
    "1e-07",
    "2147483648",
    "%",
    "a_b",
    "it's",
)
NUMBERS = (0, 1, -1, 7, 2.5, 1.0, -0.0, 1e-07, 1e300, 2**31 - 1, 2**31, -(2**31), 10**30)
event_values: st.SearchStrategy[JsonValue] = st.sampled_from((None, True, False, {"a": 1}, *NUMBERS, *TEXTS))
events = st.dictionaries(st.sampled_from(NAMES), event_values)
integers = st.sampled_from((0, 1, 2, 7, -1, INTEGERS[0], INTEGERS[-1])) | st.integers(
    INTEGERS[0], INTEGERS[-1]
)
constants = st.builds(Constant, st.booleans() | integers | st.sampled_from(TEXTS))
identifiers = st.builds(Identifier, st.sampled_from(NAMES))
patterns = st.from_regex(r"(?:[ab1e%_'\"]|\\[ab%_]){,5}", fullmatch=True).map(read_pattern)
equality = st.sampled_from((Operator.EQ, Operator.NE))
simple: st.SearchStrategy[Node] = st.one_of(
    st.builds(Compare, identifiers, equality, constants),
    st.builds(Compare, constants, equality, identifiers),
    st.builds(Like, identifiers, patterns),
    st.builds(Among, identifiers, st.lists(constants, min_size=1, max_size=3).map(tuple)),
    st.builds(Exists, st.sampled_from(NAMES)),
)
calls = st.sampled_from(sorted(FUNCTIONS)).flatmap(
    lambda name: st.builds(
        Call,
        st.just(name),
        st.lists(constants | identifiers, max_size=3).map(tuple),
    )
)


def _chains(
    join: type[All] | type[Any] | type[Xor], terms: st.SearchStrategy[Node]
) -> st.SearchStrategy[Node]:
    def flat(several: list[Node]) -> Node:
        parts = [term.terms if isinstance(term, join) else (term,) for term in several]
        return join(tuple(part for some in parts for part in some))

    return st.lists(terms, min_size=2, max_size=3).map(flat)


def _larger(made: st.SearchStrategy[Node], rest: bool) -> st.SearchStrategy[Node]:
    logic = _chains(All, made) | _chains(Any, made) | st.builds(Not, made)
    if not rest:
        return logic
    return st.one_of(
        logic,
        _chains(Xor, made),
        st.builds(Compare, made, st.sampled_from(Operator), made),
        st.builds(Calculate, made, st.sampled_from(Arithmetic), made),
        st.builds(Negate, made),
        st.builds(Like, made, patterns),
        st.builds(Among, made, st.lists(made, min_size=1, max_size=3).map(tuple)),
    )


def _trees(leaves: st.SearchStrategy[Node], rest: bool) -> st.SearchStrategy[Node]:
    made = leaves
    for _ in range(3):
        made = made | _larger(made, rest)
    return made


filters = _trees(simple, rest=False)
nodes = _trees(simple | calls | constants | identifiers, rest=True)
