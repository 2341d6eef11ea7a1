"""How many subscriptions a subscriber may have: a setting of the job, and yet part of the state.

Theory of operation. A batch that was not committed is run again, perhaps by a job that was started with
another setting; under a lower one it would refuse what it has accepted already. So what counts in a call is
what was written down in an earlier one, and a new setting is written down at the end of a call with control,
which all shards get. A home that has never accepted anything begins with the setting. Without a word in the
state the limit is the named constant.
"""

from branchline.routing.limits import SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.overlay.facts import Limited


class Limit:
    """The limit of one home."""

    def __init__(self, setting: int = SUBSCRIPTIONS_PER_SUBSCRIBER) -> None:
        self.setting = setting
        self.noted: int | None = None
        """What was written down last."""
        self.in_force = setting
        """What counts in the call that has begun."""
        self._begun = False

    def begin(self, *, fresh: bool) -> None:
        """A call with control begins, at a home that has accepted something, or is fresh."""
        self._begun = True
        self.in_force = self.setting if fresh and self.noted is None else self._known

    def finish(self) -> Limited | None:
        """What is to be written down now that all control is handled."""
        begun, self._begun = self._begun, False
        return Limited(self.setting) if begun and self.setting != self._known else None

    @property
    def _known(self) -> int:
        return SUBSCRIPTIONS_PER_SUBSCRIBER if self.noted is None else self.noted
