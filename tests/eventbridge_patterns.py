"""Random EventBridge patterns, and events that they often match."""

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "a.b", "$or")
TEXTS = ("", "a", "A", "ab", "ba", "*", "a*b", "\\", "1", "true", "ß", "SS", "10.0.0.1", "10.9.0.1", "::1")
NUMBERS = (0, 1, 1.0, -1, 2.5, -0.0, 1e300, 2**53, 2**53 + 1, float(2**53))

texts = st.sampled_from(TEXTS)
some_text = texts.filter(bool)
numbers = st.sampled_from(NUMBERS)
names = st.sampled_from(NAMES)
_pieces = st.sampled_from(("a", "b", "A", "ab", "\\*", "\\\\"))
_ends = _pieces | st.just("")
wildcards = _ends | st.builds(
    lambda first, inner, last: "*".join((first, *inner, last)), _ends, st.lists(_pieces, max_size=2), _ends
)


def one_or_more(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, min_size=1, max_size=3)


def holding(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values.map(lambda value: {name: value})


def ranges(low: Any, high: Any) -> Any:
    return [">=", min(low, high), "<", max(low, high)]


affixes = some_text | holding("equals-ignore-case", some_text)
alternatives: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    texts,
    numbers,
    holding("prefix", affixes | st.just("")),
    holding("suffix", affixes | st.just("")),
    holding("equals-ignore-case", texts),
    holding("wildcard", wildcards),
    holding("exists", st.booleans()),
    holding("cidr", st.sampled_from(("10.0.0.0/8", "10.9.9.9/16", "10.0.0.1/32", "::/0", "0.0.0.0/0"))),
    holding("numeric", st.tuples(st.sampled_from(("=", "<", "<=", ">", ">=")), numbers).map(list)),
    holding(
        "numeric",
        st.tuples(numbers, numbers).filter(lambda ends: ends[0] != ends[1]).map(lambda ends: ranges(*ends)),
    ),
    holding(
        "anything-but",
        st.one_of(
            one_or_more(texts),
            one_or_more(numbers),
            holding("prefix", one_or_more(some_text)),
            holding("suffix", one_or_more(some_text)),
            holding("wildcard", one_or_more(wildcards)),
            holding("equals-ignore-case", one_or_more(texts)),
        ),
    ),
)
fields = st.lists(alternatives, min_size=1, max_size=3)
patterns: st.SearchStrategy[Any] = st.recursive(
    st.dictionaries(names, fields, min_size=1, max_size=2),
    lambda smaller: st.one_of(
        st.dictionaries(names, fields | smaller, min_size=1, max_size=2),
        st.builds(
            lambda several, beside: {"$or": several, **beside},
            st.lists(smaller, min_size=2, max_size=3),
            st.dictionaries(names.filter(lambda name: name != "$or"), fields, max_size=1),
        ),
    ),
    max_leaves=4,
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | texts | numbers,
    lambda smaller: st.lists(smaller, max_size=3) | st.dictionaries(names, smaller, max_size=2),
    max_leaves=6,
)
events = st.dictionaries(names, values, max_size=3)


@st.composite
def events_for(draw: st.DrawFn, pattern: Any) -> dict[str, Any]:
    """Events that have what the pattern names, most of the time, so that many match."""
    event: dict[str, Any] = {}
    for name, content in pattern.items():
        if name == "$or" and isinstance(content, list) and any(map(is_pattern, content)):
            event |= draw(events_for(draw(st.sampled_from(content))))
        elif draw(st.integers(0, 9)):
            below = events_for(content) if isinstance(content, dict) else near(content)
            event[name] = draw(below | st.lists(below | values, min_size=1, max_size=2))
    return event


def is_pattern(value: Any) -> bool:
    return isinstance(value, dict) and set(value) <= set(NAMES)


def near(alternatives: list[Any]) -> st.SearchStrategy[Any]:
    """The texts and numbers within the alternatives, what is close to them, and others."""
    found: list[Any] = []
    pending = list(alternatives)
    while pending:
        match pending.pop():
            case dict() as members:
                pending += members.values()
            case list() as several:
                pending += several
            case str() as text:
                found += [text, text + "b", "b" + text, text.swapcase()]
            case bool() | None as value:
                found += [value, {}, []]
            case number:
                found += [number, number - 1, number + 1]
    return st.sampled_from(found) | st.sampled_from([*TEXTS, *NUMBERS, None, True])


meetings = patterns.flatmap(lambda pattern: st.tuples(st.just(pattern), events_for(pattern) | events))
