"""Subscriptions that come and go beside a measurement."""

import pytest
from waiting import wait_until

from branchline.kafka.admin import ensure_topics, list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.messages import decode_request
from branchline.kafka.reading import read_to_end
from branchline.kafka.topics import Topics
from branchline.ops.pipeline_changing import changing
from branchline.routing.control import Operation, Request

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("rate", [0, 200])
def test_each_subscription_that_comes_goes_again(rate: float, cluster: Cluster, namespace: str) -> None:
    """In turns, each with a name of its own, as long as it is asked for; none at a rate of 0."""
    topics = Topics(namespace)
    ensure_topics(cluster, topics.of_brokers(("main",)))
    wait_until(lambda: topics.control in list_topics(cluster), 20, "the topic")

    def written() -> list[Request]:
        read = [decode_request(each.value) for each in read_to_end(cluster, topics.control, hint="")]
        return [each for each in read if isinstance(each, Request)]

    with changing(cluster, topics, "main", rate):
        if rate:
            wait_until(lambda: len(written()) > 5, 30, "six requests")
    found = written()
    assert bool(found) == bool(rate)
    for number, request in enumerate(found):
        asked = Operation.UNSUBSCRIBE if number % 2 else Operation.SUBSCRIBE
        assert (request.operation, request.id) == (asked, f"c{number // 2}")
    assert len(written()) == len(found)
