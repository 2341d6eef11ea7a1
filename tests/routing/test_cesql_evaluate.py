"""CESQL's values, casts, errors and functions, and the expressions that filters in CESQL become."""

import pytest
from amounts import often
from cesql_trees import events, filters, nodes
from hypothesis import example, given
from hypothesis import strategies as st

from branchline.routing import limits
from branchline.routing.cesql.casts import INTEGERS
from branchline.routing.cesql.evaluate import ErrorKind, Result, evaluate, truth
from branchline.routing.cesql.lower import lower, may_hold
from branchline.routing.cesql.text import read_pattern, write, write_pattern
from branchline.routing.cesql.tree import (
    Among,
    Any,
    Call,
    Compare,
    Constant,
    Exists,
    Identifier,
    Like,
    Node,
    Not,
    Value,
)
from branchline.routing.evaluate import evaluate as matches
from branchline.routing.expression import (
    And,
    Anything,
    Comparison,
    Expression,
    Formula,
    In,
    Matches,
    OfKind,
    Or,
    Reading,
    constraints,
)
from branchline.routing.expression import Not as Negation
from branchline.routing.limits import CESQL_MAX_TEXT_CHARS
from branchline.routing.patterns import exactly, starting
from branchline.routing.spellings.cesql import parse, read
from branchline.routing.spellings.errors import FilterError
from branchline.routing.values import MISSING, SCALARS, JsonValue, Operator

EVENT: dict[str, JsonValue] = {
    "type": "order",
    "five": 5,
    "half": 2.5,
    "whole": 7.0,
    "large": 2**31,
    "yes": True,
    "no": False,
    "digits": "+007",
    "nothing": None,
    "object": {"a": 1},
}

CAST, MATH, MISSES = ErrorKind.CAST, ErrorKind.MATH, ErrorKind.MISSING_ATTRIBUTE
FUNCTION, UNKNOWN = ErrorKind.FUNCTION_EVALUATION, ErrorKind.MISSING_FUNCTION


def result(text: str, event: dict[str, JsonValue] = EVENT) -> Result:
    return evaluate(parse(text), lambda name: event.get(name, MISSING))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("type", "order"),
        ("five", 5),
        ("half", "2.5"),
        ("whole", 7),
        ("large", "2147483648"),
        ("yes", True),
        ("five = '5'", True),
        ("'5' = five", True),
        ("'+05' = five", True),
        ("five = '+5'", False),
        ("half = '2.5'", True),
        ("digits = 7", True),
        ("digits = '7'", False),
        ("yes = 'true'", True),
        ("yes = 'TRUE'", False),
        ("'TRUE' = yes", True),
        ("yes = 1", True),
        ("five = TRUE", True),
        ("no = 0", True),
        ("TRUE = 2", False),
        ("2 = TRUE", True),
        ("type = 'Order'", False),
        ("'2' < 10", True),
        ("yes > no", True),
        ("five IN ('x', 5)", CAST),
        ("five IN (5, 'x')", True),
        ("five IN ('05', 'x')", True),
        ("type IN (5, yes, 'order')", True),
        ("digits NOT IN (7)", True),
        ("five LIKE '_'", True),
        ("yes LIKE 't%'", True),
        ("EXISTS type", True),
        ("EXISTS nothing", False),
        ("EXISTS object", False),
        ("NOT EXISTS missing", True),
        ("NOT five", False),
        ("NOT type", CAST),
        ("NOT 'FaLsE' AND 1", True),
        ("TRUE XOR TRUE XOR TRUE", True),
        ("TRUE XOR missing", MISSES),
        ("FALSE AND missing", False),
        ("TRUE OR missing", True),
        ("FALSE OR TRUE AND FALSE", False),
        ("TRUE OR TRUE AND FALSE", False),
        ("NOT FALSE = FALSE", False),
        ("nothing = ''", MISSES),
        ("object = ''", MISSES),
        ("EXISTS type = TRUE", True),
    ],
)
def test_casts_and_logic(text: str, value: Value | ErrorKind) -> None:
    """Operators cast as version 1 of the specification says, and errors give false where that is the type."""
    expected = Result(False, value) if isinstance(value, ErrorKind) else Result(value)
    assert repr(result(text)) == repr(expected)


