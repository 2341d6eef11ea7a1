"""Random data for the property tests.

Names, paths and values come from small pools, so that filters and events meet often. The pools hold what
goes wrong easily: names with dots and quotes, keywords, true against 1, integers that no float can hold,
texts that differ in case only or are moments and addresses.
"""

from hypothesis import strategies as st

from branchline.kafka.record import Headers, Place
from branchline.routing.addresses import Block, read_block
from branchline.routing.control import (
    Change,
    Ended,
    Forgotten,
    Identity,
    Number,
    Operation,
    Request,
    Subscribed,
)
from branchline.routing.dissemination.adverts import Advertised, Unadvertised
from branchline.routing.expression import (
    And,
    Anything,
    Between,
    CompareFields,
    Comparison,
    Constraint,
    Every,
    Expression,
    Has,
    In,
    InBlock,
    IsTrue,
    Matches,
    Not,
    OfKind,
    Or,
    Path,
    Reading,
    SingleConstraint,
)
from branchline.routing.instants import Instant
from branchline.routing.limits import LEASE_MIN_MS
from branchline.routing.optimise.learned import Learned
from branchline.routing.patterns import containing, ending, exactly, like_pattern, starting
from branchline.routing.values import JsonValue, Kind, Literal, Operator

NAMES = ("a", "b", "items", "a.b", "in", "text", 'say "x"', "", "größe")
BOOLEANS = (False, True)
NUMBERS = (0, 1, 1.0, -1, 2.5, -0.0, 1e300, 5e-324, 2**53, 2**53 + 1, float(2**53), -(10**30))
MOMENTS = ("2026-11-16T12:00:00Z", "2026-11-16t13:00:00.000+01:00", "2026-11-16T12:00:00.5Z", "2026-11-16")
ADDRESSES = ("10.1.2.3", "10.1.2.4", "::ffff:10.1.2.3", "2001:db8::1", "010.1.2.3")
CASES = ("a", "A", "aB", "ﬁ", "fi", "straße", "STRASSE")
TEXTS = ("", "a", "ab", "ba", "1", "true", "it's", "%", "a_b", "é", "\n", "𝄞", *CASES, *MOMENTS, *ADDRESSES)
INSTANTS = (Instant(1794830400, ""), Instant(1794830400, "5"), Instant(-62135596800, ""), Instant(-1, "999"))
PATTERNS = ("", "%", "_", "a%", "%b", "%a%", "_b", "a_", "%_%", "it's", "__%", "str%E", "1%", "tr_e")
BLOCKS = ("0.0.0.0/0", "10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/32", "::/0", "::ffff:0:0/96", "2001:db8::1/128")

names = st.sampled_from(NAMES)
scalars = st.sampled_from(BOOLEANS + NUMBERS + TEXTS)
literals: st.SearchStrategy[Literal] = scalars | st.sampled_from(INSTANTS)
blocks: st.SearchStrategy[Block] = st.sampled_from([block for text in BLOCKS if (block := read_block(text))])
kinds = st.sets(st.sampled_from(Kind), min_size=1, max_size=len(Kind) - 1).map(frozenset)
some_texts = st.sampled_from(TEXTS)
patterns = st.one_of(
    st.builds(like_pattern, st.sampled_from(PATTERNS) | st.text("ab%_", max_size=6)),
    *(some_texts.map(form) for form in (exactly, starting, ending, containing)),
)


def paths(names: st.SearchStrategy[str] = names, longest: int = 3) -> st.SearchStrategy[Path]:
    return st.lists(names, min_size=1, max_size=longest).map(tuple)


few_names = st.sampled_from(("a", "b", "items"))
short_paths = paths(few_names, longest=2)


