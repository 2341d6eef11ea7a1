"""EventBridge patterns: what they match, and what is refused and where."""

import time
from contextlib import suppress

import pytest

from branchline.routing.addresses import read_block
from branchline.routing.codes import Code
from branchline.routing.evaluate import evaluate
from branchline.routing.expression import (
    And,
    Comparison,
    Expression,
    In,
    InBlock,
    IsTrue,
    Matches,
    Not,
    OfKind,
    Or,
    Path,
    Reading,
)
from branchline.routing.limits import FILTER_MAX_DEPTH, FILTER_MAX_IN_VALUES
from branchline.routing.patterns import Pattern, ending, exactly, starting
from branchline.routing.spellings.errors import FilterError, place
from branchline.routing.spellings.eventbridge import read
from branchline.routing.values import JsonValue, Kind, Literal, Operator

LEAVES = frozenset({Kind.NULL, Kind.BOOLEAN, Kind.NUMBER, Kind.TEXT})
ABSENT = frozenset({Kind.MISSING, Kind.OBJECT})


def equal(path: Path, value: Literal) -> Comparison:
    return Comparison(path, Operator.EQ, value)


A, B, C = equal(("a",), 1), equal(("b",), 2), equal(("c",), 3)
NULL = OfKind(("a",), frozenset({Kind.NULL}))
BLOCK = read_block("10.0.0.0/8")
assert BLOCK is not None


def but(excluded: Expression) -> And:
    return And((OfKind(("a",), LEAVES), Not(IsTrue(excluded))))


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ('{"a": [1]}', A),
        ('{"a": [1], "b": [2], "c": [3]}', And((A, B, C))),
        (
            '{"a": [1], "x": {"y": ["s"], "z": [true]}}',
            And((A, equal(("x", "y"), "s"), equal(("x", "z"), True))),
        ),
        ('{"a.b": [1]}', equal(("a.b",), 1)),
        ('{"": [1]}', equal(("",), 1)),
        ('{"a": [1, "1", true]}', In(("a",), (1, "1", True))),
        ('{"a": [null]}', NULL),
        ('{"a": [1, null, 2]}', Or((In(("a",), (1, 2)), NULL))),
        ('{"a": [null, 1, {"prefix": "x"}]}', Or((NULL, A, Matches(("a",), starting("x"))))),
        ('{"a": [{"prefix": "x"}]}', Matches(("a",), starting("x"))),
        ('{"a": [{"suffix": "x"}]}', Matches(("a",), ending("x"))),
        (
            '{"a": [{"prefix": {"equals-ignore-case": "ẞx"}}]}',
            Matches(("a",), starting("ssx"), Reading.FOLDED),
        ),
        ('{"a": [{"suffix": {"equals-ignore-case": "X"}}]}', Matches(("a",), ending("x"), Reading.FOLDED)),
        ('{"a": [{"equals-ignore-case": "X"}]}', Matches(("a",), exactly("x"), Reading.FOLDED)),
        ('{"a": [{"wildcard": "x*y*"}]}', Matches(("a",), Pattern(("x", "y", "")))),
        ('{"a": [{"wildcard": "*"}]}', Matches(("a",), Pattern(("", "")))),
        ('{"a": [{"wildcard": "x\\\\*\\\\\\\\*"}]}', Matches(("a",), Pattern(("x*\\", "")))),
        ('{"a": [{"numeric": ["=", 1]}]}', A),
        ('{"a": [{"numeric": ["<=", -1.5]}]}', Comparison(("a",), Operator.LE, -1.5)),
        (
            '{"a": [{"numeric": [">=", 0, "<", 10]}]}',
            And((Comparison(("a",), Operator.GE, 0), Comparison(("a",), Operator.LT, 10))),
        ),
        ('{"a": [{"exists": true}]}', OfKind(("a",), LEAVES)),
        ('{"a": [{"exists": false}]}', OfKind(("a",), ABSENT)),
        ('{"a": [{"cidr": "10.1.2.3/8"}]}', InBlock(("a",), BLOCK)),
        ('{"a": [{"anything-but": 1}]}', but(A)),
        ('{"a": [{"anything-but": [1]}]}', but(A)),
        ('{"a": [{"anything-but": ["x", "y"]}]}', but(In(("a",), ("x", "y")))),
        ('{"a": [{"anything-but": {"prefix": "x"}}]}', but(Matches(("a",), starting("x")))),
        (
            '{"a": [{"anything-but": {"suffix": ["x", "y"]}}]}',
            but(Or((Matches(("a",), ending("x")), Matches(("a",), ending("y"))))),
        ),
        ('{"$or": [{"a": [1]}, {"b": [2]}]}', Or((A, B))),
        ('{"c": [3], "$or": [{"a": [1]}, {"b": [2]}]}', And((C, Or((A, B))))),
        ('{"$or": [{"a": [1]}, {"$or": [{"b": [2]}, {"c": [3]}]}]}', Or((A, B, C))),
        ('{"$or": [{"a": [1]}, {"b": [2], "c": [3]}]}', Or((A, And((B, C))))),
        ('{"x": {"$or": [{"a": [1]}, {"b": [2]}]}}', Or((equal(("x", "a"), 1), equal(("x", "b"), 2)))),
        ('{"$or": ["x"]}', equal(("$or",), "x")),
        ('{"$or": ["x", "y"]}', In(("$or",), ("x", "y"))),
        ('{"$or": {"a": [1]}}', equal(("$or", "a"), 1)),
        ('{"$or": [{"exists": true}]}', OfKind(("$or",), LEAVES)),
        (
            '{"$or": [{"prefix": "x"}, {"suffix": "y"}]}',
            Or((Matches(("$or",), starting("x")), Matches(("$or",), ending("y")))),
        ),
        ('{"$or": [{"prefix": [1], "a": [1]}, {"b": [2]}]}', Or((And((equal(("prefix",), 1), A)), B))),
        ('{"prefix": ["x"]}', equal(("prefix",), "x")),
        ('{"\\u0061": [{"\\u0065xists": true}]}', OfKind(("a",), LEAVES)),
    ],
)
def test_reads(text: str, expression: Expression) -> None:
    """Each form gives the one tree that stands for it, types of values included."""
    assert read(text) == expression
    assert repr(read(text)) == repr(expression)


