"""Brokers that tell each other along a tree, as a job has them."""

from collections.abc import Sequence

from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request, Status
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.letters import Letter
from branchline.routing.overlay.rebuilding import Recorded, rebuild
from branchline.routing.overlay.topology import founded, link
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard

COVERING = Methods("rematch", "table", "covering")
PAIR = founded(["a", "b"], [link("a", "b")])
NOW_MS = 1_700_000_000_000


def subscribe(subscriber: str, home: str, filter_: str = "x = 1") -> Request:
    return Request(
        Operation.SUBSCRIBE, subscriber, "one", home, filter=filter_, request=f"{subscriber}-{home}"
    )


def told(shard: Shard, control: Sequence[Control]) -> Outputs:
    return shard.handle(NOW_MS, [], control, EventBatch())


def settle(shards: Sequence[Shard], letters: list[Letter]) -> list[Status]:
    """Carry letters until there are none; the statuses of all acks."""
    statuses: list[Status] = []
    while letters:
        letter = letters.pop(0)
        (shard,) = (each for each in shards if letter.to in each.brokers)
        outputs = told(shard, [letter])
        letters += outputs.letters
        statuses += [ack.status for ack in outputs.acks]
    return statuses


def test_a_subscriber_has_one_home_among_the_brokers_of_a_job() -> None:
    """Though no broker's own table knows of it."""
    shard = Shard(Job(("a", "b"), PAIR, methods=COVERING), 0)
    told(shard, [subscribe("ann", "a")])
    (refused,) = told(shard, [subscribe("ann", "b")]).acks
    assert refused.status is Status.REFUSED
    assert refused.rejection is not None and refused.rejection.code is Code.HOME_DIFFERS


def test_a_job_that_lost_its_state_asks_its_neighbours() -> None:
    """And tells them anew what it wants: then both sides know what they did, and acks come again."""
    jobs = [Job((name,), PAIR, methods=COVERING) for name in ("a", "b")]
    one, other = (Shard(job, 0) for job in jobs)
    letters: list[Letter] = []
    records = Recorded()
    for shard, request in ((one, subscribe("ann", "a")), (other, subscribe("bob", "b", "y = 2"))):
        outputs = told(shard, [request])
        letters += outputs.letters
        for change in outputs.filters if shard is one else ():
            records.add(change)
    assert settle([one, other], letters).count(Status.IN_FORCE) == 2

    made = rebuild(jobs[0], records, joined=True, in_force=set(), now_ms=NOW_MS + 1)
    again = Shard(jobs[0], 0, [made.state])
    links = again.brokers["a"].links
    assert links is not None and "everything" in links.describe()
    assert Status.IN_FORCE in settle([again, other], list(made.letters))
    for shard, before in ((again, one), (other, other)):
        for name, broker in shard.brokers.items():
            mine, theirs = broker.links, before.brokers[name].links
            assert mine is not None and theirs is not None
            assert mine.describe() == theirs.describe()


def test_no_image_is_made_of_what_neighbours_told() -> None:
    """A cold worker builds the shard from its state."""
    assert Shard(Job(("a", "b"), PAIR, methods=Methods(dissemination="covering")), 0).image() is None
