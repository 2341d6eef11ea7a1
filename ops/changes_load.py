"""Requests for a router that is measured while subscriptions change, made before the clock starts.

A third of them are new subscriptions, a third put another filter in the place of a standing one, and a third
end one: so as many stand afterwards as before. A request is known by its number, which comes back in its
acks.
"""

import json
from collections.abc import Sequence
from random import Random

from branchline.kafka.messages import encode_request
from branchline.ops.matching_workloads import MATCHING, Shape, draw_filters
from branchline.ops.pipeline_load import Load
from branchline.ops.sql_texts import sql_text
from branchline.routing.control import Operation, Request, Status

SETTLED = frozenset({Status.IN_FORCE, Status.ENDED, Status.REFUSED})
"""After an ack of these nothing more is to come for a request."""


def draw_requests(load: Load, workload: str, home: str, count: int, seed: int) -> list[bytes]:
    """So many requests over the subscriptions of the load, encoded, in the order in which to write them."""
    random = Random(f"{seed} changes")
    # Filters of another seed: a replacement by the same text would change nothing.
    texts = [sql_text(each) for each in draw_filters(MATCHING[workload], count, seed + 1, Shape.FLAT)]
    standing = [(number % load.subscribers, number) for number in range(len(load.filters))]
    requests = []
    for number, text in enumerate(texts):
        place = random.randrange(len(standing))
        operation = Operation.UNSUBSCRIBE if number % 3 == 2 else Operation.SUBSCRIBE
        if number % 3 == 0:
            subscription = random.randrange(load.subscribers), len(load.filters) + number
            standing.append(subscription)
        elif number % 3 == 1:
            subscription = standing[place]
        else:
            # The order of those that stand means nothing, so the last one fills the gap.
            subscription, standing[place] = standing[place], standing[-1]
            standing.pop()
        subscriber, id_ = subscription
        request = Request(
            operation,
            f"s{subscriber}",
            f"f{id_}",
            home=home,
            filter=text if operation is Operation.SUBSCRIBE else "",
            request=str(number),
        )
        requests.append(encode_request(request))
    return requests


def settled(acks: Sequence[bytes]) -> list[tuple[int, Status]]:
    """The numbers of the requests that are settled by these acks, and how."""
    found = []
    for ack in acks:
        fields = json.loads(ack)
        status = Status(fields["status"])
        if status in SETTLED and (fields.get("request") or "").isdecimal():
            found.append((int(fields["request"]), status))
    return found
