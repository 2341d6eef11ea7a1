"""Which of the events that enter in one batch are let in.

The filters that let events in stand in an index of their own (`compiled/index.py`), made anew whenever they
are others: they are few, and change seldom. So of a batch that was scanned, what is let in is one more match
in arrays; only events with arrays are asked one by one.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from branchline.routing.codes import Rejection
from branchline.routing.compiled.index import GrowingIndex
from branchline.routing.compiled.paths import Paths
from branchline.routing.event import Event
from branchline.routing.overlay.admission import Admission
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.scan import Scan


class Admitting:
    """Where batches of events enter at one broker, as long as the same are let in."""

    def __init__(self, admission: Admission, paths: Paths) -> None:
        self.admission = admission
        self._paths, self._version = paths, admission.adverts.version
        self._index = GrowingIndex(paths)
        for filter_ in admission.adverts.admitting():
            self._index.add(filter_)

    def is_fresh(self, paths: Paths) -> bool:
        """Whether this still says who is let in, of events that are scanned for these paths."""
        return self._paths is paths and self._version == self.admission.adverts.version

    def outside(self, scan: Scan, arrivals: Sequence[Arrival]) -> NDArray[np.bool_]:
        """Of each event whether it is not let in; never of those that have no rows."""
        found: NDArray[np.bool_] = np.diff(self._index.match(scan.scanned, len(arrivals)).first) == 0
        for each in np.flatnonzero(scan.arrays).tolist():
            attributes = arrivals[each].content.attributes()
            if not isinstance(attributes, Rejection):
                found[each] = not self.admission.adverts.admits(Event(attributes))
        found[[*scan.rejected, *scan.unrowed]] = False
        return found
