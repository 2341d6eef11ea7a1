"""Subscribers of the Python API that work for brokers, each in a thread of its own."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from branchline.kafka.client import Subscriber
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import WaitExpired
from branchline.kafka.helping import Done

FOR_MS = 3_000
"""Short, so that it says often that it goes on: a router without its job has no ticks."""
SAID_TIMEOUT_S = 60.0


@contextmanager
def volunteering(
    cluster: Cluster, namespace: str, homes: Iterable[str], for_ms: int = FOR_MS
) -> Iterator[list[Done]]:
    """One volunteer for each of these homes, who has said so by now; what they have done."""
    with ExitStack() as stack:
        done: list[Done] = []
        for home in homes:
            stack.enter_context(_volunteer(cluster, namespace, home, done, for_ms))
        yield done


@contextmanager
def _volunteer(cluster: Cluster, namespace: str, home: str, done: list[Done], for_ms: int) -> Iterator[None]:
    stop, said = Event(), Event()

    def work() -> None:
        helper = Subscriber(cluster, f"helper-{home}", namespace=namespace, home=home)
        working = helper.assist(for_ms=for_ms)
        for each in working:
            said.set()
            if each is not None:
                done.append(each)
            if stop.is_set():
                break
        working.close()

    thread = Thread(target=work)
    thread.start()
    try:
        if not said.wait(SAID_TIMEOUT_S):
            raise WaitExpired(
                f"nobody volunteers for {home!r} after {SAID_TIMEOUT_S:g} s", hint="see Kafka's log"
            )
        yield
    finally:
        stop.set()
        thread.join()
