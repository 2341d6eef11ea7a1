"""The observer of a site whose router runs in the test's own process, so that its counts can be asked for."""

from dataclasses import dataclass

from routers import Site

from branchline.ops.chaos import observing


@dataclass
class Observer(observing.Observer):
    site: Site

    def count(self, name: str) -> int:
        """What all shards counted in all batches."""
        return sum(counts[name] for counts in self.site.counts)