@pytest.mark.parametrize(
    ("text", "value", "error"),
    [
        ("7 / 2", 3, None),
        ("-7 / 2", -3, None),
        ("7 / -2", -3, None),
        ("-7 % 2", -1, None),
        ("7 % -2", 1, None),
        ("2 + 3 * 4 - 1", 13, None),
        ("10-3-2", 5, None),
        ("5-3", 2, None),
        ("5 - -3", 8, None),
        ("5 ++3", 8, None),
        ("-(5)", -5, None),
        ("- - 5", 5, None),
        ("-'-5'", 5, None),
        ("-2147483648", -(2**31), None),
        ("-(-2147483648)", 0, MATH),
        ("2147483647 + 1", 0, MATH),
        ("-2147483648 - 1", 0, MATH),
        ("65536 * 65536", 0, MATH),
        ("-2147483648 / -1", 0, MATH),
        ("-2147483648 % -1", 0, None),
        ("1 / 0", 0, MATH),
        ("1 % 0", 0, MATH),
        ("1 / missing", 0, MISSES),
        ("1 + 'x'", 0, CAST),
        ("'2147483648' + 0", 0, CAST),
        ("'0000000000000000000001' + 0", 1, None),
        ("'1 ' + 0", 0, CAST),
        ("'' + 0", 0, CAST),
        ("'٣' + 0", 0, CAST),
        ("missing", False, MISSES),
        ("missing = 1", False, MISSES),
        ("LENGTH('größe')", 5, None),
        ("LENGTH('𝄞')", 1, None),
        ("LENGTH(12)", 2, None),
        ("LENGTH(missing)", 0, MISSES),
        ("CONCAT(1, TRUE, 'x')", "1truex", None),
        ("CONCAT(missing)", "", MISSES),
        ("concat_ws('-', 'a', '', 'b')", "a--b", None),
        ("LOWER('GRÖSSE')", "grösse", None),
        ("UPPER('straße')", "STRASSE", None),
        ("TRIM('\t\u2003a b\u3000\n')", "a b", None),
        ("TRIM('\x1ca\u200b')", "\x1ca\u200b", None),
        ("LEFT('abc', 0)", "", None),
        ("RIGHT('abc', 0)", "", None),
        ("LEFT('abc', -1)", "abc", FUNCTION),
        ("RIGHT('abc', -1)", "abc", FUNCTION),
        ("UPPER(LEFT('abc', -1))", "", FUNCTION),
        ("LENGTH(LEFT('abc', -1))", 0, FUNCTION),
        ("SUBSTRING('abc', -3)", "abc", None),
        ("SUBSTRING('abc', 3)", "c", None),
        ("SUBSTRING('abc', 4)", "", FUNCTION),
        ("SUBSTRING('', 0)", "", None),
        ("SUBSTRING('abc', 2, 0)", "", None),
        ("SUBSTRING('abc', 2, 9)", "bc", None),
        ("SUBSTRING('abc', -2, 1)", "b", None),
        ("SUBSTRING('abc', 1, -1)", "", FUNCTION),
        ("ABS('-7')", 7, None),
        ("ABS(-2147483648)", 2**31 - 1, MATH),
        ("1 + ABS(-2147483648)", 0, MATH),
        ("INT('x')", 0, CAST),
        ("INT(TRUE)", 1, None),
        ("BOOL('x')", False, CAST),
        ("BOOL(-3)", True, None),
        ("STRING(-3)", "-3", None),
        ("STRING(FALSE)", "false", None),
        ("IS_INT('-12')", True, None),
        ("IS_INT('twelve')", False, None),
        ("IS_BOOL('TRUE')", True, None),
        ("IS_BOOL('yes')", False, None),
        ("IS_INT(missing)", False, MISSES),
        ("NOPE(1)", False, UNKNOWN),
        ("LENGTH()", False, UNKNOWN),
        ("LENGTH('a', 'b')", False, UNKNOWN),
        ("CONCAT_WS()", False, UNKNOWN),
        ("1 + NOPE()", 0, UNKNOWN),
    ],
)
def test_arithmetic_and_functions(text: str, value: Value, error: ErrorKind | None) -> None:
    """Integers have 32 bits, division goes towards zero, and an error gives the zero of the type."""
    assert repr(result(text)) == repr(Result(value, error))