@pytest.mark.parametrize(
    ("alternatives", "matching", "others"),
    [
        ('["x"]', ["x", ["y", "x"], [["x"]]], ["X", "xy", "", 1, None, {}, [], {"x": "x"}]),
        ("[1]", [1, 1.0, [0, [1]]], ["1", True, 2, None, []]),
        ("[1.0]", [1, 1.0], ["1.0", True]),
        ("[1e0]", [1, 1.0], ["1e0"]),
        ("[0]", [0, 0.0, -0.0], [False, "", None]),
        ("[-0.0]", [0, 0.0, -0.0], [False]),
        ("[9007199254740993]", [9007199254740993], [9007199254740992, float(2**53)]),
        ("[true]", [True], [1, "true", False, None]),
        ("[null]", [None, [None], [1, None]], ["null", [], {}, 0, False, ""]),
        ('[{"prefix": "x"}]', ["x", "xy"], ["X", "yx", "", 1, None, []]),
        ('[{"prefix": ""}]', ["x", ""], [1, True, None, {}, []]),
        ('[{"suffix": ""}]', ["x", ""], [1, True, None, {}, []]),
        ('[{"wildcard": "*"}]', ["x", "", "*"], [1, True, None, {}, []]),
        ('[{"wildcard": ""}]', [""], ["x", None, []]),
        ('[{"wildcard": "x*y*z"}]', ["xyz", "x1y2z", "xyyzz"], ["xz", "xzy", "xyza"]),
        (r'[{"wildcard": "x\\*"}]', ["x*"], ["x", "xy", "x\\*"]),
        (r'[{"wildcard": "\\\\*"}]', ["\\", "\\x"], ["*", "x"]),
        ('[{"wildcard": "a_%?[b]*"}]', ["a_%?[b]", "a_%?[b]c"], ["ax%?[b]", "a_%?b"]),
        ('[{"suffix": "x"}]', ["x", "yx"], ["X", "xy", "", 1]),
        ('[{"prefix": {"equals-ignore-case": "Ab"}}]', ["ab", "ABc", "aB"], ["a", "xab", 1]),
        ('[{"suffix": {"equals-ignore-case": "Ab"}}]', ["ab", "cAB", "aB"], ["b", "abx", 1]),
        ('[{"equals-ignore-case": "Straße"}]', ["straße", "STRASSE", "StraSSe"], ["strase", "x", 1, None]),
        ('[{"numeric": ["=", 5]}]', [5, 5.0], ["5", 6, None]),
        ('[{"numeric": [">", 0, "<=", 5]}]', [0.1, 5, [9, 3]], [0, 5.1, "3", True, [9, -3], None, []]),
        ('[{"numeric": [">=", -1e300]}]', [0, -1e300, 10**40], ["0", False]),
        ('[{"exists": true}]', [None, "", 0, False, "x", [1], [[], 1]], [{}, {"x": 1}, [], [{}], [{"x": 1}]]),
        ('[{"exists": false}]', [{}, {"x": 1}, [], [{}], [[]]], [None, "", 0, False, [1]]),
        (
            '[{"anything-but": "x"}]',
            ["y", "", 1, None, True, ["x", "y"]],
            ["x", ["x"], [], {}, [{}], ["x", []]],
        ),
        ('[{"anything-but": [1, 2]}]', [3, "1", None, True, [1, 3]], [1, 2.0, [1, 2], [], {}]),
        ('[{"anything-but": {"prefix": "x"}}]', ["yx", "", 1, None], ["x", "xy", ["x"], []]),
        ('[{"anything-but": {"prefix": ["x", "y"]}}]', ["z", 1, ["x", "z"]], ["x1", "y1", ["x", "y"]]),
        ('[{"anything-but": {"suffix": ["x", "y"]}}]', ["z", 1], ["1x", "1y"]),
        ('[{"anything-but": {"wildcard": "a*z"}}]', ["az1", "b", None], ["az", "a1z"]),
        ('[{"anything-but": {"wildcard": ["a*", "*z"]}}]', ["b", None], ["a", "z", "az"]),
        ('[{"anything-but": {"equals-ignore-case": "X"}}]', ["y", 1, None], ["x", "X"]),
        ('[{"anything-but": {"equals-ignore-case": ["X", "y"]}}]', ["z", 1], ["x", "Y"]),
        ('[{"cidr": "10.0.0.0/8"}]', ["10.1.2.3"], ["11.0.0.1", "x", "", 10, "010.0.0.1", "::ffff:10.0.0.1"]),
        ('[{"cidr": "10.9.9.9/8"}]', ["10.1.2.3"], ["11.0.0.1"]),
        ('[{"cidr": "10.0.0.1/32"}]', ["10.0.0.1"], ["10.0.0.2"]),
        ('[{"cidr": "2001:db8::/32"}]', ["2001:DB8::1"], ["2001:db9::1", "32.1.13.184"]),
        ('[{"cidr": "::1/128"}]', ["::1", "0:0:0:0:0:0:0:1"], ["::2", "0.0.0.1"]),
        ('["x", null, {"numeric": [">", 5]}]', ["x", None, 6], ["y", 5, "6"]),
    ],
)
def test_alternatives(alternatives: str, matching: list[JsonValue], others: list[JsonValue]) -> None:
    """An alternative is true of the values that the rules say, and of no other; a missing field is as []."""
    expression = read(f'{{"a": {alternatives}}}')
    assert [value for value in matching if evaluate(expression, {"a": value}) is not True] == []
    assert [value for value in others if evaluate(expression, {"a": value}) is not False] == []
    assert evaluate(expression, {}) is evaluate(expression, {"a": []})