def single_constraints(
    paths: st.SearchStrategy[Path] = short_paths, literals: st.SearchStrategy[Literal] = literals
) -> st.SearchStrategy[SingleConstraint]:
    """Constraints on one value of one attribute, those that EVERY takes."""
    one_type = st.sampled_from((BOOLEANS, NUMBERS, TEXTS, INSTANTS))
    ends = one_type.flatmap(lambda pool: st.tuples(st.sampled_from(pool), st.sampled_from(pool)))
    return st.one_of(
        st.builds(Comparison, paths, st.sampled_from(Operator), literals),
        st.builds(lambda path, ends: Between(path, *ends), paths, ends),
        st.builds(In, paths, st.lists(literals, min_size=1, max_size=4).map(tuple)),
        st.builds(Matches, paths, patterns, st.sampled_from((Reading.TEXT, Reading.CANONICAL))),
        st.builds(lambda path, pattern: Matches(path, pattern.fold(), Reading.FOLDED), paths, patterns),
        st.builds(InBlock, paths, blocks),
        st.builds(OfKind, paths, kinds),
    )


def constraints(
    paths: st.SearchStrategy[Path] = short_paths, literals: st.SearchStrategy[Literal] = literals
) -> st.SearchStrategy[Constraint]:
    single = single_constraints(paths, literals)
    return st.one_of(
        single,
        st.builds(CompareFields, paths, st.sampled_from(Operator), paths),
        st.builds(Has, paths, literals),
        st.builds(Every, single),
    )


any_constraint = constraints()


def expressions(
    constraints: st.SearchStrategy[Constraint] = any_constraint, depth: int = 3
) -> st.SearchStrategy[Expression]:
    """Expressions as a reader makes them: AND and OR have two terms or more, and none of their own kind."""
    made: st.SearchStrategy[Expression] = constraints | st.just(Anything())
    for _ in range(depth):
        # Not `made.map(Not)`: a map moves into every branch of `made`, and most expressions would be a NOT.
        made = made | _joined(And, made) | _joined(Or, made) | st.builds(Not, made) | st.builds(IsTrue, made)
    return made


def _joined(
    join: type[And] | type[Or], terms: st.SearchStrategy[Expression]
) -> st.SearchStrategy[Expression]:
    def flat(several: list[Expression]) -> Expression:
        parts = [term.terms if isinstance(term, join) else (term,) for term in several]
        return join(tuple(part for some in parts for part in some))

    return st.lists(terms, min_size=2, max_size=3).map(flat)


