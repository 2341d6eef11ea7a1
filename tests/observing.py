"""The observer of a site whose router runs in the test's own process, so that its counts can be asked for."""

from dataclasses import dataclass

from routers import Site

from branchline.kafka.fixed_sets import FixedSets
from branchline.ops.chaos import observing
from branchline.routing.control import Operation, Request


@dataclass
class Observer(observing.Observer):
    site: Site
    fixed_sets: FixedSets | None = None
    """With it, subscribers say where their filters go in them."""

    def asking(self, request: Request) -> Request:
        """The request as its subscriber writes it."""
        if self.fixed_sets is None or request.operation is not Operation.SUBSCRIBE:
            return request
        return self.fixed_sets.claiming(request)

    def count(self, name: str) -> int:
        """What all shards counted in all batches."""
        return sum(counts[name] for counts in self.site.counts)