ITEMS: dict[str, JsonValue] = {
    "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 5, "tags": ["x", "y"]}],
    "s": ["u", "v"],
    "t": [1, 2],
    "a.b": "dotted",
    "a": {"b": "nested"},
    "$or": "plain",
}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"items": {"sku": ["a"], "n": [1]}}', True),
        ('{"items": {"sku": ["a"], "n": [5]}}', False),
        ('{"items": {"sku": ["b"], "tags": ["y"]}}', True),
        ('{"items": {"sku": ["a"], "tags": ["y"]}}', False),
        ('{"items": {"sku": ["a"], "tags": [{"exists": false}]}}', True),
        ('{"items": {"sku": ["b"], "tags": [{"exists": false}]}}', False),
        ('{"s": ["u"], "t": [2]}', True),
        ('{"items": {"sku": ["b"]}, "s": ["v"], "t": [1]}', True),
        ('{"a.b": ["dotted"]}', True),
        ('{"a.b": ["nested"]}', False),
        ('{"a": {"b": ["nested"]}}', True),
        ('{"a": {"b": {"c": [{"exists": false}]}}}', True),
        ('{"a": {"b": {"c": [{"exists": true}]}}}', False),
        ('{"$or": ["plain"]}', True),
        ('{"$or": [{"prefix": "pl"}, {"prefix": "x"}]}', True),
        ('{"$or": [{"s": ["z"]}, {"t": [2]}]}', True),
        ('{"$or": [{"s": ["z"]}, {"t": [3]}]}', False),
        ('{"$or": [{"s": ["z"]}, {"t": [2]}], "a.b": ["x"]}', False),
        ('{"items": {"$or": [{"sku": ["z"]}, {"n": [5]}], "sku": ["b"]}}', True),
        ('{"items": {"$or": [{"sku": ["z"]}, {"n": [5]}], "sku": ["a"]}}', False),
    ],
)
def test_fields(text: str, verdict: bool) -> None:
    """All fields must hold for one choice of elements; paths are made by nesting, and `$or` stands within."""
    assert evaluate(read(text), ITEMS) is verdict


