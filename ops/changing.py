"""Changes of the topology while everything runs: made from the newest, asked for, and waited for.

Every change can be given again: what is done already is not done twice, and what is under way is waited for.
A newcomer is linked only when its job runs. A broker leaves in two topologies, the second only when nobody
can send anything to it any more and it has read all that was sent.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from branchline.kafka.errors import ConfigError, RequestRefused, WaitExpired
from branchline.kafka.listing import list_subscriptions
from branchline.kafka.proposing import propose, superseded
from branchline.kafka.topics import check_name
from branchline.ops.sites import RUNNING, Look, Sites, behind
from branchline.routing.codes import Code
from branchline.routing.overlay.topology import Member, Topology, fault, link

LOOK_EVERY_S = 0.5

Make = Callable[[Topology], Topology]
Holds = Callable[[Topology], bool]


@dataclass(frozen=True, slots=True)
class Changed:
    """What came of a change: the topology that stands, and whether anything had to be changed."""

    topology: Topology
    changed: bool = True


def awaited(look: Look) -> list[str]:
    """What keeps the topology from being everybody's, in words; empty if every broker has it."""
    number = look.topology.number
    reasons = []
    for member in look.topology.members:
        served = look.served.get(member.name)
        if served is not None and served.topology is not None and served.topology >= number:
            if served.joining:
                reasons.append(f"{member.name} is joining: no neighbour has told it everything yet")
            continue
        if member.cluster in look.unseen:
            why = f"the cluster {member.cluster} does not answer"
        elif served is None:
            why = f"no job on the cluster {member.cluster} serves it"
        elif served.state != RUNNING:
            why = f"its job {served.job} is {served.trouble}"
        elif served.topology is None:
            why = f"its job {served.job} has handled nothing since it started"
        else:
            why = f"it has topology {served.topology}" if served.topology else "it has no topology"
        reasons.append(f"{member.name}: {why}")
    return reasons


def unserved(look: Look, name: str, cluster: str) -> str | None:
    """Why a new broker cannot be linked yet; None if its job waits for that. Raises if it never can."""
    served = look.served.get(name)
    start = f"`branchline router --broker {name} --join` on the cluster {cluster}"
    if served is None or (served.cluster != cluster and served.state != RUNNING):
        return f"no job serves {name}; start it with {start}"
    if served.cluster != cluster:
        raise ConfigError(
            f"{name!r} is served on the cluster {served.cluster!r}, not on {cluster!r}",
            hint="check --cluster",
        )
    if served.state != RUNNING:
        return f"the job {served.job}, which serves {name}, is {served.trouble}"
    if served.topology is None:
        return f"the job {served.job}, which serves {name}, has handled nothing since it started"
    if not served.waiting:
        raise ConfigError(
            f"the job {served.job} began with a topology of its own, which has {name!r} in it",
            hint=f"start it with a new --checkpoint: {start}",
        )
    return None


