"""Random filters of the CloudEvents Subscriptions API, and events without arrays that they often match."""

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "a.b", "größe")
TEXTS = ("a", "ab", "ba", "1", "2.5", "true", "null", "-1", "100000000000000000000", "é")
VALUES = (None, True, False, 0, 1, 1.0, -1, 2.5, -0.0, 1e20, 5e-324, *TEXTS, "")

texts = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS), min_size=1, max_size=2)
filters: st.SearchStrategy[Any] = st.recursive(
    st.builds(lambda dialect, texts: {dialect: texts}, st.sampled_from(("exact", "prefix", "suffix")), texts),
    lambda smaller: st.one_of(
        st.builds(
            lambda dialect, several: {dialect: several},
            st.sampled_from(("all", "any")),
            st.lists(smaller, min_size=1, max_size=3),
        ),
        st.builds(lambda one: {"not": one}, smaller),
    ),
    max_leaves=5,
)
documents = filters | st.lists(filters, max_size=3)
single_events = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES) | st.just({}), max_size=4)
