"""The stable codes of everything that is rejected or refused, and the value that carries one.

Bad input is data: whatever decodes or checks gives a value or a `Rejection`. `docs/messages.md` lists
every code; a test fails if one is missing there.
"""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Why something was rejected. The text of a code never changes; the reason beside it may."""

    # events
    EVENT_TOO_LARGE = "event-too-large"
    EVENT_EMPTY = "event-empty"
    HEADERS_TOO_MANY = "headers-too-many"
    HEADERS_TOO_LARGE = "headers-too-large"
    CONTENT_TYPE_UNSUPPORTED = "content-type-unsupported"
    CLOUDEVENT_INVALID = "cloudevent-invalid"
    JSON_INVALID = "json-invalid"
    JSON_TOO_DEEP = "json-too-deep"
    JSON_TOO_MANY_FIELDS = "json-too-many-fields"
    JSON_NAME_TOO_LONG = "json-name-too-long"
    JSON_NUMBER = "json-number"
    JSON_SURROGATE = "json-surrogate"
    TOO_MANY_CHOICES = "too-many-choices"
    ORIGIN_INVALID = "origin-invalid"
    HEADER_INVALID = "header-invalid"
    HOPS_TOO_MANY = "hops-too-many"
    BROKER_RETIRED = "broker-retired"
    OUTPUT_REFUSED = "output-refused"
    NOT_ADVERTISED = "not-advertised"
    # control messages
    CONTROL_INVALID = "control-invalid"
    CONTROL_TOO_LARGE = "control-too-large"
    CONTROL_VERSION = "control-version"
    CONTROL_OPERATION = "control-operation"
    NOT_YOURS = "not-yours"
    NAME_INVALID = "name-invalid"
    HOME_UNKNOWN = "home-unknown"
    HOME_MISSING = "home-missing"
    HOME_DIFFERS = "home-differs"
    HOME_LEAVING = "home-leaving"
    LEASE_INVALID = "lease-invalid"
    LEASE_OVER = "lease-over"
    TOPOLOGY_INVALID = "topology-invalid"
    SPELLING_UNKNOWN = "spelling-unknown"
    SUBSCRIPTION_UNKNOWN = "subscription-unknown"
    SUBSCRIPTIONS_TOO_MANY = "subscriptions-too-many"
    ADVERTISEMENTS_UNUSED = "advertisements-unused"
    ADVERTISEMENT_UNKNOWN = "advertisement-unknown"
    ADVERTISEMENTS_TOO_MANY = "advertisements-too-many"
    ASSIST_INVALID = "assist-invalid"
    ASSISTANTS_TOO_MANY = "assistants-too-many"
    ANSWER_UNASKED = "answer-unasked"
    # filters
    FILTER_SYNTAX = "filter-syntax"
    FILTER_TYPE = "filter-type"
    FILTER_TOO_LONG = "filter-too-long"
    FILTER_TOO_DEEP = "filter-too-deep"
    FILTER_TOO_MANY_VALUES = "filter-too-many-values"
    FILTER_NUMBER = "filter-number"
    FILTER_NAME_TOO_LONG = "filter-name-too-long"
    FILTER_TOO_MANY_CONSTRAINTS = "filter-too-many-constraints"
    FILTER_TOO_MANY_WILDCARDS = "filter-too-many-wildcards"
    FILTER_UNSATISFIABLE = "filter-unsatisfiable"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why an input was not used: a code for machines, a reason for people, and the place in a text."""

    code: Code
    reason: str
    line: int | None = None
    column: int | None = None