class Changer:
    """An operator's hand on the topology."""

    def __init__(
        self, sites: Sites, timeout_s: float, report: Callable[[str], None], *, wait: bool = True
    ) -> None:
        self._sites = sites
        self._ends_s = time.monotonic() + timeout_s
        self._report = report
        self._wait = wait

    def link(self, one: str, other: str, cost: int = 1) -> Changed:
        """Link two brokers, or give their link another cost."""
        newest = self._known(one, other)
        wanted = link(one, other, cost)
        if wanted in newest.links:
            return self._settled(newest, changed=False)
        return self._settled(
            self._change(lambda topology: topology.linked(one, other, cost)),
            lambda topology: wanted in topology.links,
        )

    def unlink(self, one: str, other: str) -> Changed:
        """Take the link between two brokers away."""
        ends = link(one, other)[:2]
        if all(each[:2] != ends for each in self._known(one, other).links):
            raise ConfigError(f"{one!r} and {other!r} are not linked", hint="see `branchline topology`")
        return self._settled(
            self._change(lambda topology: topology.unlinked(one, other)),
            lambda topology: all(each[:2] != ends for each in topology.links),
        )

    def add(self, name: str, links: Mapping[str, int], cluster: str | None = None) -> Changed:
        """Let a new broker join, linked with these at these costs."""
        check_name("broker", name)
        newest = self._known(*links)
        where = check_name("cluster", cluster) if cluster else self._sites.here()
        if newest.member(name) is not None:
            missing = {link(name, other, cost) for other, cost in links.items()} - set(newest.links)
            if missing:
                raise ConfigError(
                    f"{name!r} is in topology {newest.number} already, with other links",
                    hint="change them with `branchline topology link` and `unlink`",
                )
            return self._settled(newest, changed=False)
        if any(name == retired for retired, _ in newest.retired):
            raise ConfigError(f"{name!r} is retired; a name is never used again", hint="choose another name")
        _check(newest.joined(name, links, where), newest)
        self._sites.at(where)
        self._until(
            lambda: _listed(unserved(self._sites.look(newest, where), name, where)), f"{name} is not added"
        )
        return self._settled(
            self._change(lambda topology: topology.joined(name, links, where)),
            lambda topology: topology.member(name) is not None,
        )

    def remove(self, name: str, agree: Callable[[int], None]) -> Changed:
        """Let a broker leave; `agree` is asked before so many subscriptions at home there are ended."""
        newest = self._sites.newest()
        if any(name == retired for retired, _ in newest.retired):
            return self._settled(newest, changed=False)
        self._known(name)
        member = newest.member(name)
        assert member is not None
        if not member.leaving:
            marked = newest.left(name)
            _check(marked, newest)
            self._check_seen(marked)
            standing = list_subscriptions(self._sites.cluster, self._sites.topics)
            ending = sum(each.identity.home == name for each in standing)
            if ending:
                agree(ending)
            newest = self._change(lambda topology: topology.left(name))
            self._report(f"topology {newest.number}: {name} is leaving, {ending} subscriptions are ended")
            if not self._wait:
                return Changed(newest)
        self._check_seen(newest)
        self._until(
            lambda: awaited(self._sites.look(newest)), f"topology {newest.number} marks {name} as leaving"
        )
        self._report(f"every broker has topology {newest.number}; {name} reads what was sent to it")
        self._await_read(member, newest)
        newest = self._change(lambda topology: topology.without(name))
        self._report(f"topology {newest.number}: {name} is retired")
        return self._settled(newest, lambda topology: topology.member(name) is None)

    def _await_read(self, leaver: Member, newest: Topology) -> None:
        """Wait until a broker to which nobody sends any more has read what is there.

        What a bridge has yet to carry there is not seen: met by a retired broker, it becomes a dead letter.
        """
        sent = self._sites.ends(leaver.name, leaver.cluster)
        entry = self._sites.topics.entry(leaver.name)

        def unread() -> list[str]:
            entered = {entry: self._sites.ends(leaver.name, leaver.cluster).get(entry, {})}
            served = self._sites.look(newest).served.get(leaver.name)
            positions = served.positions if served is not None else {}
            left = behind(positions, sent)
            if left:
                return [f"{leaver.name} has {topic} to read" for topic in left]
            # What comes later than that is not lost, but would be a dead letter each.
            still = behind(positions, entered)
            return [f"events still enter at {leaver.name}: publish them elsewhere"] if still else []

        self._until(unread, f"{leaver.name} is leaving")

    # How a change is made, asked for and waited for

    def _known(self, *names: str) -> Topology:
        """The newest topology, which must have these brokers."""
        newest = self._sites.newest()
        for name in names:
            if newest.member(name) is None:
                there = ", ".join(member.name for member in newest.members)
                raise ConfigError(
                    f"there is no broker {name!r}", hint=f"topology {newest.number} has {there}"
                )
        return newest

    def _check_seen(self, topology: Topology) -> None:
        """Everybody who is waited for must be on a cluster that can be asked."""
        for member in topology.members if self._wait else ():
            self._sites.at(member.cluster)

    def _change(self, make: Make) -> Topology:
        newest = self._sites.newest()
        wanted = make(newest)
        _check(wanted, newest)
        self._check_seen(wanted)
        left_s = max(self._ends_s - time.monotonic(), 1.0)
        stands = propose(self._sites.cluster, self._sites.topics, wanted, left_s)
        self._report(f"topology {wanted.number}: accepted")
        return stands

    def _settled(self, stands: Topology, holds: Holds | None = None, *, changed: bool = True) -> Changed:
        """Wait until every broker has the topology, and look whether it still stands."""
        if not self._wait:
            return Changed(stands, changed)
        self._check_seen(stands)
        self._until(lambda: awaited(self._sites.look(stands)), f"topology {stands.number} is accepted")
        newest = self._sites.newest()
        if holds is not None and not holds(newest):
            raise superseded(newest)
        return Changed(stands, changed)

    def _until(self, reasons: Callable[[], list[str]], so_far: str) -> None:
        """Look until nothing is waited for any more; tell of each change, and of what is left at the end."""
        told: list[str] = []
        while waiting := reasons():
            if not self._wait or time.monotonic() > self._ends_s:
                raise WaitExpired(
                    f"{so_far}, and this is waited for: {'; '.join(waiting)}",
                    hint="give the same command again to go on; see `branchline topology`",
                )
            if waiting != told:
                told = waiting
                self._report(f"waiting: {'; '.join(waiting)}")
            time.sleep(LOOK_EVERY_S)


def _check(wanted: Topology, newest: Topology) -> None:
    """Refuse here what the brokers would refuse: the reason is the same, and comes at once."""
    wrong = fault(wanted, newest)
    if wrong is not None:
        raise RequestRefused(
            f"this cannot be the next topology: {wrong}",
            code=Code.TOPOLOGY_INVALID.value,
            hint="see `branchline topology`; nothing was changed",
        )


def _listed(reason: str | None) -> list[str]:
    return [] if reason is None else [reason]
