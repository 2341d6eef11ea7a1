"""Records with a header whose name is no UTF-8, which our own client cannot write."""

from branchline.kafka.cluster import Cluster

DEADLINE_S = 30.0


def write_unreadable(cluster: Cluster, topic: str, value: bytes | None, key: bytes | None = None) -> None:
    """Write such a record to the topic's first partition."""
    from kafka import KafkaProducer

    class Name(str):
        def encode(self, *_: object) -> bytes:
            return b"\xff"

    renamed = {"sasl.username": "sasl_plain_username", "sasl.password": "sasl_plain_password"}
    names = {"security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"}
    settings = {
        renamed.get(name, name.replace(".", "_")): cluster.properties[name]
        for name in names & cluster.properties.keys()
    }
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, **settings)
    producer.send(topic, value, key=key, partition=0, headers=[(Name("x"), b"")]).get(DEADLINE_S)
    producer.close()
