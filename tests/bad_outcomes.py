"""What became of bad input: told from what stands in the topics, and the pages' tables of it."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bad_inputs as bad

from branchline.kafka.dead_letters import OWES_EVENT, OWES_NOTHING, DeadLetter
from branchline.kafka.events import Event, decode_event
from branchline.kafka.record import Place, Record
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Status
from branchline.routing.evaluate import evaluate
from branchline.routing.spellings import read_filter

PAGE = Path(__file__).parent.parent / "docs" / "bad-input.md"
WRITE = "BRANCHLINE_TEST_WRITE_DOCS"
"""The variable that makes the tests write the tables of the page instead of comparing them."""

EVERYTHING = "everything"
"""The subscriber who gets all that can be read."""


@dataclass(slots=True)
class Seen:
    """What stands in the topics because of one input."""

    letters: list[DeadLetter] = field(default_factory=list)
    acks: list[dict[str, Any]] = field(default_factory=list)
    delivered: set[str] = field(default_factory=set)

    def outcome(self, entrance: str) -> tuple[Code | None, str]:
        """The code, and where it went."""
        refusals = [ack for ack in self.acks if ack["status"] == Status.REFUSED]
        codes = {letter.code for letter in self.letters} | {ack["code"] for ack in refusals}
        assert len(codes) <= 1, f"one input, several codes: {codes}"
        code = Code(codes.pop()) if codes else None
        if entrance in (bad.CONTROL, bad.FILTER):
            return code, self._answered(bool(refusals))
        if entrance in (bad.LINK, bad.UPDATES):
            assert all(letter.owed == OWES_NOTHING for letter in self.letters)
            return code, bad.LETTER_NOTHING if self.letters else bad.PASSED_OVER
        return code, self._routed(entrance)

    def _answered(self, refused: bool) -> str:
        if refused:
            return bad.REFUSED_LETTER if self.letters else bad.REFUSED
        statuses = {ack["status"] for ack in self.acks}
        if Status.EXPLAINED in statuses:
            return "explained on acks"
        return bad.IN_FORCE if Status.IN_FORCE in statuses else bad.PASSED_OVER

    def _routed(self, entrance: str) -> str:
        if not self.letters:
            accepted = "matched afresh" if entrance == bad.COPY else bad.DELIVERED
            return accepted if self.delivered else bad.PASSED_OVER
        (letter,) = self.letters
        if letter.owed == OWES_NOTHING:
            return bad.AFRESH if self.delivered else bad.LETTER_NOTHING
        if letter.owed == OWES_EVENT:
            return bad.LETTER_EVENT
        if letter.owed.startswith("scope:"):
            return bad.LETTER_SCOPE
        return bad.LETTER_ONE if self.delivered else "dead-letters, owed to one subscriber"


def expected_deliveries(each: bad.Bad, headers: Any) -> set[str]:
    """Who must get an event, by the naive evaluator."""
    event = decode_event(Record(Place("t", 0, 0, 0), each.key, each.make(), headers))
    assert isinstance(event, Event)
    owed = {EVERYTHING}
    for subscriber, text in bad.PROBES.items():
        expression = read_filter("sql", text)
        assert not isinstance(expression, Rejection)
        if evaluate(expression, event.attributes) is True:
            owed.add(subscriber)
    return owed


def check_table(title: str, head: Sequence[str], rows: Collection[Sequence[object]], test: str) -> None:
    """Compare a table of the page with what was seen, or write it there if that is asked for."""
    text = PAGE.read_text(encoding="utf-8")
    before, mark, after = text.partition(f"<!-- {title} -->\n")
    assert mark, f"{PAGE.name} has no place for the table {title!r}"
    _, end, rest = after.partition("<!-- end -->\n")
    assert end, f"the table {title!r} of {PAGE.name} has no end"
    lines = [head, ["---"] * len(head), *rows]
    table = "\n".join("| " + " | ".join(map(str, each)) + " |" for each in lines) + "\n"
    made = before + mark + table + end + rest
    if os.environ.get(WRITE):
        PAGE.write_text(made, encoding="utf-8")
        return
    assert made == text, (
        f"{PAGE.name} does not say what was seen; to write it anew: {WRITE}=1 python -m pytest {test}"
    )
