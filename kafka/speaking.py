"""What may be asked on a subscriber's own control topic.

Where Kafka lets only the subscriber write to `control.<subscriber>`, whoever wrote there is known by the
topic, and not by what the message says of itself. So a message there speaks for that subscriber alone:

    subscribe, unsubscribe, renew   for itself
    advertise, unadvertise          for itself, as a publisher
    assist, answer, fixed-set       for itself: what it has found out for its home, or wants to
    explain                         for itself, and with `"follow": false`: why its own subscriptions do not
                                    match. To follow the event would tell of others, and of the overlay
    topology, tick, refresh         never: these are the operators' and the router's

Anything else is refused as `not-yours`, whatever it asks for. The answers go to `acks.<subscriber>`.
"""

from dataclasses import replace

from branchline.kafka.assisting import ANSWER, ASSIST
from branchline.kafka.claiming import FIXED_SET
from branchline.kafka.explaining import EXPLAIN, Asked
from branchline.kafka.messages import REFRESH, TICK, TOPOLOGY, BadRequest, Message, Tick
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import ADVERTISING, Request
from branchline.routing.offloading.assisting import Answering, AskSet, Assist, Helping
from branchline.routing.overlay.letters import Propose, Refresh


def spoken_by(subscriber: str, message: Message) -> Request | Asked | Helping | BadRequest:
    """What the message asks for if the subscriber has written it, or why it may not."""
    match message:
        case BadRequest():
            return message
        case Request():
            if message.subscriber == subscriber:
                return replace(message, own=True)
            refused = _refused(subscriber, message.operation, message.subscriber, message.id, message.request)
            return replace(refused, advert=message.operation in ADVERTISING)
        case Asked():
            if message.subscriber == subscriber and not message.follow:
                return message
            return _refused(subscriber, EXPLAIN, message.subscriber, None, message.request)
        case Assist() | AskSet():
            if message.subscriber == subscriber:
                return replace(message, own=True)
            operation = ASSIST if isinstance(message, Assist) else FIXED_SET
            return _refused(subscriber, operation, message.subscriber, None, message.request)
        case Answering():
            if message.answer.client == subscriber:
                return replace(message, own=True)
            return _refused(subscriber, ANSWER, message.answer.client, None, None)
        case Propose():
            return _refused(subscriber, TOPOLOGY, None, None, message.request)
        case Refresh():
            return _refused(subscriber, REFRESH, None, None, message.request)
        case Tick():
            return _refused(subscriber, TICK, None, None, None)


def _refused(
    subscriber: str, operation: str, named: str | None, id_: str | None, request: str | None
) -> BadRequest:
    reason = f"on its own control topic {subscriber!r} speaks for itself alone, and "
    if operation == EXPLAIN:
        reason += 'may ask about events with its own name as "subscriber", and "follow" false'
    elif operation in (TOPOLOGY, TICK, REFRESH):
        reason += f"{operation!r} is not a subscriber's to ask for"
    else:
        reason += f"not for {named!r}"
    return BadRequest(Rejection(Code.NOT_YOURS, reason), named, id_ or None, request)
