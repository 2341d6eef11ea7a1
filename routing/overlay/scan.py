"""A batch of events as it was scanned, whoever has scanned it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from branchline.routing.codes import Rejection
from branchline.routing.compiled.spans import Scanned


class Scan(Protocol):
    """A batch of events as it was scanned; they are known by their numbers in it."""

    @property
    def scanned(self) -> Scanned:
        """The rows of all that could be read and have not too many choices."""
        ...

    @property
    def rejected(self) -> Mapping[int, Rejection]:
        """Those that cannot be read, and why."""
        ...

    @property
    def unrowed(self) -> Sequence[int]:
        """Those that can be read and have no rows."""
        ...

    @property
    def arrays(self) -> NDArray[np.bool_]:
        """Which of them have arrays that a filter may choose from."""
        ...
