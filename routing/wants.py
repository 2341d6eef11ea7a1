"""What is wanted of a part of an expression, so that the whole is true.

Walking down from the whole, which should be true, negation and IS TRUE only exchange what is wanted, and
AND and OR pass it on. So every negation ends in the constraints. Not true and not false include unknown.
"""

from enum import Enum


class Want(Enum):
    """What a part should be."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"


OF_NOT = {
    Want.TRUE: Want.FALSE,
    Want.FALSE: Want.TRUE,
    Want.NOT_TRUE: Want.NOT_FALSE,
    Want.NOT_FALSE: Want.NOT_TRUE,
}
"""What is wanted of the term if this is wanted of its negation."""

OF_IS_TRUE = {
    Want.TRUE: Want.TRUE,
    Want.NOT_FALSE: Want.TRUE,
    Want.FALSE: Want.NOT_TRUE,
    Want.NOT_TRUE: Want.NOT_TRUE,
}
"""What is wanted of the term if this is wanted of IS TRUE."""

POSITIVE = frozenset({Want.TRUE, Want.NOT_FALSE})
"""What an AND has if all its terms have it, and an OR if one has; with the others it is the other way."""
