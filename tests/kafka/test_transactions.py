"""A transactional producer finds its coordinator at once."""

import logging

import pytest
from confluent_kafka import Producer

from branchline.kafka.admin import create_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.topics import OUT
from branchline.kafka.transactions import connect

pytestmark = pytest.mark.kafka


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_a_connected_client_has_somebody_to_ask_for_its_coordinator(cluster: Cluster, namespace: str) -> None:
    """It never says that no broker is there, after which it would wait for half a second."""
    topic = f"{namespace}.markers"
    create_topics(cluster, {topic: OUT})
    said = _Lines()
    logger = logging.getLogger(f"{namespace}.transactions")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(said)
    for number in range(20):
        settings = {"transactional_id": f"{namespace}-{number}", "debug": "eos", "logger": logger}
        producer = Producer({**cluster.librdkafka(**settings), "log_level": 7})
        connect(producer, topic, 30)
        producer.init_transactions(30)
        # What the client has to say comes when it is asked for its reports.
        producer.poll(0)
    assert any("Querying for transaction coordinator" in line for line in said.lines)
    assert not [line for line in said.lines if "No brokers available" in line]
