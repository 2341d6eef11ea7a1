"""Facts of offloading, and of filters that wait to be placed, as JSON fields (`facts.py`)."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from branchline.kafka.assisting import answer_fields, claims_from_fields
from branchline.kafka.claiming import assignment_fields, assignment_from_fields
from branchline.kafka.exchanges import filters_from_text, filters_text
from branchline.routing.dissemination.link_facts import Deferred, Spared
from branchline.routing.offloading.facts import (
    Assigned,
    Began,
    Placed,
    Queue,
    RoundOver,
    Standing,
    Table,
    Volunteered,
    Waits,
    Worked,
)
from branchline.routing.offloading.messages import Answer

Offloaded: TypeAlias = (
    Volunteered | Waits | Began | Worked | Placed | RoundOver | Table | Queue | Assigned | Spared | Deferred
)

STATES = (
    *("volunteered", "waits", "began", "worked", "placed", "roundover"),
    *("table", "queue", "assigned", "spared", "deferred"),
)


def offloaded_fields(fact: Offloaded) -> dict[str, Any]:
    """The fields, but for the one that says what it is."""
    match fact:
        case Volunteered():
            return {"subscriber": fact.subscriber, "until_ms": fact.until_ms, "own": fact.own}
        case Waits():
            return {"since_ms": fact.since_ms}
        case Began():
            begun = {"number": fact.number, "size": fact.size, "at_ms": fact.at_ms}
            return begun | {"clients": list(fact.clients), "turn": fact.turn}
        case Worked():
            where = {"round": fact.answer.round, "slice": fact.answer.slice, "client": fact.answer.client}
            return where | answer_fields(fact.answer)
        case Placed():
            return {"ordinal": fact.ordinal, "above": list(fact.above), "below": list(fact.below)}
        case RoundOver():
            return {"silent": list(fact.silent)}
        case Table():
            return {
                "numbers": [each.number for each in fact.standing],
                "filters": filters_text(each.filter for each in fact.standing),
                "above": [list(each.above) for each in fact.standing],
                "following": fact.following,
            }
        case Queue():
            return {
                "ordinals": [ordinal for ordinal, _ in fact.waiting],
                "filters": filters_text(filter_ for _, filter_ in fact.waiting),
                "given": fact.given,
                "turn": fact.turn,
                "number": fact.number,
                "frozen": fact.frozen,
            }
        case Assigned():
            chosen = {"numbers": list(fact.numbers), "table": fact.table}
            return chosen | assignment_fields(fact.assignment)
        case Spared():
            return {"to": fact.to, "filters": filters_text(fact.filters), "ordinal": fact.ordinal}
        case Deferred():
            return {"name": fact.name, "after": fact.after, "heard": [list(each) for each in fact.heard]}


def offloaded_from_fields(fields: Mapping[str, Any]) -> Offloaded:
    """The inverse."""
    match fields["state"]:
        case "volunteered":
            return Volunteered(fields["subscriber"], fields["until_ms"], fields["own"])
        case "waits":
            return Waits(fields["since_ms"])
        case "began":
            begun = fields["number"], fields["size"], fields["at_ms"]
            return Began(*begun, tuple(fields["clients"]), fields["turn"])
        case "worked":
            where = fields["round"], fields["slice"], fields["client"]
            return Worked(Answer(*where, *claims_from_fields(fields)))
        case "placed":
            return Placed(fields["ordinal"], tuple(fields["above"]), tuple(fields["below"]))
        case "roundover":
            return RoundOver(tuple(fields["silent"]))
        case "table":
            filters = filters_from_text(fields["filters"])
            known = zip(fields["numbers"], filters, map(tuple, fields["above"]), strict=True)
            return Table(tuple(Standing(*each) for each in known), fields["following"])
        case "queue":
            waiting = tuple(zip(fields["ordinals"], filters_from_text(fields["filters"]), strict=True))
            return Queue(waiting, *(fields[each] for each in ("given", "turn", "number", "frozen")))
        case "assigned":
            return Assigned(tuple(fields["numbers"]), assignment_from_fields(fields), fields["table"])
        case "spared":
            return Spared(fields["to"], filters_from_text(fields["filters"]), fields["ordinal"])
        case _:
            return Deferred(fields["name"], fields["after"], tuple(map(tuple, fields["heard"])))