def values(
    names: st.SearchStrategy[str] = names, arrays: bool = True, leaves: int = 12
) -> st.SearchStrategy[JsonValue]:
    def larger(smaller: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
        objects = st.dictionaries(names, smaller, max_size=3)
        return objects | st.lists(smaller, max_size=3) if arrays else objects

    return st.recursive(st.none() | scalars, larger, max_leaves=leaves)


def events(
    names: st.SearchStrategy[str] = names, arrays: bool = True
) -> st.SearchStrategy[dict[str, JsonValue]]:
    """An event's attributes: objects within objects, arrays, nulls, and names that are missing."""
    return st.dictionaries(names, values(names, arrays), max_size=4)


BROKERS = ("dublin", "virginia")
SUBSCRIBERS = ("alice", "bob", "carol")
FILTERS = (
    "TRUE",
    "a < b OR items = 2",
    "a = 1",
    "a <> 1 OR b = 'a'",
    "a IS NULL",
    "items = 1 AND a = 1",
    "items.a = 1 AND items.b > 0",
    "NOT (a LIKE 'a%')",
)
BAD_FILTERS = ("", "a =", "a = 1 AND\n  b ==", "a IN ()")
REQUEST_IDS = ("r1", "r2", "r3", "größe")

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
EVENTS: tuple[dict[str, JsonValue], ...] = (
    {},
    {"a": 1},
    {"a": 2, "b": "a"},
    {"a": "ab", "items": 1},
    {"a": True, "items": [1, 2]},
    {"a": 1, "items": [1, 2, 3]},
    {"a": [1, 2], "items": [0, 1]},
    {"a": None, "b": 1, "items": []},
    {"items": {"a": 1, "b": 1}},
    {"items": [{"a": 1, "b": 0}, {"a": 1, "b": 2}, {"a": 0}]},
)
"""Events that FILTERS tell apart, where a script of many steps needs them quickly."""

legal_names = st.builds(str.__add__, st.sampled_from(_LETTERS), st.text(_LETTERS + "-", max_size=62))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
subscribers = st.sampled_from(SUBSCRIBERS)
subscription_ids = st.sampled_from(("default", "x"))
filter_texts = st.sampled_from(FILTERS)


some_leases = st.sampled_from((None, None, LEASE_MIN_MS, 60_000, LEASE_MIN_MS - 1))
"""Mostly for ever; some that are over soon, and one that is too short."""


def identities(homes: tuple[str, ...] = BROKERS) -> st.SearchStrategy[Identity]:
    return st.builds(Identity, st.sampled_from(homes), subscribers, subscription_ids)


def requests(
    home: str | None = None,
    filters: st.SearchStrategy[str] = filter_texts,
    leases: st.SearchStrategy[int | None] | None = None,
) -> st.SearchStrategy[Request]:
    """Requests that often meet: few subscribers, few subscriptions, few request ids."""
    request_ids = st.none() | st.sampled_from(REQUEST_IDS)
    leases = some_leases if leases is None else leases
    return st.one_of(
        st.builds(
            Request,
            st.just(Operation.SUBSCRIBE),
            subscribers,
            subscription_ids,
            st.just(home),
            filter=filters,
            request=request_ids,
            lease_ms=leases,
        ),
        st.builds(
            Request,
            st.just(Operation.UNSUBSCRIBE),
            subscribers,
            subscription_ids,
            st.just(home),
            request=request_ids,
        ),
        st.builds(
            Request,
            st.just(Operation.RENEW),
            subscribers,
            subscription_ids,
            st.just(home),
            request=request_ids,
            lease_ms=leases,
        ),
    )


numbers = st.builds(Number, st.integers(0, 2**50), st.integers(0, 2**40))


def changes(
    identities: st.SearchStrategy[Identity] | None = None,
    numbers: st.SearchStrategy[Number] = numbers,
    filters: st.SearchStrategy[str] = filter_texts,
    at_ms: st.SearchStrategy[int] | None = None,
    forgetting: bool = True,
) -> st.SearchStrategy[Change]:
    """Changes of all three kinds; without `forgetting`, of the two whose order does not matter."""
    identities = any_identity if identities is None else identities
    asked = st.lists(st.sampled_from(REQUEST_IDS), max_size=3).map(tuple)
    times = st.integers(0, 2**50) if at_ms is None else at_ms
    lasting = st.one_of(
        st.builds(Subscribed, identities, numbers, st.just("sql"), filters, asked, st.integers(0, 2)),
        st.builds(Ended, identities, numbers, times, asked, st.booleans(), st.integers(0, 2)),
    )
    return lasting | st.builds(Forgotten, identities, numbers) if forgetting else lasting


any_identity = identities()

places = st.builds(
    Place,
    st.text(_LETTERS + "ABC._-", min_size=1, max_size=40),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**53),
)

contents = st.none() | st.binary(max_size=12)
foreign_headers: st.SearchStrategy[Headers] = st.lists(
    st.tuples(st.sampled_from(("trace", "größe", "", "BL-id", "x-bl-id")) | texts, contents), max_size=4
).map(lambda headers: tuple(header for header in headers if not header[0].startswith("bl-")))
forged_headers: st.SearchStrategy[Headers] = st.lists(
    st.tuples(
        st.sampled_from(("bl-id", "bl-origin", "bl-only", "bl-prefix", "bl-owed", "bl-code", "bl-")), contents
    ),
    max_size=3,
).map(tuple)

learned: st.SearchStrategy[Learned] = st.builds(
    Learned,
    st.integers(0, 2**50),
    st.integers(1, 2**50),
    st.integers(0, 2**50),
    st.binary(max_size=40).map(lambda data: data[: len(data) // 10 * 10]),
)


def advertised(identities: st.SearchStrategy[Identity]) -> st.SearchStrategy[Advertised]:
    """Advertisements that stand, however they are spelled."""
    requests = st.lists(texts, max_size=3).map(tuple)
    return st.builds(
        Advertised, identities, numbers, texts, texts, requests, st.integers(0, 3), st.booleans()
    )


def unadvertised(identities: st.SearchStrategy[Identity]) -> st.SearchStrategy[Unadvertised]:
    """Advertisements that have ended."""
    requests = st.lists(texts, max_size=3).map(tuple)
    times = st.integers(0, 2**50)
    return st.builds(Unadvertised, identities, numbers, times, requests, st.integers(0, 3), st.booleans())
