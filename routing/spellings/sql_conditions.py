"""Conditions on one value, as SQL spells them, and the paths, kinds and literals in them."""

from typing import NamedTuple, TypeAlias

from branchline.routing import limits
from branchline.routing.codes import Code
from branchline.routing.expression import (
    NULLS,
    And,
    Between,
    Comparison,
    Expression,
    Has,
    In,
    InBlock,
    Matches,
    Not,
    OfKind,
    Or,
    Path,
    Reading,
    SingleConstraint,
)
from branchline.routing.patterns import Pattern, containing, ending, exactly, starting
from branchline.routing.spellings.lexing import Token
from branchline.routing.spellings.sql_values import (
    Value,
    read_cidr,
    read_like,
    read_moment,
    read_name,
    read_number,
    read_operator,
    read_text,
)
from branchline.routing.values import Kind, Operator, literal_kind

_Maybe: TypeAlias = Token | None


class Node(NamedTuple):
    """A piece of the tree, and how many AND, OR, NOT and IS TRUE are above its deepest constraint."""

    expression: Expression
    depth: int
    negation: _Maybe = None
    """What made a single constraint into its negation."""


class _Canonical(NamedTuple):
    """An attribute whose canonical text is asked for."""

    path: Path


_Subject: TypeAlias = Path | _Canonical


class Conditions:
    """Makes nodes of single constraints: one method per rule or alternative of the grammar."""

    def comparison(self, path: Path, operator: Token, value: Value, folding: _Maybe) -> Node:
        if folding is None:
            return Node(Comparison(path, read_operator(operator), value.literal), 0)
        return _same_text(path, operator, exactly(_text_to_fold(value)), folding)

    def canonical_comparison(self, subject: _Canonical, operator: Token, token: Token) -> Node:
        return _same_text(subject, operator, exactly(read_text(token)), None)

    def among(
        self, path: Path, negated: _Maybe, _in: Token, values: tuple[Value, ...], folding: _Maybe
    ) -> Node:
        if folding is None:
            return maybe_negated(In(path, tuple([value.literal for value in values])), negated)
        texts = [exactly(_text_to_fold(value)).fold() for value in values]
        return several(Or, [Matches(path, text, Reading.FOLDED) for text in texts], negated)

    def in_block(self, path: Path, negated: _Maybe, _in: Token, _cidr: Token, token: Token) -> Node:
        return maybe_negated(InBlock(path, read_cidr(token)), negated)

    def between(
        self, path: Path, negated: _Maybe, _between: Token, low: Value, _and: Token, high: Value
    ) -> Node:
        if literal_kind(low.literal) is not literal_kind(high.literal):
            reason = f"BETWEEN needs two ends of one type, not {low.words} and {high.words}"
            raise high.token.refusal(Code.FILTER_TYPE, reason)
        return maybe_negated(Between(path, low.literal, high.literal), negated)

    def like(
        self,
        subject: _Subject,
        negated: _Maybe,
        like: Token,
        pattern: Token,
        _escape: _Maybe,
        escape: _Maybe,
        folding: _Maybe,
    ) -> Node:
        if like.type == "ILIKE":
            folding = folding or like
        return maybe_negated(_matches(subject, read_like(pattern, escape), folding), negated)

    def contains(
        self, subject: _Subject, negated: _Maybe, _contains: Token, token: Token, folding: _Maybe
    ) -> Node:
        return maybe_negated(_matches(subject, containing(read_text(token)), folding), negated)

    def edge(
        self,
        subject: _Subject,
        negated: _Maybe,
        edge: Token,
        _with: Token,
        token: Token,
        folding: _Maybe,
    ) -> Node:
        form = starting if edge.type == "STARTS" else ending
        return maybe_negated(_matches(subject, form(read_text(token)), folding), negated)

    def of_kind(self, path: Path, _is: Token, negated: _Maybe, kinds: frozenset[Kind]) -> Node:
        return maybe_negated(OfKind(path, kinds), negated)

    def kinds(self, *kinds: frozenset[Kind]) -> frozenset[Kind]:
        return frozenset().union(*kinds)

    def kind(self, token: Token, null: _Maybe = None) -> frozenset[Kind]:
        if null is not None:
            return frozenset({Kind.NULL})
        return NULLS if token.type == "NULL" else frozenset({Kind[token.value.upper()]})

    def path(self, *tokens: Token) -> Path:
        return tuple([read_name(token) for token in tokens])

    def canonical(self, _text: Token, path: Path) -> _Canonical:
        return _Canonical(path)

    def folding(self, ignore: Token, _case: Token) -> Token:
        return ignore

    def literals(self, *values: Value) -> tuple[Value, ...]:
        if len(values) > limits.FILTER_MAX_IN_VALUES:
            reason = f"the list has {len(values)} values; the limit is {limits.FILTER_MAX_IN_VALUES}"
            raise values[limits.FILTER_MAX_IN_VALUES].token.refusal(Code.FILTER_TOO_MANY_VALUES, reason)
        return values

    def literal(self, token: Token) -> Value:
        match token.type:
            case "NUMBER":
                return Value(read_number(token), token)
            case "STRING":
                return Value(read_text(token), token)
            case _:
                return Value(token.type == "TRUE", token)

    def moment(self, _timestamp: Token, token: Token) -> Value:
        return Value(read_moment(token), token)


def several(join: type[And] | type[Or], terms: list[Has] | list[Matches], negated: _Maybe) -> Node:
    """What a list of values makes; of one value, no AND or OR."""
    made = Node(terms[0], 0) if len(terms) == 1 else Node(join(tuple(terms)), 1)
    return made if negated is None else Node(Not(made.expression), made.depth + 1, negated)


def maybe_negated(constraint: SingleConstraint | Has, negated: _Maybe) -> Node:
    return Node(constraint, 0) if negated is None else Node(Not(constraint), 1, negated)


def _matches(subject: _Subject, pattern: Pattern, folding: _Maybe) -> Matches:
    if isinstance(subject, _Canonical):
        if folding is not None:
            reason = "TEXT(...) counts case; IGNORE CASE goes with the attribute itself"
            raise folding.refusal(Code.FILTER_SYNTAX, reason)
        return Matches(subject.path, pattern, Reading.CANONICAL)
    if folding is not None:
        return Matches(subject, pattern.fold(), Reading.FOLDED)
    return Matches(subject, pattern)


def _same_text(subject: _Subject, operator: Token, pattern: Pattern, folding: _Maybe) -> Node:
    plain = read_operator(operator)
    if plain not in (Operator.EQ, Operator.NE):
        words = "TEXT(...)" if folding is None else "IGNORE CASE"
        raise operator.refusal(Code.FILTER_SYNTAX, f"{words} goes with = and <>, not with {plain}")
    return maybe_negated(_matches(subject, pattern, folding), operator if plain is Operator.NE else None)


def _text_to_fold(value: Value) -> str:
    if not isinstance(value.literal, str):
        raise value.token.refusal(Code.FILTER_TYPE, f"IGNORE CASE needs text, not {value.words}")
    return value.literal
