"""Every limit on input, by name, with its reason. What exceeds one is refused with limit and actual value."""

EVENT_MAX_BYTES = 256 * 1024
"""An event's value. Kafka's default record limit is 1 MiB; a quarter leaves room for what we add."""

EVENT_MAX_DEPTH = 64
"""Levels of nesting in a payload, so that nothing that walks it can exhaust a stack."""

EVENT_MAX_FIELDS = 1_000
"""Leaf fields in a payload, array elements included: bounds the work per event."""

EVENT_MAX_HEADERS = 64
"""Headers per record; CloudEvents in binary mode use one per attribute."""

EVENT_MAX_HEADER_BYTES = 64 * 1024
"""All header names and values of a record together: they are copied to every delivery."""

NUMBER_MAX_CHARS = 400
"""Characters in a number. The longest double written out has 309 digits before the point."""

NAME_MAX_BYTES = 256
"""A field name in a payload, and a segment of a path in a filter."""

FILTER_MAX_BYTES = 4 * 1024
"""A filter's text, UTF-8."""

FILTER_MAX_IN_VALUES = 100
"""Values in one IN list: each may become a filter of its own in an index."""

FILTER_MAX_DEPTH = 8
"""Nesting of AND, OR and NOT in a filter: bounds the stack of whatever walks it."""

MAX_CHOICES = 10_000
"""Single-valued events that an event with arrays may stand for, counted over the arrays a filter names."""

MAX_STEPS = 250_000
"""Choices of an event, times what one pass over a filter takes: constraints, list values, what CESQL makes. A
step is about a microsecond."""

SUBSCRIPTIONS_PER_SUBSCRIBER = 10_000
"""Subscriptions of one subscriber."""

ADVERTISEMENTS_PER_PUBLISHER = 100
"""Advertisements of one publisher at one broker: an event that enters there is asked against all of them."""

LINGER_MS = 24 * 60 * 60 * 1000
"""How long an advertisement that ended goes on pulling subscriptions, for events that it let in and that are
still on their way: as long as an ended subscription's number is remembered."""

CONTROL_MAX_BYTES = 32 * 1024
"""A control message: a filter of full size, every byte of it a JSON escape, and the fields around it."""

ENDED_REMEMBERED_MS = 24 * 60 * 60 * 1000
"""How long an ended subscription's number is remembered, so that a straggler cannot revive it."""

REQUESTS_REMEMBERED = 8
"""Request ids remembered per subscription, so that a repeated request is answered but changes nothing."""

FILTER_MAX_JSON_DEPTH = EVENT_MAX_DEPTH + 2 * FILTER_MAX_DEPTH + 4
"""Arrays and objects within each other in a filter that is JSON: an object for each level of an event, two
for each level of the filter's own nesting, and what stands around a value."""

CESQL_MAX_DEPTH = 64
"""Nesting of all but AND, OR, XOR and NOT in a CESQL expression: bounds the stack of whatever walks it."""

CESQL_MAX_TEXT_CHARS = 1024 * 1024
"""Code points in a text that a CESQL function makes: a few CONCAT could make gigabytes of an attribute."""

COVER_MAX_FILTERS = 128
"""Filters in a cover, beyond which it is widened: an IN list of full size fits, a product of two does not."""

FILTER_MAX_CONSTRAINTS = 256
"""Constraints in one filter, each value of a list counted: bounds the work of checking one event."""

FILTER_MAX_WILDCARDS = 32
"""Patterns in one filter that need a search over the text; 256 KiB of text take 30 ms for each at worst."""

LEASE_MIN_MS = 1_000
"""A lease shorter than this could end before it is in force."""

LEASE_MAX_MS = 366 * 24 * 60 * 60 * 1000
"""A lease longer than a year is none."""

HOPS_MAX = 64
"""Hops of one copy of an event: the distance falls with each, so more are a fault of ours."""
