"""`subscriptions import`: what of a file is new, what replaces another, and what cannot be had."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import click

from branchline.kafka.asking import Answer, ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.listing import list_subscriptions
from branchline.kafka.topics import Topics
from branchline.ops.output import emit, say
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics
from branchline.ops.subscribing import home_option, timeout_option
from branchline.ops.subscription_files import Line, read_lines
from branchline.ops.telling import EXIT_REFUSED, named, tell_guesses
from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.control import Request, Status, Subscribed
from branchline.routing.overlay.leases import check_lease

BLOCK = 1_000
"""Requests that are asked for at a time; also how often progress is told."""

REFUSED_SHOWN = 20
"""Refused lines that are told to people one by one; beyond, one mistake was probably made many times."""


@dataclass(slots=True)
class Plan:
    """The requests of a file beside what stands."""

    new: list[Request] = field(default_factory=list)
    replacing: list[Request] = field(default_factory=list)
    unchanged: int = 0

    @property
    def requests(self) -> list[Request]:
        """What is to be asked for."""
        return [*self.new, *self.replacing]

    def without(self, refused: Collection[Request]) -> "Plan":
        """The plan but for these."""
        new, replacing = (
            [request for request in requests if request not in refused]
            for requests in (self.new, self.replacing)
        )
        return Plan(new, replacing, self.unchanged)


def refusals(
    lines: Sequence[Line], progress: Callable[[int], None] = lambda checked: None
) -> list[tuple[Line, Rejection]]:
    """The lines that a home would refuse whatever stands, and those that contradict another line."""
    first: dict[tuple[str, str], Line] = {}
    found: list[tuple[Line, Rejection]] = []
    for number, line in enumerate(lines, 1):
        request = line.request
        before = first.setdefault((request.subscriber, request.id), line)
        compiled = compile_filter(request.spelling, request.filter)
        if before is not line:
            reason = f"{request.subscriber}/{request.id} is there twice: see {before.where}"
            found.append((line, Rejection(Code.CONTROL_INVALID, reason)))
        elif isinstance(
            why := compiled if isinstance(compiled, Rejection) else check_lease(request), Rejection
        ):
            found.append((line, why))
        progress(number)
    return found


def plan(lines: Iterable[Line], standing: Iterable[Subscribed]) -> Plan:
    """What is to be asked for, so that everything in the file stands.

    What stands as the file has it is left alone: its lease, too, goes on as it is.
    """
    known: dict[tuple[str, str], list[Subscribed]] = {}
    for change in standing:
        known.setdefault(change.identity[1:], []).append(change)
    planned = Plan()
    for line in lines:
        request = line.request
        stands = [
            change
            for change in known.get((request.subscriber, request.id), ())
            if request.home in (None, change.identity.home)
        ]
        wanted = (request.spelling, request.filter, request.lease_ms)
        if any((change.spelling, change.filter, change.lease_ms) == wanted for change in stands):
            planned.unchanged += 1
        else:
            (planned.replacing if stands else planned.new).append(request)
    return planned


@click.command("import", short_help="Make the subscriptions of a file stand.")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@cluster_options
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@home_option
@timeout_option
@json_option
@click.pass_context
def import_file(
    ctx: click.Context,
    path: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    dry_run: bool,
    home: str | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Make the subscriptions in FILE stand, as JSON lines like those of `export`; - is standard input.

    What stands already is left alone. If a line would be refused, nothing is asked for at all.

    \b
    Examples:
      branchline subscriptions import subscriptions.jsonl
      branchline subscriptions import subscriptions.jsonl --dry-run --json
    """
    with click.open_file(path, "rb") as file:
        content = file.read()
    lines = read_lines("standard input" if path == "-" else path, content, home, None, None)
    if not as_json:
        tell_guesses([line.guessed for line in lines if line.guessed is not None], of_file=True)

    def checked(count: int) -> None:
        if count % (10 * BLOCK) == 0 and not as_json:
            say(f"{count:,} of {len(lines):,} checked")

    wrong = refusals(lines, checked)
    for at, (line, why) in enumerate(wrong):
        place = "" if why.line is None else f" (line {why.line}, column {why.column} of the filter)"
        if as_json:
            emit({"line": line.where, "code": why.code, "reason": why.reason + place})
        elif at < REFUSED_SHOWN:
            say(f"{line.where}: refused [{why.code}]: {why.reason}{place}")
    if wrong:
        _tell_import(Plan(), len(wrong), "nothing was asked for", as_json)
        ctx.exit(EXIT_REFUSED)
    topics, cluster = make_topics(namespace), find_cluster(bootstrap, client_properties)
    planned = plan(lines, list_subscriptions(cluster, topics))
    if dry_run:
        _tell_import(planned, 0, "nothing was asked for: a dry run", as_json)
        return
    answers = _ask(cluster, topics, planned.requests, timeout_s, as_json)
    refused = [
        (request, answer)
        for request, answer in zip(planned.requests, answers, strict=True)
        if answer.status is Status.REFUSED
    ]
    for request, answer in refused:
        if as_json:
            about = {"subscriber": request.subscriber, "id": request.id}
            emit({**about, "code": answer.code, "reason": answer.reason})
        else:
            say(f"{named(request)}: refused [{answer.code}]: {answer.reason}")
    _tell_import(planned.without({request for request, _ in refused}), len(refused), "", as_json)
    ctx.exit(EXIT_REFUSED if refused else 0)


def _ask(
    cluster: Cluster, topics: Topics, requests: list[Request], timeout_s: float, as_json: bool
) -> list[Answer]:
    answers: list[Answer] = []
    for start in range(0, len(requests), BLOCK):
        answers += ask(cluster, topics, requests[start : start + BLOCK], Status.IN_FORCE, timeout_s)
        if len(requests) > BLOCK and not as_json:
            say(f"{len(answers):,} of {len(requests):,} answered")
    return answers


def _tell_import(planned: Plan, refused: int, note: str, as_json: bool) -> None:
    counts = {
        "new": len(planned.new),
        "replaced": len(planned.replacing),
        "unchanged": planned.unchanged,
        "refused": refused,
    }
    if as_json:
        emit({**counts, **({"note": note} if note else {})})
    else:
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        say(f"{told}; {note}" if note else told)
