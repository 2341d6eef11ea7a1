"""Random data for the property tests.

Names, paths and values come from small pools, so that filters and events meet often. The pools hold what
goes wrong easily: names with dots and quotes, keywords, true against 1, integers that no float can hold.
"""

from hypothesis import strategies as st

from branchline.routing.expression import (
    And,
    Anything,
    Between,
    Comparison,
    Constraint,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Path,
)
from branchline.routing.values import JsonValue

NAMES = ("a", "b", "items", "a.b", "in", 'say "x"', "", "größe")
BOOLEANS = (False, True)
NUMBERS = (0, 1, 1.0, -1, 2.5, -0.0, 1e300, 5e-324, 2**53, 2**53 + 1, float(2**53), -(10**30))
TEXTS = ("", "a", "ab", "ba", "1", "true", "it's", "%", "a_b", "é", "\n", "𝄞")
PATTERNS = ("", "%", "_", "a%", "%b", "%a%", "_b", "a_", "%_%", "it's", "__%")

names = st.sampled_from(NAMES)
literals: st.SearchStrategy[Literal] = st.sampled_from(BOOLEANS + NUMBERS + TEXTS)
patterns = st.sampled_from(PATTERNS) | st.text("ab%_", max_size=6)


def paths(names: st.SearchStrategy[str] = names, longest: int = 3) -> st.SearchStrategy[Path]:
    return st.lists(names, min_size=1, max_size=longest).map(tuple)


few_names = st.sampled_from(("a", "b", "items"))
short_paths = paths(few_names, longest=2)


def constraints(
    paths: st.SearchStrategy[Path] = short_paths, literals: st.SearchStrategy[Literal] = literals
) -> st.SearchStrategy[Constraint]:
    one_type = st.sampled_from((BOOLEANS, NUMBERS, TEXTS))
    ends = one_type.flatmap(lambda pool: st.tuples(st.sampled_from(pool), st.sampled_from(pool)))
    return st.one_of(
        st.builds(Comparison, paths, st.sampled_from(Operator), literals),
        st.builds(lambda path, ends: Between(path, *ends), paths, ends),
        st.builds(In, paths, st.lists(literals, min_size=1, max_size=4).map(tuple)),
        st.builds(Like, paths, patterns),
        st.builds(IsNull, paths),
    )


any_constraint = constraints()


def expressions(
    constraints: st.SearchStrategy[Constraint] = any_constraint, depth: int = 3
) -> st.SearchStrategy[Expression]:
    """Expressions as a reader makes them: AND and OR have two terms or more, and none of their own kind."""
    made: st.SearchStrategy[Expression] = constraints | st.just(Anything())
    for _ in range(depth):
        # Not `made.map(Not)`: a map moves into every branch of `made`, and most expressions would be a NOT.
        made = made | _joined(And, made) | _joined(Or, made) | st.builds(Not, made)
    return made


def _joined(
    join: type[And] | type[Or], terms: st.SearchStrategy[Expression]
) -> st.SearchStrategy[Expression]:
    others = terms.filter(lambda term: not isinstance(term, join))
    return st.lists(others, min_size=2, max_size=3).map(lambda several: join(tuple(several)))


def values(
    names: st.SearchStrategy[str] = names, arrays: bool = True, leaves: int = 12
) -> st.SearchStrategy[JsonValue]:
    scalars = st.none() | literals

    def larger(smaller: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
        objects = st.dictionaries(names, smaller, max_size=3)
        return objects | st.lists(smaller, max_size=3) if arrays else objects

    return st.recursive(scalars, larger, max_leaves=leaves)


def events(
    names: st.SearchStrategy[str] = names, arrays: bool = True
) -> st.SearchStrategy[dict[str, JsonValue]]:
    """An event's attributes: objects within objects, arrays, nulls, and names that are missing."""
    return st.dictionaries(names, values(names, arrays), max_size=4)
