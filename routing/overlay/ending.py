"""What a home does when a subscriber asks for the end of all its subscriptions, or when its topic is gone.

Theory of operation. It is one request, handled within one call: each subscription that stands is ended as if
that had been asked for, with an ack of its own, and a last ack, which names no subscription, says that this
was all. The request's id is remembered with all that it ended, or, if nothing stood, with what had ended
lately; as long as one of them remembers it, a repeat is answered and ends nothing.

Cost: O(n log n) in the subscriptions that are known of the subscriber.
"""

from collections.abc import Iterator
from dataclasses import replace

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Ack, Ended, Number, Operation, Request, Status, Subscribed
from branchline.routing.overlay.home import Answer, Home, with_request


def end_all_of(home: Home, now_ms: int, index: int, request: Request) -> Iterator[Answer]:
    """The answers to the request, each to be obeyed before the next is asked for."""
    known = home.of(request.subscriber)
    if request.operation is Operation.SUSPEND and not any(isinstance(each, Subscribed) for each in known):
        return  # asked for by every batch that missed the topic: the first one did it
    if not known:
        reason = f"subscriber {request.subscriber!r} has no subscription"
        yield Answer([_last(home, index, request, rejection=Rejection(Code.SUBSCRIPTION_UNKNOWN, reason))])
        return
    asked = [each for each in known if request.request is not None and request.request in each.requests]
    standing = [each for each in known if isinstance(each, Subscribed)]
    if asked:
        ended = [each for each in asked if isinstance(each, Ended)]
        for end in ended:
            yield Answer([_ended(home, index, request, end.identity.id, end.number)])
        count = len(ended)
    else:
        count = len(standing)
        for stood in standing:
            end = Ended(stood.identity, home.next_number(now_ms), now_ms, with_request(stood, request))
            yield Answer([_ended(home, index, request, end.identity.id, end.number)], end)
        if not standing and request.request is not None:
            for each in known:
                again = replace(each, requests=with_request(each, request), revision=each.revision + 1)
                yield Answer([], again, tell=False)
    yield Answer([_last(home, index, request, f"{count} subscription{'' if count == 1 else 's'} ended")])


def _status(request: Request) -> Status:
    return Status.SUSPENDED if request.operation is Operation.SUSPEND else Status.ENDED


def _ended(home: Home, index: int, request: Request, id_: str, number: Number) -> Ack:
    return Ack(index, _status(request), request.subscriber, id_, home.name, number, request.request)


def _last(
    home: Home, index: int, request: Request, note: str | None = None, rejection: Rejection | None = None
) -> Ack:
    status = _status(request) if rejection is None else Status.REFUSED
    return Ack(
        index,
        status,
        request.subscriber,
        None,
        home.name,
        request=request.request,
        rejection=rejection,
        note=note,
    )
