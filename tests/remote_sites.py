"""A site whose jobs are processes of their own: what they have done is seen in Kafka alone."""

from routers import Site, ends
from waiting import wait_until

from branchline.kafka.listing import last_stats


class RemoteSite(Site):
    """A site whose jobs run elsewhere."""

    def settle(self) -> None:
        """Return when the router has read its topics to their ends, and wrote nothing to them meanwhile."""
        inputs = [self.topics.control, self.topics.rt_updates]
        for broker in self.brokers:
            inputs += [self.topics.entry(broker), self.topics.broker(broker), self.topics.link(broker)]

        def is_quiet() -> bool:
            before = ends(self.cluster, inputs)
            positions = last_stats(self.cluster, self.topics)[f"router/{self.brokers[0]}"]["positions"]
            read = {
                (topic, int(partition)): offset
                for topic, partitions in positions.items()
                for partition, offset in partitions.items()
            }
            return all(read.get(place, 0) >= end for place, end in before.items()) and before == ends(
                self.cluster, inputs
            )

        wait_until(is_quiet, 600, "all is read")
