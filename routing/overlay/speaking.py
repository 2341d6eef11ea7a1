"""Who answers what is sent to a whole cluster: requests, topologies, and questions about events.

Theory of operation. Every job on a cluster reads all its control messages, and one of them must answer. A
request is answered by the job that serves the home which it names, or the only broker of the cluster if it
names none. What is left, requests that name nobody or nobody who is there, and topologies, is answered by the
job that *speaks* for the cluster: the one that serves the cluster's first broker under the newest topology
that it has. (Any job does while there is no such broker.) As long as jobs have different topologies, two of
them may speak, or none: an answer may come twice, or whoever asks must ask again.
"""

from collections.abc import Mapping

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Request
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
        named = None if request.home is None else self._brokers.get(request.home)
        if named is not None:
            if named.position.member is not None:
                return named
            return Rejection(Code.HOME_UNKNOWN, f"the broker {named.name!r} is not in the topology")
        topology = self.newest()
        if topology is None:
            return None
        here = self._here(topology)
        if request.home is None and len(here) == 1:
            return self._brokers.get(here[0].name)
        return self._refusal(request.home, topology) if self._speaks(topology) else None

    def explains(self, broker: str) -> Broker | Rejection | None:
        """Likewise for whoever asks about an event at a broker."""
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
