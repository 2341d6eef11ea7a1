"""Who answers what is sent to a whole cluster: requests, topologies, and questions about events.

Theory of operation. Every job on a cluster reads all its control messages, and one of them must answer. A
request is answered by the job that serves the home which it names, or the only broker of the cluster if it
names none. Who asks for the end of all that a subscriber has need not name its home: the brokers know it.
What is left, requests that name nobody or nobody who is there, and topologies, is answered by the
job that *speaks* for the cluster: the one that serves the cluster's first broker under the newest topology
that it has. (Any job does while there is no such broker.) As long as jobs have different topologies, two of
them may speak, or none: an answer may come twice, or whoever asks must ask again.
"""

from collections.abc import Mapping

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Request, Subscribed
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.topology import Member, Topology


class Speaker:
    """The brokers of a job, as those who answer on a cluster."""

    def __init__(self, brokers: Mapping[str, Broker], cluster: str) -> None:
        self._brokers = brokers
        self._cluster = cluster

    def newest(self) -> Topology | None:
        """The newest topology that a broker here has."""
        known = [broker.topology for broker in self._brokers.values() if broker.topology is not None]
        return max(known, key=lambda each: each.order, default=None)

    def home_of(self, request: Request) -> Broker | Rejection | None:
        """The broker that answers; a refusal, if nobody else would say it; None if another job answers."""
        home = self._known_home(request.subscriber) if request.all and not request.home else request.home
        named = None if home is None else self._brokers.get(home)
        if named is not None:
            if named.position.member is not None:
                return named
            return Rejection(Code.HOME_UNKNOWN, f"the broker {named.name!r} is not in the topology")
        topology = self.newest()
        if topology is None:
            return None
        here = self._here(topology)
        if home is None and len(here) == 1:
            return self._brokers.get(here[0].name)
        if not self._speaks(topology):
            return None
        if home is None and request.all:
            reason = f"subscriber {request.subscriber!r} has no subscription at a broker of this cluster"
            return Rejection(Code.SUBSCRIPTION_UNKNOWN, reason)
        return self._refusal(home, topology)

    def serves_all(self) -> bool:
        """Whether all brokers of the cluster are here: then nobody else writes to its subscribers."""
        topology = self.newest()
        return topology is not None and all(each.name in self._brokers for each in self._here(topology))

    def _known_home(self, subscriber: str) -> str | None:
        """Where the subscriber has subscriptions, as far as a broker here knows, or had some lately.

        What a home says of itself comes first: what others have heard of it may be old.
        """
        known = [
            (isinstance(change, Subscribed), change.identity.home == name, change.identity.home)
            for name, broker in self._brokers.items()
            for change in broker.table.of(subscriber)
        ]
        return max(known)[2] if known else None

    def explains(self, broker: str) -> Broker | Rejection | None:
        """Likewise for whoever asks a broker about an event, or to refresh its table."""
        if broker in self._brokers:
            return self._brokers[broker]
        topology = self.newest()
        return self._refusal(broker, topology) if topology and self._speaks(topology) else None

    def _refusal(self, home: str | None, topology: Topology) -> Rejection | None:
        """Why no broker of the cluster answers a request for this home; None if one does."""
        names = ", ".join(repr(member.name) for member in self._here(topology))
        if home is None:
            return Rejection(Code.HOME_MISSING, f"this cluster has several brokers; name one of {names}")
        member = topology.member(home)
        if member is None:
            return Rejection(Code.HOME_UNKNOWN, f"no broker {home!r}; this cluster has {names}")
        if member.cluster != self._cluster:
            reason = f"the broker {member.name!r} is on the cluster {member.cluster!r}; ask there"
            return Rejection(Code.HOME_UNKNOWN, reason)
        return None

    def proposer(self, proposed: Topology) -> Broker | None:
        """The broker that takes a topology which an operator asks for; None if another job answers.

        If it is the first that this job hears of, whoever it makes speak for the cluster answers.
        """
        topology = self.newest() or proposed
        served = [member.name for member in topology.members if member.name in self._brokers]
        return self._brokers[served[0]] if served and self._speaks(topology) else None

    def _speaks(self, topology: Topology) -> bool:
        here = self._here(topology)
        return not here or here[0].name in self._brokers

    def _here(self, topology: Topology) -> list[Member]:
        return [member for member in topology.members if member.cluster == self._cluster]
