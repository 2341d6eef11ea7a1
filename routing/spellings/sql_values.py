"""What single tokens of an SQL predicate stand for: names, numbers, texts, patterns, moments, blocks."""

import math
from typing import NamedTuple

from branchline.routing import limits
from branchline.routing.addresses import Block, read_block
from branchline.routing.codes import Code
from branchline.routing.instants import Instant, read_instant
from branchline.routing.patterns import BadEscape, Pattern, like_pattern
from branchline.routing.spellings.errors import clipped
from branchline.routing.spellings.lexing import OPERATORS, Token
from branchline.routing.values import Literal, Operator, literal_kind


class Value(NamedTuple):
    literal: Literal
    token: Token

    @property
    def words(self) -> str:
        kind = literal_kind(self.literal)
        return "a timestamp" if kind is None else kind.words


def read_operator(token: Token) -> Operator:
    return OPERATORS[token.value]


def read_text(token: Token) -> str:
    return token.value[1:-1].replace("''", "'")


def read_name(token: Token) -> str:
    name = token.value
    if name[0] == '"':
        name = name[1:-1].replace('""', '"')
    # No name of a quarter of the limit's length can exceed it; the rest are counted.
    if len(name) > limits.NAME_MAX_BYTES // 4 and (size := len(name.encode())) > limits.NAME_MAX_BYTES:
        reason = f"the name has {size} bytes; the limit is {limits.NAME_MAX_BYTES}"
        raise token.refusal(Code.FILTER_NAME_TOO_LONG, reason)
    return name


def read_number(token: Token) -> int | float:
    text = token.value
    if len(text) > limits.NUMBER_MAX_CHARS:
        reason = f"the number has {len(text)} characters; the limit is {limits.NUMBER_MAX_CHARS}"
        raise token.refusal(Code.FILTER_NUMBER, reason)
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise token.refusal(Code.FILTER_NUMBER, f"{clipped(text)} is too large for a decimal number")
    return number


def read_moment(token: Token) -> Instant:
    instant = read_instant(read_text(token))
    if instant is None:
        reason = "this is no moment such as '2026-11-16T12:00:00Z' (RFC 3339, with its offset from UTC)"
        raise token.refusal(Code.FILTER_SYNTAX, reason)
    return instant


def read_cidr(token: Token) -> Block:
    block = read_block(read_text(token))
    if block is None:
        reason = "this is no block of addresses such as '10.0.0.0/8' or '2001:db8::/32'"
        raise token.refusal(Code.FILTER_SYNTAX, reason)
    return block


def read_like(token: Token, escape: Token | None) -> Pattern:
    text = read_text(token)
    character = None if escape is None else read_text(escape)
    if escape is not None and (character is None or len(character) != 1):
        raise escape.refusal(Code.FILTER_SYNTAX, "the text after ESCAPE must be one character")
    try:
        return like_pattern(text, character)
    except BadEscape as error:
        reason = f"after the escape character {character!a} must come %, _ or itself"
        raise token.refusal(Code.FILTER_SYNTAX, reason, offset_in(token, error.offset)) from None


def offset_in(token: Token, offset: int) -> int:
    """Where in the token a place of the text between its quotes is: each quote in it is written twice."""
    return 1 + offset + read_text(token)[:offset].count("'")
