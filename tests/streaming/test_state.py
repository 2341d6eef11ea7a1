"""A shard's state in a store, and the workers that keep shards in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from branchline.routing.control import Operation, Request
from branchline.routing.shard import EventBatch, alone
from branchline.streaming import state
from branchline.streaming.images import Images

JOB = alone("main")


class _Value:
    def __init__(self) -> None:
        self.value: Any = None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


class _List:
    def __init__(self) -> None:
        self.cells: list[Any] = []

    def get(self) -> Iterator[Any]:
        return iter(list(self.cells))

    def put(self, cells: list[Any]) -> None:
        self.cells = list(cells)

    def appendValue(self, cell: Any) -> None:  # noqa: N802 - the name is Spark's
        self.cells.append(cell)

    def clear(self) -> None:
        self.cells = []


class _Map:
    def __init__(self) -> None:
        self.cells: dict[Any, Any] = {}

    def getValue(self, key: Any) -> Any:  # noqa: N802 - likewise
        return self.cells.get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802 - likewise
        self.cells[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802 - likewise
        self.cells.pop(key, None)


class _Handle:
    """Spark's state store of one key, in memory."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def getValueState(self, name: str, *_: Any) -> Any:  # noqa: N802 - likewise
        return self._made.setdefault(name, _Value())

    def getListState(self, name: str, *_: Any) -> Any:  # noqa: N802 - likewise
        return self._made.setdefault(name, _List())

    def getMapState(self, name: str, *_: Any) -> Any:  # noqa: N802 - likewise
        return self._made.setdefault(name, _Map())


class Worker:
    """A process with its own memory, which is given shards of one job."""

    def __init__(self, handles: list[_Handle], images: Images) -> None:
        self._handles, self._images = handles, images
        self._memory: dict[Any, Any] = {}
        self.counts: dict[str, int] = {}

    def handle(self, index: int, now_ms: int, requests: list[Request]) -> bytes:
        """Handle a batch; the token of the shard's state after it."""
        state._warm.clear()
        state._warm.update(self._memory)
        store = state.ShardStore(cast(Any, self._handles[index]), self._images)
        shard = store.take(JOB, index)
        outputs = shard.handle(now_ms, (), requests, EventBatch())
        store.save(JOB, index, shard, outputs.changed)
        self._memory = dict(state._warm)
        for name, count in store.counts().items():
            self.counts[name] = self.counts.get(name, 0) + count
        return store._read_meta().token


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    monkeypatch.setattr(state, "_warm", {})
    handles, images = [_Handle(), _Handle()], Images("test", JOB, tmp_path)
    return [Worker(handles, images), Worker(handles, images)]


def request(number: int) -> Request:
    return Request(
        Operation.SUBSCRIBE, f"s{number % 5}", f"f{number}", filter=f"n > {number}", lease_ms=60_000
    )


def test_workers_that_change_shards_build_nothing(workers: list[Worker]) -> None:
    """Whichever of a job's shards a worker gets, it goes on with the one that it has in memory."""
    for batch in range(12):
        asked = [request(10 * batch + number) for number in range(10)]
        of_worker = (0, 1) if batch % 3 else (1, 0)
        tokens = [
            worker.handle(index, 1_000_000 + 20_000 * batch, asked)
            for worker, index in zip(workers, of_worker, strict=True)
        ]
        assert tokens[0] == tokens[1]
    assert all(not worker.counts["shards_opened"] + worker.counts["shards_built"] for worker in workers)


def test_a_shard_that_is_behind_is_not_used(workers: list[Worker]) -> None:
    """A worker that has missed a batch reads the state."""
    workers[0].handle(0, 1_000_000, [request(1)])
    workers[1].handle(1, 1_000_000, [request(1)])
    workers[1].handle(1, 1_000_001, [request(2)])
    workers[1].handle(0, 1_000_001, [request(2)])
    assert workers[1].counts["shards_built"] == 1
    workers[0].handle(1, 1_000_002, [request(3)])
    assert workers[0].counts["shards_built"] == 1
