"""What subscribers ask for, what the home broker makes of it, and what it answers.

A subscriber writes a `Request`. Its home broker checks it, gives it a `Number` and so turns it into a
`Change`, the only thing that ever alters the table of subscriptions, at the home and, later, at every
other broker. A change whose number is not above the last one seen for its subscription changes nothing:
so repeats and stragglers are harmless, wherever they come from.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from branchline.routing.codes import Rejection
from branchline.routing.offloading.messages import Claimed


class Operation(StrEnum):
    """What a request asks for."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    RENEW = "renew"
    SUSPEND = "suspend"
    """End all that a subscriber has, because its topic is gone. A sink asks for it, or an operator."""
    ADVERTISE = "advertise"
    """A publisher says what it will send."""
    UNADVERTISE = "unadvertise"


ADVERTISING = frozenset({Operation.ADVERTISE, Operation.UNADVERTISE})
"""What publishers ask for; of them, the subscriber of a request, an identity and an ack is the publisher."""


class Identity(NamedTuple):
    """What names a subscription everywhere."""

    home: str
    subscriber: str
    id: str

    def __str__(self) -> str:
        # Names hold no slash, so this is unambiguous; it is the key of a `filters` record.
        return "/".join(self)


class Number(NamedTuple):
    """Orders the changes that one home makes: which life of the home, and the count within it."""

    incarnation: int
    counter: int


@dataclass(frozen=True, slots=True)
class Request:
    """A subscriber's wish, decoded but not yet checked against what the broker knows."""

    operation: Operation
    subscriber: str
    id: str
    home: str | None = None
    spelling: str = "sql"
    filter: str = ""
    request: str | None = None
    lease_ms: int | None = None
    """How long the subscription stands unless it is renewed; None for ever, or as long as before."""
    all: bool = False
    """Of an unsubscription or a suspension: all that the subscriber has are meant, and `id` is empty."""
    own: bool = False
    """It came by the subscriber's own control topic, and is answered on its own acks. No body says so."""
    claimed: Claimed | None = None
    """Of a subscription: where its filters go in the home's fixed set."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """From this number on, the subscription stands with this filter."""

    identity: Identity
    number: Number
    spelling: str
    filter: str
    requests: tuple[str, ...] = ()
    revision: int = 0
    """Raised when the home tells the same again, renews its lease, or is asked for what stands."""
    lease_ms: int | None = None
    until_ms: int | None = None
    """When the lease is over, by the home's clock. Only the home acts on it."""
    own: bool = False
    """The last request for it came by the subscriber's own control topic: so do later answers go."""

    @property
    def order(self) -> tuple[Number, int]:
        """Of two changes of one subscription, the one with the higher order stands."""
        return self.number, self.revision


@dataclass(frozen=True, slots=True)
class Ended:
    """The subscription has ended. Remembered for a while, so that no straggler revives it."""

    identity: Identity
    number: Number
    at_ms: int
    requests: tuple[str, ...] = ()
    expired: bool = False
    """It ended because its lease was over."""
    revision: int = 0
    own: bool = False
    """As of one that stands."""

    @property
    def order(self) -> tuple[Number, int]:
        """Of two changes of one subscription, the one with the higher order stands."""
        return self.number, self.revision


@dataclass(frozen=True, slots=True)
class Forgotten:
    """An end that was remembered long enough."""

    identity: Identity
    number: Number


Change = Subscribed | Ended | Forgotten


class Status(StrEnum):
    """How a request stands."""

    ACCEPTED = "accepted"
    """The home has it and will not lose it."""
    IN_FORCE = "in-force"
    """Every broker has it: whatever is published from now on is owed."""
    REPLACED = "replaced"
    """The filter with this number no longer stands: a later one under the same id took its place."""
    RENEWED = "renewed"
    """The lease was extended."""
    ENDED = "ended"
    EXPIRED = "expired"
    """The lease was over, and with it the subscription has ended."""
    SUSPENDED = "suspended"
    """The subscriber's topic was gone, and with it the subscription has ended."""
    REMOVED = "removed"
    """The subscriber's topic is removed: for long enough none of its subscriptions stood."""
    REFUSED = "refused"
    REFRESHED = "refreshed"
    """Neighbours have taken back what is wanted behind them no longer, or are waited for no longer."""
    TASK = "task"
    """A volunteer is asked to compare filters for its home."""
    FIXED_SET = "fixed-set"
    """A subscriber is told the filters among which it may say where its own go."""
    EXPLAINED = "explained"
    """What becomes of an event was asked, and is told."""


@dataclass(frozen=True, slots=True)
class Ack:
    """The home's answer to a request: to the control message at `index` of the call, None if that is past."""

    index: int | None
    status: Status
    subscriber: str | None
    id: str | None
    home: str
    number: Number | None = None
    request: str | None = None
    rejection: Rejection | None = None
    note: str | None = None
    """What the subscriber should know of a filter that was accepted."""
    own: bool = False
    """For the subscriber's own acks, not the shared ones."""
    advert: bool = False
    """It is about an advertisement, and the subscriber a publisher."""