@pytest.mark.parametrize(
    ("pattern", "fitting", "failing"),
    [
        (r"a\%b", ["a%b"], ["axb", r"a\%b"]),
        (r"a\_b", ["a_b"], ["axb"]),
        (r"a\b", [r"a\b"], ["ab"]),
        (r"a\\b", [r"a\\b"], [r"a\b"]),
        (r"a\\%", [r"a\%"], [r"a\x", r"a\\"]),
        (r"%\%", ["%", "50%"], ["%5"]),
        ("_%_", ["ab", "a%b"], ["a", ""]),
        ("a*", ["a*"], ["ab"]),
    ],
)
def test_patterns(pattern: str, fitting: list[str], failing: list[str]) -> None:
    """A backslash makes only % and _ literal; before anything else it is itself."""
    node = Like(Identifier("a"), read_pattern(pattern))
    assert [text for text in fitting + failing if truth(node, {"a": text}.__getitem__)] == fitting


def test_text_does_not_explode() -> None:
    """No function makes a text beyond the limit, however its arguments repeat a long attribute."""
    event: dict[str, JsonValue] = {
        "a": "x" * (CESQL_MAX_TEXT_CHARS // 4),
        "b": "ΐ" * (CESQL_MAX_TEXT_CHARS // 2),
    }
    assert result("LENGTH(CONCAT(a, a, a, a))", event) == Result(CESQL_MAX_TEXT_CHARS)
    assert result("CONCAT(a, a, a, a, 'x')", event) == Result("", FUNCTION)
    assert result(f"CONCAT_WS(a{', 1' * 9})", event) == Result("", FUNCTION)
    assert result("UPPER(b)", event) == Result("", FUNCTION)


def path(name: str, text: str) -> Expression:
    return Matches((name,), exactly(text), Reading.CANONICAL)


A, B = path("a", "x"), path("b", "y")
HAS_A = OfKind(("a",), SCALARS)
NEVER = Negation(Anything())


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a = 'x'", A),
        ("a != 'x'", Negation(A)),
        ("NOT (a = 'x')", Negation(A)),
        ("a LIKE 'x%'", Matches(("a",), starting("x"), Reading.CANONICAL)),
        ("a NOT LIKE 'x'", Negation(A)),
        ("a = CONCAT('x', '')", A),
        ("a IN ('x', 'y')", In(("a",), ("x", "y"))),
        ("'x' = a", Comparison(("a",), Operator.EQ, "x")),
        ("a IN ('1', '2')", Or((In(("a",), ("1", "2")), In(("a",), (1, 2))))),
        ("EXISTS a", HAS_A),
        ("NOT EXISTS a", Negation(HAS_A)),
        ("a = 'x' AND b = 'y'", And((A, B))),
        ("a = 'x' OR b = 'y'", Or((A, And((HAS_A, B))))),
        ("a = 'x' OR a = 'y' OR a = 'z'", Or((A, path("a", "y"), path("a", "z")))),
        ("a = 'x' OR (b = 'y' AND a = 'z')", Or((A, And((B, path("a", "z")))))),
        ("NOT (a = 'x' OR b = 'y')", And((Negation(A), Negation(B)))),
        ("NOT (a = 'x' AND b = 'y')", Or((Negation(A), And((HAS_A, Negation(B)))))),
        ("EXISTS a OR b = 'y'", Or((HAS_A, B))),
        ("a = 'x' AND TRUE", A),
        ("a = 'x' AND 'no'", NEVER),
        ("a = 'x' OR 1", Or((A, HAS_A))),
        ("1 OR a = 'x'", Anything()),
        ("a", Comparison(("a",), Operator.EQ, True)),
        ("NOT a", Negation(Formula(Call("BOOL", (Identifier("a"),))))),
        ("TRUE", Anything()),
        ("FALSE", NEVER),
        ("1 / 0 = 1", NEVER),
        ("a = 'x' AND b = 1", And((A, Formula(Compare(Identifier("b"), Operator.EQ, Constant(1)))))),
    ],
)
def test_lowers(text: str, expression: Expression) -> None:
    """What expressions can say is no formula, and what is known beforehand is left out."""
    assert read(text) == expression


