"""Which events are let in at a broker: those that an advertisement in force there holds for.

Asked once for each event, where it enters. What is not advertised is refused, and owed to everybody; or,
where advertisements are only counted, goes on as if it were.
"""

from dataclasses import dataclass

from branchline.routing.codes import Code, Rejection
from branchline.routing.dissemination.adverts import Adverts

NOT_ADVERTISED = Rejection(Code.NOT_ADVERTISED, "no advertisement in force at this broker holds for it")


@dataclass(frozen=True, slots=True)
class Admission:
    """Where events enter at one broker."""

    adverts: Adverts
    required: bool
    """Whether what is not advertised is refused."""
