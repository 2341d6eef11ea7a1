"""How commands tell what became of requests."""

from collections import Counter
from collections.abc import Sequence

from branchline.kafka.asking import Answer
from branchline.ops.output import emit, say
from branchline.ops.spelling import IN_WORDS, Spelled
from branchline.routing.control import ADVERTISING, Operation, Request, Status
from branchline.routing.spellings.errors import caret

EXIT_REFUSED = 5
_FILTERED = (Operation.SUBSCRIBE, Operation.ADVERTISE)


def tell_guesses(guessed: Sequence[Spelled], of_file: bool) -> None:
    """Say what was not taken for SQL: who meant it otherwise would wonder why nothing matches."""
    others = [each for each in guessed if each.spelling != "sql"]
    if not of_file:
        for filter_ in others:
            say(filter_.note)
    elif others:
        counts = Counter(each.spelling for each in others)
        told = ", ".join(f"{number:,} as {IN_WORDS[spelling]}" for spelling, number in sorted(counts.items()))
        say(f'filters read {told}; --spelling, or "spelling" in a line, says otherwise')


def tell_written(requests: Sequence[Request], as_json: bool) -> None:
    if as_json:
        spellings = sorted({each.spelling for each in requests if each.operation in _FILTERED})
        emit(
            {
                "status": "written",
                "requests": len(requests),
                **({"spellings": spellings} if spellings else {}),
            }
        )
    else:
        say(f"{len(requests)} written, not waited for")


def tell(requests: Sequence[Request], answers: Sequence[Answer], as_json: bool) -> int:
    refused = [answer for answer in answers if answer.status is Status.REFUSED]
    for request, answer in zip(requests, answers, strict=False):
        if as_json:
            fields = {
                "status": answer.status,
                "publisher" if request.operation in ADVERTISING else "subscriber": request.subscriber,
                "id": request.id or None,
                "spelling": request.spelling if request.operation in _FILTERED else None,
                "number": answer.number,
                "code": answer.code,
                "reason": answer.reason,
                "line": answer.line,
                "column": answer.column,
                "note": answer.note,
            }
            emit({name: value for name, value in fields.items() if value is not None})
        elif answer.status is Status.REFUSED:
            say(f"{named(request)}: refused [{answer.code}]: {_why(answer)}")
            if answer.line is not None and answer.column is not None:
                say(caret(request.filter, answer.line, answer.column))
        elif len(requests) == 1:
            say(f"{named(request)}: {answer.note if request.all else answer.status}")
            if answer.status in (Status.ACCEPTED, Status.IN_FORCE):
                if answer.note is not None:
                    say(f"note: {answer.note}")
                if request.operation not in ADVERTISING:
                    say(f"read what it gets with: branchline consume {request.subscriber}")
    if not as_json and len(answers) > 1:
        say(f"{len(answers) - len(refused):,} done, {len(refused):,} refused")
    return EXIT_REFUSED if refused else 0


def named(request: Request) -> str:
    """What a request is about."""
    return request.subscriber if request.all else f"{request.subscriber}/{request.id}"


def _why(answer: Answer) -> str:
    place = f" (line {answer.line}, column {answer.column})" if answer.line is not None else ""
    return f"{answer.reason}{place}"
