"""Readers that turn a filter's text, in one of several spellings, into one expression tree."""

from collections.abc import Callable

from branchline.routing import limits
from branchline.routing.codes import Code, Rejection
from branchline.routing.expression import Expression, In, Matches, constraints
from branchline.routing.spellings import cesql, cloudevents, eventbridge, sql
from branchline.routing.spellings.errors import FilterError

SPELLINGS: dict[str, Callable[[str], Expression]] = {
    "sql": sql.read,
    "cloudevents": cloudevents.read,
    "cesql": cesql.read,
    "eventbridge": eventbridge.read,
}


def read_filter(spelling: str, text: str) -> Expression | Rejection:
    """The expression that the text spells, or why there is none."""
    read = SPELLINGS.get(spelling)
    if read is None:
        known = ", ".join(sorted(SPELLINGS))
        return Rejection(Code.SPELLING_UNKNOWN, f"unknown spelling {spelling[:40]!a}; known: {known}")
    try:
        expression = read(text)
    except FilterError as error:
        return error.rejection
    return _too_dear(expression) or expression


def _too_dear(expression: Expression) -> Rejection | None:
    """Why the filter would cost too much to check, if it would."""
    count = wildcards = 0
    for constraint in constraints(expression):
        count += len(constraint.values) if isinstance(constraint, In) else 1
        wildcards += isinstance(constraint, Matches) and constraint.pattern.searches
    if count > limits.FILTER_MAX_CONSTRAINTS:
        reason = f"the filter has {count} constraints; the limit is {limits.FILTER_MAX_CONSTRAINTS}"
        return Rejection(Code.FILTER_TOO_MANY_CONSTRAINTS, reason, 1, 1)
    if wildcards > limits.FILTER_MAX_WILDCARDS:
        reason = (
            f"the filter has {wildcards} patterns with a single-character wildcard between two others; "
            f"the limit is {limits.FILTER_MAX_WILDCARDS}"
        )
        return Rejection(Code.FILTER_TOO_MANY_WILDCARDS, reason, 1, 1)
    return None
