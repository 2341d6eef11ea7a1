"""The demo as a process: an overlay with both jobs in one Java process, and everything owed delivered."""

import json
import threading
from pathlib import Path

import psutil
import pytest
from machines import START_DEADLINE_S, Machine, linked_home
from overlays import FULL
from processes import family, is_alive, named
from waiting import wait_until

from branchline.ops.running import running_bootstrap

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BROKERS, SECONDS = (8, 60) if FULL else (3, 5)
MEMORY_MAX_MB = 4_000


def test_the_demo_delivers_all_and_fits_into_memory(tmp_path: Path) -> None:
    """It ends by itself, well, with no process left; Kafka, Spark and all workers take less than 4 GB."""
    machine = Machine(linked_home(tmp_path / "home"))
    options = ("--brokers", str(BROKERS), "--seconds", str(SECONDS), "--json")
    with (tmp_path / "events").open("wb") as events, (tmp_path / "said").open("wb") as said:
        process = machine.popen("demo", *options, stdout=events, stderr=said)
    seen: dict[int, psutil.Process] = {}
    memory_mb, javas = [0], [0]

    def is_over() -> bool:
        if process.poll() is not None:
            return True
        threading.Event().wait(0.5)  # to look is not cheap, and takes the time of those looked at
        everything = family(process.pid)
        seen.update({each.pid: each for each in everything})
        memory_mb.append(sum(map(_bytes, everything)) // 2**20)
        javas.append(len(named(everything, "java")))
        return False

    try:
        wait_until(is_over, START_DEADLINE_S + 3 * SECONDS + 120, "the demo is over")
    finally:
        process.kill()
    told = (tmp_path / "said").read_text()
    assert process.returncode == 0, told
    assert "router: running" in told and "optimizer: running" in told
    assert "every event that was owed has come" in told
    assert f"at home with broker b{BROKERS}" in told
    delivered = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert {each["subscriber"] for each in delivered} == {"cheap-flights", "madrid-desk", "big-orders"}
    print(f"{BROKERS} brokers, {SECONDS} s, {len(delivered):,} deliveries: at most {max(memory_mb):,} MB")
    assert max(memory_mb) < MEMORY_MAX_MB
    assert max(javas) == 2, "Kafka's, and Spark's with both jobs"
    wait_until(lambda: not [each for each in seen.values() if is_alive(each)], 30, "nothing is left")


def test_the_demo_feeds_jobs_that_somebody_else_runs(up: Machine) -> None:
    """With --bootstrap it starts nothing, takes no other demo's deliveries for its own, and tidies up."""
    standing = up.ask("subscriptions")
    where = ("--bootstrap", str(running_bootstrap(up.home)))
    for _ in range(2):
        result = up.run("demo", *where, "--seconds", "1", "--json")
        assert result.exit_code == 0, result.output
        assert "starting" not in result.stderr and "every event that was owed has come" in result.stderr
        runs = {json.loads(line)["event"]["run"] for line in result.stdout.splitlines()}
        assert len(runs) == 1
    wait_until(lambda: up.ask("subscriptions") == standing, 30, "its subscriptions are ended")
    assert up.run("demo", *where, "--brokers", "2").exit_code == 2


def _bytes(process: psutil.Process) -> int:
    """What it takes; pages that it shares with others are divided among them."""
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss))
    except psutil.Error:
        return 0
