"""The two ends of a bridge, and the names that follow from them."""

from dataclasses import dataclass

from branchline.kafka.cluster import Cluster
from branchline.kafka.topics import Topics


@dataclass(frozen=True)
class Ends:
    """Two clusters, by the names that topologies have for them."""

    source_name: str
    source: Cluster
    target_name: str
    target: Cluster
    namespace: str = "branchline"

    @property
    def name(self) -> str:
        return f"{self.source_name}-{self.target_name}"

    @property
    def topics(self) -> Topics:
        return Topics(self.namespace)

    @property
    def transactional_id(self) -> str:
        # Names hold no dot, so no two bridges share one.
        return f"{self.namespace}.bridge.{self.source_name}.{self.target_name}"

    @property
    def mark_topic(self) -> str:
        return self.topics.bridge(self.source_name)