def test_a_chain_becomes_a_formula_rather_than_large() -> None:
    """A chain that looks at many attributes, or one that would grow too much, stays as it was spelled."""
    many = " OR ".join(f"a{number} = 'x'" for number in range(40))
    assert read(many) == Formula(parse(many))
    assert read(f"b = 'y' AND ({many})") == And((B, Formula(parse(many))))
    assert read(f"NOT ({many})") == And(tuple(Negation(path(f"a{number}", "x")) for number in range(40)))
    few = " OR ".join(f"a{number % 4} = '{number}'" for number in range(60))
    assert not any(isinstance(constraint, Formula) for constraint in constraints(read(few)))


@given(filters | nodes, events)
@example(Any((Compare(Identifier("a"), Operator.EQ, Constant("x")), Exists("b"))), {"b": 1})
@example(Not(Among(Identifier("a"), (Constant("x"),))), {"a": 2.5})
@example(Among(Identifier("a"), (Constant("2.5"), Constant("1"))), {"a": 2.5})
def test_lowered_filters_match_what_cesql_says(node: Node, event: dict[str, JsonValue]) -> None:
    """A filter matches exactly the events for which CESQL's own evaluation gives true without an error."""
    says = truth(node, lambda name: event.get(name, MISSING))
    if may_hold(node):
        assert matches(lower(node), event) is (says is True)
    else:
        assert says is not True


@given(nodes, events)
def test_truth_is_the_boolean_value_without_an_error(node: Node, event: dict[str, JsonValue]) -> None:
    """As a condition, an expression with an error or of another type is unknown."""

    def lookup(name: str) -> JsonValue:
        return event.get(name, MISSING)  # type: ignore[return-value]

    both = evaluate(node, lookup)
    assert truth(node, lookup) is (
        both.value if both.error is None and isinstance(both.value, bool) else None
    )
    assert isinstance(both.value, str | bool) or both.value in INTEGERS


@given(filters | nodes)
def test_formulas_are_read_again_as_formulas(node: Node) -> None:
    """Every formula in a lowered filter, written as text of its own, is read as the same formula."""
    try:
        lowered = read(write(node))
    except FilterError:
        return  # a call with arguments that no function takes, or too long
    assert lowered == lower(node)
    for constraint in constraints(lowered):
        if isinstance(constraint, Formula):
            assert read(write(constraint.root)) == constraint


@often
@given(nodes)
def test_parse_is_the_inverse_of_write(node: Node) -> None:
    """Whatever is written is read again as the same tree, types of constants included."""
    text = write(node)
    if len(text.encode()) <= limits.FILTER_MAX_BYTES:
        assert parse(text) == node
        assert repr(parse(text)) == repr(node)


@given(st.text("ab%_\\'\"", max_size=8))
def test_patterns_are_written_as_they_are_read(text: str) -> None:
    """A pattern's text may differ from the one read, but stands for the same pattern."""
    assert read_pattern(write_pattern(read_pattern(text))) == read_pattern(text)


def test_constants_tell_true_from_one() -> None:
    """In a tree, the constant TRUE is not the constant 1, nor is FALSE 0."""
    assert Constant(True) != Constant(1)
    assert len({Constant(True), Constant(1), Constant("1"), Constant(False), Constant(0)}) == 5
