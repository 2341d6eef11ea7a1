"""A broker's part where filters go along a spanning tree: what it hears of neighbours, tells and answers.

Theory of operation. What neighbours tell is obeyed as it comes (`dissemination/links.py`). When all control
of a call is handled, neighbours are told what has changed by it; then what waits is marked with what they
were told, and they are answered, so that they hear it before the answer. Whoever pulls is replied to last.

What is to be done is given in steps, each of which is to be obeyed before the next is asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Ack, Identity, Request, Status
from branchline.routing.dissemination.adverts import AdvertAwaited, AdvertFact, Adverts
from branchline.routing.dissemination.link_facts import (
    Answered,
    Confirmed,
    Deferred,
    Heard,
    LinkFact,
    Owed,
    Sent,
    Spared,
)
from branchline.routing.dissemination.links import Links
from branchline.routing.dissemination.marking import MarkedPending
from branchline.routing.dissemination.pulling import Concluded, Pull, Pulled, PullFact, Replied, Reply
from branchline.routing.dissemination.refreshing import NOT_INFLATED, Refresher
from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.dissemination.telling import Ask, Settled, Told
from branchline.routing.filters import Filter
from branchline.routing.methods.protocols import Offloading, OnTree
from branchline.routing.offloading.assigner import Assigner, Given
from branchline.routing.offloading.assisting import NO_FIXED_SET, UNASKED, Answering, AskSet, Assist
from branchline.routing.offloading.assisting import UNUSED as UNUSED_CLIENTS
from branchline.routing.offloading.facts import OffloadFact, Volunteered, Worked
from branchline.routing.offloading.offloader import Offloader, Work
from branchline.routing.overlay.home import Home
from branchline.routing.overlay.letters import Letter, Refresh
from branchline.routing.overlay.pending import Awaited
from branchline.routing.overlay.position import Position
from branchline.routing.overlay.publishing import Publishers
from branchline.routing.overlay.topology import Topology

TreeFact: TypeAlias = LinkFact | PullFact | OffloadFact | AdvertAwaited


@dataclass(frozen=True, slots=True)
class At:
    """A fact that comes of the request at this index of the call."""

    fact: Awaited | AdvertAwaited
    index: int | None


Step: TypeAlias = LinkFact | PullFact | OffloadFact | At | Letter | Work | Given | Ack

UNUSED = (
    "the dissemination here has no advertisements: publish without, or start the routers with one that has, "
    "as in --dissemination covering+advertised"
)


class AlongTree:
    """One broker on the tree."""

    def __init__(
        self,
        home: Home,
        position: Position,
        dissemination: OnTree,
        exchange: Callable[[str, Iterable[Filter], Iterable[Filter]], None],
    ) -> None:
        """With whoever is told what is wanted behind a neighbour no longer, and what from now on."""
        self.offloader: Offloader | None = None
        """Where subscribers find out what covers what."""
        self.assigner: Assigner | None = None
        """Where they claim it, of a set that they know."""
        table = SharedTable() if dissemination.table is None else dissemination.table
        if dissemination.offloading is Offloading.ROUNDS:
            self.offloader = Offloader(position.name, table, dissemination.size)
        elif dissemination.offloading is Offloading.FIXED:
            self.assigner = Assigner(position.name, table, dissemination.size)
        self._placer: Offloader | Assigner | None = self.offloader or self.assigner
        told = dissemination.advertising, dissemination.inflating
        self.links = Links(position, dissemination.summary, exchange, *told, table)
        self._position, self._home = position, home
        self._pending = home.pending = MarkedPending(position, self.links)
        self._advertised = MarkedPending(position, self.links)
        self.adverts = Adverts(self.links.own_adverts, self._advertised)
        unused = None if dissemination.takes_adverts else UNUSED
        self.publishers = Publishers(position, home, self.adverts, unused, dissemination.linger_ms)
        self._refresher = Refresher(position, self.links) if dissemination.inflating else None
        """Where what is gone is taken back only from whoever asks."""
        self._asked_at: dict[Identity, int] = {}
        """The requests of this call for what then waits."""
        self._advertised_at: dict[Identity, int] = {}
        """The same of advertisements."""
        self._asked_for_sets: list[AskSet] = []
        """They get the set that stands at the end of the call."""

    # Facts

    def obey(self, fact: TreeFact, index: int | None = None) -> list[Ack]:
        """Make the fact so; what is said to those who wait for it."""
        match fact:
            case Heard() | Sent() | Confirmed() | Owed() | Answered() | Spared() | Deferred():
                self.links.obey(fact)
                return self._settled() if isinstance(fact, Confirmed) else []
            case Pulled() | Replied() | Concluded():
                if self._refresher is not None:
                    self._refresher.pulls.obey(fact)
                return []
            case AdvertAwaited():
                came = self.adverts.obey(fact) or ()
                return [ack for awaited in came for ack in self.publishers.in_force(awaited, index)]
            case _:
                if self._placer is not None:
                    self._placer.obey(fact)
                return []

    def _settled(self) -> list[Ack]:
        acks = [ack for awaited in self._pending.settled() for ack in self._home.in_force(awaited)]
        came = self.adverts.came(self._advertised.settled())
        return acks + [ack for awaited in came for ack in self.publishers.in_force(awaited)]

    def rebase(self, before: Topology | None) -> None:
        """The position has taken another topology, or its first."""
        self.links.rebase(before)
        if self._refresher is not None:
            self._refresher.pulls.forget()

    def facts(self) -> Iterator[TreeFact | AdvertFact]:
        """Facts that make an equal part, once the topology is taken: what a snapshot holds."""
        if self._placer is not None:
            yield from self._placer.early_facts()
        yield from self.links.facts()
        yield from self.adverts.facts()
        if self._refresher is not None:
            yield from self._refresher.pulls.facts()

    def late_facts(self) -> Iterator[TreeFact]:
        """Those that come when it is known what subscribers want."""
        if self._placer is not None:
            yield from self._placer.late_facts()
            yield from self.links.late_facts()

    def due_ms(self) -> int | None:
        """When there is something to do, though nobody asks for anything."""
        return None if self._placer is None else self._placer.due_ms()

    def offloading(self, now_ms: int) -> dict[str, int] | None:
        """How it stands with what subscribers spare the broker, if they may; for statistics."""
        return None if self._placer is None else self._placer.standing(now_ms)

    # Control

    def asked_at(self, awaited: Awaited, index: int) -> None:
        """The request at this index asks for what now waits."""
        self._asked_at[awaited.identity] = index

    def advertised_at(self, awaited: Awaited, index: int) -> None:
        """The same of an advertisement."""
        self._advertised_at[awaited.identity] = index

    def read(self, sender: str, body: Told | Settled | Ask | Pull | Reply) -> Iterator[Step]:
        """A letter from a neighbour."""
        if isinstance(body, Pull | Reply):
            if self._refresher is not None:
                yield from self._refresher.read(sender, body)
            return
        links, topology = self.links, self._position.topology
        if topology is None:
            return
        match body:
            case Told():
                accepted = links.accepts(sender, body)
                if accepted:
                    yield Heard(sender, body)
                elif accepted is None:
                    yield Letter(sender, self._position.name, Ask(topology.order))
            case Settled() if links.confirms(sender, body):
                yield Confirmed(sender, body)
            case Ask():
                if body.topology < topology.order:
                    yield Letter(sender, self._position.name, topology)
                links.tell_anew(sender)

    def finish(self, now_ms: int) -> Iterator[Step]:
        """Tell neighbours what has changed; then answer them, so that they hear it before the answer."""
        links, name = self.links, self._position.name
        replying = [] if self._refresher is None else self._refresher.replying()
        if self._placer is not None:
            yield from self._placer.finish(now_ms)
        if self.assigner is not None:
            for asked in self._asked_for_sets:
                links.counts["sets_given"] += 1
                yield Given(asked.subscriber, name, self.assigner.assignment, asked.request, asked.own)
        for sent in links.tell(now_ms):
            yield sent
            if isinstance(sent, Sent):
                yield Letter(sent.to, name, sent.told)
        yield from links.owing()
        for awaited in self._pending.unmarked():
            marked = replace(awaited, marks=links.marks())
            yield At(marked, self._asked_at.get(awaited.identity))
        for awaited in self._advertised.unmarked():
            marked = replace(awaited, marks=links.marks())
            yield At(AdvertAwaited(marked), self._advertised_at.get(awaited.identity))
        for to, settled in list(links.answers()):
            yield Answered(to, settled.number)
            yield Letter(to, name, settled)
        if self._refresher is not None:
            for pulled in replying:
                yield from self._refresher.reply(pulled)
        self._asked_at, self._advertised_at, self._asked_for_sets = {}, {}, []

    def counted(self, *, leads: bool) -> Counter[str]:
        """What was counted in this call, all of which the leading shard tells."""
        counts = Counter(self.links.counts) if leads else Counter[str]()
        self.links.counts.clear()
        return counts

    # Offloading

    def assist(self, now_ms: int, index: int, asked: Assist) -> Iterator[Step]:
        """A subscriber is ready to work for this broker, or is no longer."""
        wrong: Rejection | None = UNUSED_CLIENTS
        if self.offloader is not None:
            others = [each for each in self.offloader.active(now_ms) if each != asked.subscriber]
            wrong = asked.fault(len(others))
        if wrong is None:
            until_ms = now_ms + asked.for_ms if asked.for_ms else 0
            yield Volunteered(asked.subscriber, until_ms, asked.own)
        yield answered(self._position.name, index, asked, wrong)

    def give(self, index: int, asked: AskSet) -> Iterator[Step]:
        """A subscriber asks for the fixed set."""
        if self.assigner is None:
            yield answered(self._position.name, index, asked, NO_FIXED_SET)
        else:
            self._asked_for_sets.append(asked)

    def hear(self, request: Request) -> None:
        """A subscription here may say where its filters go."""
        if self.assigner is not None and request.claimed is not None:
            compiled = compile_filter(request.spelling, request.filter)
            if isinstance(compiled, Compiled):
                self.assigner.hear(compiled.cover, request.claimed)

    def work(self, index: int, done: Answering) -> Iterator[Step]:
        """A subscriber has done a task."""
        if self.offloader is not None and self.offloader.takes(done.answer, own=done.own):
            self.links.counts["answers_taken"] += 1
            yield Worked(done.answer)
        else:
            self.links.counts["answers_unasked"] += 1
            yield unasked(self._position.name, index, done)

    # Refreshing

    def refresh(self, now_ms: int, index: int, asked: Refresh) -> Iterator[Step]:
        """An operator asks what is still wanted behind the links; or to wait for it no longer."""
        if self._refresher is None:
            yield not_inflated(self._position.name, index, asked)
        else:
            yield from self._refresher.refresh(now_ms, index, asked)

    def unanswered(self) -> Pulled | None:
        """The request of this broker that somebody still waits for."""
        return None if self._refresher is None else self._refresher.pulls.unanswered()

    def issue_again(self, now_ms: int, unanswered: Pulled | None) -> Iterator[Step]:
        """There is another topology, and this was asked under the one before."""
        if self._refresher is not None:
            yield from self._refresher.issue_again(now_ms, unanswered)


def not_inflated(name: str, index: int, asked: Refresh) -> Ack:
    """The answer of a broker whose table does not only grow."""
    return Ack(index, Status.REFUSED, None, None, name, None, asked.request, NOT_INFLATED)


def answered(name: str, index: int, asked: Assist | AskSet, wrong: Rejection | None) -> Ack:
    """The answer to who is ready to work, or may not have a fixed set."""
    status = Status.ACCEPTED if wrong is None else Status.REFUSED
    return Ack(index, status, asked.subscriber, None, name, None, asked.request, wrong, own=asked.own)


def unasked(name: str, index: int, done: Answering, wrong: Rejection = UNASKED) -> Ack:
    """The answer to who has worked in vain."""
    return Ack(index, Status.REFUSED, done.answer.client, None, name, None, None, wrong, own=done.own)