def nested_or(times: int) -> str:
    text = '{"a": [1]}'
    for _ in range(times):
        text = f'{{"$or": [{{"b": [1]}}, {text}]}}'
    return text


def matcher(marked: str) -> str:
    return f'{{"a": ["x",\n {marked}]}}'


@pytest.mark.parametrize(
    ("marked", "code", "reason"),
    [
        ("¦", Code.FILTER_SYNTAX, 'the filter is empty; write a pattern such as {"type": ["order"]}'),
        ("¦{}", Code.FILTER_SYNTAX, 'name a field, as in {"type": ["order"]}'),
        ("¦[]", Code.FILTER_TYPE, 'expected a pattern such as {"type": ["order"]}, found an array'),
        ('¦"x"', Code.FILTER_TYPE, 'found the text "x"'),
        (
            '{"a": ¦"x"}',
            Code.FILTER_TYPE,
            'expected an array of alternatives, found the text "x"; write ["x"]',
        ),
        ('{"a": ¦5}', Code.FILTER_TYPE, "found the number 5; write [5]"),
        ('{"a": ¦true}', Code.FILTER_TYPE, "found true; write [true]"),
        ('{"a": ¦null}', Code.FILTER_TYPE, "found null; write [null]"),
        ('{"a": ¦[]}', Code.FILTER_SYNTAX, "expected alternatives, found an empty array"),
        ('{"a": {"b":\n¦{}}}', Code.FILTER_SYNTAX, "an empty pattern says nothing"),
        (matcher('¦["x"]'), Code.FILTER_TYPE, "expected an alternative, found an array"),
        (
            matcher("¦{}"),
            Code.FILTER_SYNTAX,
            "expected a matcher, found an empty object; known: prefix, suffix",
        ),
        (
            matcher('{¦"contains": "x"}'),
            Code.FILTER_SYNTAX,
            '"contains" is not a matcher; known: prefix, suffix, wildcard, equals-ignore-case, anything-but, '
            "numeric, exists, cidr",
        ),
        (matcher('{¦"b": ["x"]}'), Code.FILTER_SYNTAX, "stands without the array around it"),
        (matcher('{"prefix": "x", ¦"suffix": "y"}'), Code.FILTER_SYNTAX, "found suffix after prefix"),
        (matcher('{"prefix": "x", ¦"b": "y"}'), Code.FILTER_SYNTAX, '"b" is not a matcher'),
        (matcher('{"prefix": ¦5}'), Code.FILTER_TYPE, "prefix needs text, found the number 5"),
        (matcher('{"prefix": ¦["x"]}'), Code.FILTER_TYPE, "prefix needs text, found an array"),
        (matcher('{"suffix": ¦null}'), Code.FILTER_TYPE, "suffix needs text, found null"),
        (matcher('{"prefix": {¦"wildcard": "x"}}'), Code.FILTER_SYNTAX, "known: equals-ignore-case"),
        (matcher('{"prefix": ¦{}}'), Code.FILTER_SYNTAX, "found an empty object; known: equals-ignore-case"),
        (
            matcher('{"prefix": {"equals-ignore-case": ¦5}}'),
            Code.FILTER_TYPE,
            "equals-ignore-case needs text",
        ),
        (
            matcher('{"equals-ignore-case": ¦true}'),
            Code.FILTER_TYPE,
            "equals-ignore-case needs text, found true",
        ),
        (matcher('{"wildcard": ¦5}'), Code.FILTER_TYPE, "wildcard needs text"),
        (matcher('{"wildcard": "a¦**"}'), Code.FILTER_SYNTAX, "two wildcards side by side"),
        (
            matcher('{"wildcard": "\\u0061\\ud83d\\ude00¦**"}'),
            Code.FILTER_SYNTAX,
            "two wildcards side by side",
        ),
        (matcher('{"wildcard": "\\\\*¦\\\\x"}'), Code.FILTER_SYNTAX, "only before * or a backslash"),
        (matcher('{"wildcard": "x¦\\\\"}'), Code.FILTER_SYNTAX, "only before * or a backslash"),
        (
            matcher('{"exists": ¦"true"}'),
            Code.FILTER_TYPE,
            'exists needs true or false, found the text "true"',
        ),
        (matcher('{"exists": ¦1}'), Code.FILTER_TYPE, "exists needs true or false, found the number 1"),
        (matcher('{"cidr": ¦5}'), Code.FILTER_TYPE, "cidr needs text"),
        (matcher('{"cidr": ¦"10.0.0.1"}'), Code.FILTER_SYNTAX, 'write "10.0.0.1/32" for this address alone'),
        (matcher('{"cidr": ¦"::1"}'), Code.FILTER_SYNTAX, 'write "::1/128" for this address alone'),
        (
            matcher('{"cidr": ¦"10.0.0.0/33"}'),
            Code.FILTER_SYNTAX,
            'such as "10.0.0.0/8", found "10.0.0.0/33"',
        ),
        (matcher('{"cidr": ¦"010.0.0.0/8"}'), Code.FILTER_SYNTAX, "cidr needs a block"),
        (matcher('{"numeric": ¦5}'), Code.FILTER_TYPE, 'numeric needs an array such as [">", 0, "<=", 5]'),
        (matcher('{"numeric": ¦[]}'), Code.FILTER_SYNTAX, 'numeric needs a comparison such as [">", 0]'),
        (
            matcher('{"numeric": [¦"!=", 5]}'),
            Code.FILTER_SYNTAX,
            "expected one of =, >, >=, <, <= in double quotes",
        ),
        (matcher('{"numeric": [¦5, ">"]}'), Code.FILTER_TYPE, "in double quotes, found the number 5"),
        (matcher('{"numeric": [¦">"]}'), Code.FILTER_SYNTAX, "a number must follow >"),
        (matcher('{"numeric": [">", ¦"5"]}'), Code.FILTER_TYPE, 'expected a number, found the text "5"'),
        (matcher('{"numeric": [">", ¦true]}'), Code.FILTER_TYPE, "expected a number, found true"),
        (matcher('{"numeric": ["<", 5, ¦">", 0]}'), Code.FILTER_SYNTAX, "a range has its lower bound first"),
        (matcher('{"numeric": ["=", 5, ¦"<", 9]}'), Code.FILTER_SYNTAX, "nothing follows = and its number"),
        (
            matcher('{"numeric": [">", 5, ¦">", 9]}'),
            Code.FILTER_SYNTAX,
            "expected one of <, <= in double quotes",
        ),
        (matcher('{"numeric": [">", 5, ¦"<"]}'), Code.FILTER_SYNTAX, "a number must follow <"),
        (
            matcher('{"numeric": [">=", 5, "<=", ¦5]}'),
            Code.FILTER_SYNTAX,
            "above the number 5, found the number 5",
        ),
        (
            matcher('{"numeric": [">", 5, "<", ¦4.5]}'),
            Code.FILTER_SYNTAX,
            "above the number 5, found the number 4.5",
        ),
        (matcher('{"numeric": [">", 5, "<", 9, ¦"<", 8]}'), Code.FILTER_SYNTAX, "nothing follows them"),
        (
            matcher('{"anything-but": ¦null}'),
            Code.FILTER_TYPE,
            "anything-but needs text or numbers, found null",
        ),
        (matcher('{"anything-but": ¦true}'), Code.FILTER_TYPE, "found true"),
        (matcher('{"anything-but": ¦[]}'), Code.FILTER_SYNTAX, "expected values, found an empty array"),
        (matcher('{"anything-but": ["x", ¦5]}'), Code.FILTER_TYPE, "values of one type, found the number 5"),
        (matcher('{"anything-but": [5, ¦"x"]}'), Code.FILTER_TYPE, "values of one type, found the text"),
        (matcher('{"anything-but": ["x", ¦null]}'), Code.FILTER_TYPE, "found null"),
        (matcher('{"anything-but": [¦["x"]]}'), Code.FILTER_TYPE, "found an array"),
        (matcher('{"anything-but": [¦{"prefix": "x"}]}'), Code.FILTER_TYPE, "found an object"),
        (
            matcher('{"anything-but": ¦{}}'),
            Code.FILTER_SYNTAX,
            "known: prefix, suffix, wildcard, equals-ignore-case",
        ),
        (matcher('{"anything-but": {"prefix": ¦""}}'), Code.FILTER_SYNTAX, "every text has the empty prefix"),
        (
            matcher('{"anything-but": {"suffix": ["x", ¦""]}}'),
            Code.FILTER_SYNTAX,
            "every text has the empty suffix",
        ),
        (
            matcher('{"anything-but": {"prefix": ¦[]}}'),
            Code.FILTER_SYNTAX,
            "expected texts, found an empty array",
        ),
        (matcher('{"anything-but": {"prefix": ["x", ¦5]}}'), Code.FILTER_TYPE, "prefix needs text"),
        (matcher('{"anything-but": {"wildcard": ["x", "¦**"]}}'), Code.FILTER_SYNTAX, "two wildcards"),
        (
            matcher('{"anything-but": {¦"numeric": [">", 5]}}'),
            Code.FILTER_SYNTAX,
            "anything-but takes; known: prefix",
        ),
        (
            matcher('{"anything-but": {¦"cidr": "10.0.0.0/8"}}'),
            Code.FILTER_SYNTAX,
            '"cidr" is not a matcher that',
        ),
        (
            matcher('{"anything-but": {¦"exists": true}}'),
            Code.FILTER_SYNTAX,
            '"exists" is not a matcher that',
        ),
        (matcher('{"anything-but": {¦"anything-but": "x"}}'), Code.FILTER_SYNTAX, "is not a matcher that"),
        ('{"$or": ¦5}', Code.FILTER_TYPE, "expected an array of alternatives, found the number 5"),
        ('{"$or": ¦[]}', Code.FILTER_SYNTAX, "found an empty array"),
        ('{"$or": ¦[{"a": [1]}]}', Code.FILTER_SYNTAX, "$or needs at least two patterns, found one"),
        ('{"$or": [{"a": [1]}, ¦5]}', Code.FILTER_TYPE, "expected a pattern such as"),
        ('{"$or": [{"a": [1]}, ¦{}]}', Code.FILTER_SYNTAX, "an empty pattern says nothing"),
        ('{"$or": [{"a": [1]}, {"b": ¦2}]}', Code.FILTER_TYPE, "write [2]"),
        ('{"$or": [{"a": [1]}, {"prefix": ¦"x"}]}', Code.FILTER_TYPE, 'write ["x"]'),
        (
            nested_or(9).replace('"$or"', '¦"$or"', 9).replace("¦", "", 8),
            Code.FILTER_TOO_DEEP,
            "$or is nested at least 9 deep; the limit is 8",
        ),
        (
            f'{{"a": [{"0, " * FILTER_MAX_IN_VALUES}¦0]}}',
            Code.FILTER_TOO_MANY_VALUES,
            "the list has 101 alternatives; the limit is 100",
        ),
        (
            f'{{"a": [{{"anything-but": [{"0, " * FILTER_MAX_IN_VALUES}¦0]}}]}}',
            Code.FILTER_TOO_MANY_VALUES,
            "the list has 101 values; the limit is 100",
        ),
    ],
)
def test_refuses_at_the_place(marked: str, code: Code, reason: str) -> None:
    """What is no pattern is refused with its code, where it stands (before the mark)."""
    text = marked.replace("¦", "")
    with pytest.raises(FilterError) as refused:
        read(text)
    error = refused.value
    assert (error.rejection.code, error.line, error.column) == (code, *place(text, marked.index("¦")))
    assert reason in error.rejection.reason


def test_reads_up_to_the_limits() -> None:
    """As deep an `$or`, as long a path and as many alternatives as the limits allow are read."""
    read(nested_or(FILTER_MAX_DEPTH))
    read(f'{{"a": [{"0, " * (FILTER_MAX_IN_VALUES - 1)}0]}}')
    read('{"a":' * 64 + "[1]" + "}" * 64)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 4096,
        '{"a":' * 819,
        '{"a":[{"wildcard":"' + "*" * 4070 + '"}]}',
        '{"a":[{"wildcard":"' + "*a" * 2030 + '"}]}',
        '{"a":[{"wildcard":"' + "\\\\*" * 1350 + '"}]}',
        '{"$or":[' * 500,
    ],
)
def test_hostile_texts_cost_no_more_than_others(text: str) -> None:
    """Texts of the largest size that are all brackets or wildcards are read or refused quickly."""
    started = time.process_time()
    for _ in range(10):
        with suppress(FilterError):
            evaluate(read(text), {"a": "a" * 5000})
    assert time.process_time() - started < 1
