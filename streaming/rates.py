"""How fast counts rise: over the last seconds and the last minute.

Samples are kept for as long as the longest window. A rate is taken from the newest sample that is a window
old, over the time that has really passed since, or over the whole life of what is younger than the window.
"""

from collections import deque
from collections.abc import Mapping, Sequence

WINDOWS_S = (10, 60)
COUNTED = ("accepted", "delivered")


class Rates:
    """Samples of counts, and the rates between them."""

    def __init__(self, now_s: float, counted: Sequence[str] = COUNTED) -> None:
        self._counted = counted
        self._samples = deque([(now_s, dict.fromkeys(counted, 0))])

    def over(self, now_s: float, counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """The rates a second of each window, such as `10s`; the counts are a sample from now on."""
        current = {name: counts.get(name, 0) for name in self._counted}
        found = {f"{window_s}s": self._rates(now_s, window_s, current) for window_s in WINDOWS_S}
        self._samples.append((now_s, current))
        # The oldest that is kept is the one before the longest window.
        while len(self._samples) > 1 and self._samples[1][0] <= now_s - max(WINDOWS_S):
            self._samples.popleft()
        return found

    def _rates(self, now_s: float, window_s: float, current: Mapping[str, int]) -> dict[str, float]:
        old = [sample for sample in self._samples if sample[0] <= now_s - window_s]
        since_s, before = old[-1] if old else self._samples[0]
        passed_s = max(now_s - since_s, 1.0)
        return {name: round((current[name] - before[name]) / passed_s, 3) for name in self._counted}
