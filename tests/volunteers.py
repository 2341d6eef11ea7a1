"""Subscribers of the Python API that work for brokers, each in a thread of its own."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from branchline.kafka.client import Subscriber
from branchline.kafka.cluster import Cluster
from branchline.kafka.helping import Done

FOR_MS = 3_000
"""Short, so that it says often that it goes on: a router without its job has no ticks."""


@contextmanager
def volunteering(cluster: Cluster, namespace: str, homes: Iterable[str]) -> Iterator[list[Done]]:
    """One volunteer for each of these homes, who has said so by now; what they have done."""
    with ExitStack() as stack:
        done: list[Done] = []
        for home in homes:
            stack.enter_context(_volunteer(cluster, namespace, home, done))
        yield done


@contextmanager
def _volunteer(cluster: Cluster, namespace: str, home: str, done: list[Done]) -> Iterator[None]:
    stop, said = Event(), Event()

    def work() -> None:
        working = Subscriber(cluster, f"helper-{home}", namespace=namespace, home=home).assist(for_ms=FOR_MS)
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
        assert said.wait(60), f"nobody volunteers for {home}"
        yield
    finally:
        stop.set()
        thread.join()
