"""What subscribers say who work for a broker: that they do, and what they have found out."""

from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.codes import Code, Rejection
from branchline.routing.offloading.messages import Answer

ASSIST_MIN_MS = 1_000
"""Who works for less would be gone before a round is over."""
ASSIST_MAX_MS = 60 * 60 * 1000
"""Whoever is gone without a word is asked in vain for at most so long, and once."""
VOLUNTEERS_MAX = 1_000
"""Of one broker: more would not make a round quicker, and all are remembered."""

UNUSED = Rejection(
    Code.CONTROL_OPERATION, "only with the dissemination covering+rto does anybody work for a broker"
)
NO_FIXED_SET = Rejection(
    Code.CONTROL_OPERATION, "only with the dissemination covering+ff does a broker give out a fixed set"
)
UNASKED = Rejection(
    Code.ANSWER_UNASKED,
    "nobody waits for this: the round is over, or it was given to others or is answered, or it does not fit",
)


@dataclass(frozen=True, slots=True)
class Assist:
    """A subscriber is ready to work for a broker for some time; or no longer, if that is 0."""

    subscriber: str
    home: str
    for_ms: int
    request: str | None = None
    own: bool = False
    """It came by the subscriber's own control topic."""

    def fault(self, volunteers: int) -> Rejection | None:
        """Why it is refused by a broker that has so many others; None if it is not."""
        if self.for_ms and not ASSIST_MIN_MS <= self.for_ms <= ASSIST_MAX_MS:
            reason = f"to work for {self.for_ms} ms; it must be from {ASSIST_MIN_MS} to {ASSIST_MAX_MS} ms"
            return Rejection(Code.ASSIST_INVALID, reason)
        if self.for_ms and volunteers >= VOLUNTEERS_MAX:
            reason = f"{volunteers} subscribers work for {self.home!r}; the limit is {VOLUNTEERS_MAX}"
            return Rejection(Code.ASSISTANTS_TOO_MANY, reason)
        return None


@dataclass(frozen=True, slots=True)
class AskSet:
    """A subscriber asks for the fixed set of a broker."""

    subscriber: str
    home: str
    request: str | None = None
    own: bool = False
    """As of one who is ready to work."""


@dataclass(frozen=True, slots=True)
class Answering:
    """A subscriber has done a task of a broker."""

    answer: Answer
    home: str
    own: bool = False


Helping: TypeAlias = Assist | AskSet | Answering
"""What subscribers say who spare a broker work."""
