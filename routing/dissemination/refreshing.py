"""Refreshing: what a broker says and writes down when it is asked what is still wanted (`pulling.py`).

Each function gives steps, one at a time: facts, letters and acks. A fact is to be obeyed before the next step
is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Ack, Status
from branchline.routing.dissemination.links import Links
from branchline.routing.dissemination.pulling import Concluded, Pull, Pulled, PullFact, Pulls, Reply
from branchline.routing.overlay.letters import Letter, Refresh
from branchline.routing.overlay.position import Position

Step: TypeAlias = PullFact | Letter | Ack

NOT_INFLATED = Rejection(
    Code.CONTROL_OPERATION, "only with the dissemination cbcb is there anything that could be refreshed"
)


@dataclass(slots=True)
class Refresher:
    """One broker's part in refreshing tables: its own, and those of whoever asks."""

    position: Position
    links: Links
    pulls: Pulls = field(init=False)

    def __post_init__(self) -> None:
        self.pulls = Pulls(self.position)

    def refresh(self, now_ms: int, index: int, asked: Refresh) -> Iterator[Step]:
        """An operator asks this broker; or asks it to wait no longer."""
        name = self.position.name
        if self.position.member is None:
            wrong = Rejection(Code.HOME_UNKNOWN, f"the broker {name!r} is not in the topology")
            yield Ack(index, Status.REFUSED, None, None, name, None, asked.request, wrong)
            return
        yield Ack(index, Status.ACCEPTED, None, None, name, None, asked.request)
        if asked.give_up:
            yield from self.pulls.give_up()
            return
        own = self.pulls.own
        if own is None or asked.request is None or asked.request not in own.requests:
            yield from self._issue(
                now_ms, asked.timeout_ms, () if asked.request is None else (asked.request,)
            )
        elif self.pulls.unanswered() is None:
            yield Ack(index, Status.REFRESHED, None, None, name, None, asked.request)

    def read(self, sender: str, body: Pull | Reply) -> Iterator[Step]:
        """A neighbour asks, or replies."""
        if isinstance(body, Reply):
            replied = self.pulls.hear_reply(sender, body)
            if replied is not None:
                yield replied
            return
        pulled = self.pulls.hear(sender, body)
        if pulled is not None:
            yield from self._ask_others(pulled)

    def issue_again(self, now_ms: int, unanswered: Pulled | None) -> Iterator[Step]:
        """There is another topology, and somebody still waits for what was asked under the one before."""
        if unanswered is not None and self.position.member is not None:
            yield from self._issue(now_ms, unanswered.timeout_ms, unanswered.requests)

    def replying(self) -> list[Pulled]:
        """The requests that can be replied to; whoever has asked is told what is gone when all is told."""
        due = self.pulls.due()
        for pulled in due:
            if pulled.asker is not None:
                self.links.deflate(pulled.asker)
        return due

    def reply(self, pulled: Pulled) -> Iterator[Step]:
        """All that was asked for is told: say so to whoever has asked."""
        assert self.position.topology is not None, "a topology ends what was asked under another one"
        yield Concluded(pulled.issuer)
        self.links.counts["requests_answered"] += 1
        if pulled.asker is not None:
            reply = Reply(self.position.topology.order, pulled.issuer, pulled.number)
            yield Letter(pulled.asker, self.position.name, reply)
            return
        note = f"{pulled.filters:,} filters of neighbours before, {len(self.links):,} now"
        silent = ", ".join(self.pulls.given_up(pulled))
        note += f"; no reply from {silent}" if silent else ""
        for request in pulled.requests:
            yield Ack(None, Status.REFRESHED, None, None, self.position.name, None, request, note=note)

    def _issue(self, now_ms: int, timeout_ms: int, requests: tuple[str, ...]) -> Iterator[Step]:
        yield from self._ask_others(self.pulls.issue(now_ms, timeout_ms, requests, len(self.links)))

    def _ask_others(self, pulled: Pulled) -> Iterator[Step]:
        assert self.position.topology is not None, "only members ask and are asked"
        yield pulled
        pull = Pull(self.position.topology.order, pulled.issuer, pulled.number, pulled.timeout_ms)
        for name in self.pulls.others(pulled.asker):
            yield Letter(name, self.position.name, pull)
