"""Compiled loops are ready before the first batch."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from branchline import routing
from branchline.kafka.event_columns import EventColumns
from branchline.kafka.intake import read_batch
from branchline.kafka.topics import Topics
from branchline.routing.control import Operation, Request
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import founded
from branchline.routing.shard import EventBatch, Job, Shard
from branchline.streaming.warming import warm, warm_once

EVENTS = 50


def compiled() -> dict[str, list[Any]]:
    """Every kernel that is imported, and the types of arguments that it is compiled for."""
    modules = [module for name, module in sys.modules.items() if name.startswith("branchline.")]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Dispatcher)]
    return {f"{each.py_func.__module__}.{each.py_func.__name__}": list(each.signatures) for each in found}


def test_a_batch_compiles_nothing_after_warming() -> None:
    """Whatever the first batch of a worker has, its loops are there."""
    warm()
    before = compiled()
    assert sum(map(len, before.values())) > 20
    shard, topics = Shard(Job(("main",), founded(["main"]), methods=Methods(batches_from=0)), 0), Topics()
    filters = ["x = 1 AND y > 2.5", "t LIKE 'a%' OR t LIKE '%b'", "t LIKE '%c%'", "kafka.key = 'k'", "TRUE"]
    filters += ["t < TIMESTAMP '2025-01-01T00:00:00Z'", "x IN (1, 2, 3) AND NOT t = 'q'"]
    asked = [Request(Operation.SUBSCRIBE, f"s{n}", "i", filter=text) for n, text in enumerate(filters)]
    shard.handle(1, [], asked, EventBatch())
    values = [json.dumps({"x": n % 3, "y": n / 7, "t": f"a{n}cé"}).encode() for n in range(EVENTS)]
    events = EventColumns(
        [topics.entry("main")] * EVENTS,
        [0] * EVENTS,
        list(range(EVENTS)),
        [0] * EVENTS,
        [b"k"] * EVENTS,
        values,
        [b""] * EVENTS,
    )
    outputs = shard.handle(2, [], [], read_batch(topics, [], events).events())
    assert len(outputs.deliveries) > EVENTS
    assert compiled() == before


def test_warming_once_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time is told; a second time there is nothing to do, unless another copy of the code runs,
    which has a cache of its own.
    """
    said: list[str] = []
    assert warm_once(tmp_path / "compiled", said.append)
    assert len(said) == 1
    assert not warm_once(tmp_path / "compiled", said.append)
    assert len(said) == 1
    copy = shutil.copytree(Path(routing.compiled.__file__).parent, tmp_path / "copy")
    monkeypatch.setattr(routing.compiled, "__file__", str(copy / "__init__.py"))
    assert warm_once(tmp_path / "compiled", said.append)
