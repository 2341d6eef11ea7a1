"""What a chaos run is made of, without Kafka and Spark: proxy, processes, checkpoints, schedules, reports."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner
from waiting import wait_until

from branchline.kafka.kraft import Detour, Ports, Seat, server_properties
from branchline.ops.chaos.faults import KINDS, Fault, kinds_for
from branchline.ops.chaos.ports import lasting_ports
from branchline.ops.chaos.processes import family, find
from branchline.ops.chaos.progress import Batches, Checkpoint
from branchline.ops.chaos.proxy import Loop, Proxy
from branchline.ops.chaos.report import Report, Struck, markdown
from branchline.ops.chaos.schedule import schedule
from branchline.ops.cli import main
from branchline.routing.history import Verdict

WAIT_S = 5.0


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A healed proxy before a server that says everything twice."""
    ours, theirs = lasting_ports(2)
    with socket.create_server(("127.0.0.1", theirs)) as server, Loop() as loop:
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        made = Proxy(loop, ours, theirs)
        made.heal()
        yield made
        server.close()


def _serve(server: socket.socket) -> None:
    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while said := connection.recv(1024):
                connection.sendall(said * 2)

    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=WAIT_S)


def test_a_proxy_passes_everything_both_ways(proxy: Proxy) -> None:
    with connect(proxy) as client:
        for word in (b"one", b"two"):
            client.sendall(word)
            assert client.recv(100) == word * 2


def test_a_stalled_proxy_passes_nothing_until_it_is_healed(proxy: Proxy) -> None:
    """Old and new connections stay open and silent; when it is healed, what was sent meanwhile comes."""
    with connect(proxy) as client:
        client.sendall(b"a")
        assert client.recv(100) == b"aa"
        proxy.stall()
        with connect(proxy) as late:
            for each in (client, late):
                each.sendall(b"b")
                each.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    each.recv(100)
            proxy.heal()
            for each in (client, late):
                each.settimeout(WAIT_S)
                assert each.recv(100) == b"bb"


def test_a_cut_proxy_ends_connections_and_refuses_new_ones(proxy: Proxy) -> None:
    """Who is connected reads an end or a reset, who comes is refused, until it is healed."""
    with connect(proxy) as client:
        client.sendall(b"a")
        assert client.recv(100) == b"aa"
        proxy.cut()
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(100) == b""
        with pytest.raises(ConnectionRefusedError):
            connect(proxy)
        proxy.heal()
        with connect(proxy) as again:
            again.sendall(b"b")
            assert again.recv(100) == b"bb"


def test_three_nodes_keep_every_record_thrice(tmp_path: Path) -> None:
    """Each node knows all voters, two copies are enough to go on, and jobs are sent to the proxy."""
    seat = Seat(2, {1: 101, 2: 102, 3: 103}, "an-id")
    told = server_properties(tmp_path, Ports(202, 102), seat, Detour(302, 402))
    assert told["node.id"] == "2"
    assert told["controller.quorum.voters"] == "1@127.0.0.1:101,2@127.0.0.1:102,3@127.0.0.1:103"
    assert (told["default.replication.factor"], told["min.insync.replicas"]) == ("3", "2")
    assert told["advertised.listeners"] == "CLIENT://127.0.0.1:202,DETOUR://127.0.0.1:402"
    assert "DETOUR://127.0.0.1:302" in told["listeners"]
    alone = server_properties(tmp_path, Ports(202, 102))
    assert (alone["node.id"], alone["min.insync.replicas"]) == ("1", "1")


WRITER = """
import errno, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Java does
for line in sys.stdin:
    try:
        with open(sys.argv[1], "w") as file:
            file.write(line)
        print("done", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
"""


def test_a_process_that_may_write_no_file_gets_errors_until_it_may(tmp_path: Path) -> None:
    """That is how a disk is made full: writes fail, the process lives, and all is well afterwards."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        process = find(writer.pid)
        assert process is not None and writer.stdin is not None and writer.stdout is not None
        said = []
        for limit in (None, 0, None):
            assert process.limit_files(limit)
            writer.stdin.write("x\n")
            writer.stdin.flush()
            said.append(writer.stdout.readline().strip())
        assert said == ["done", "EFBIG", "done"]
        writer.stdin.close()
    assert not process.limit_files(0) and not process.is_alive()


def test_a_family_is_the_process_and_all_below_it() -> None:
    """Parents stand before their children; a stopped one lives, a killed one does not."""
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as parent:
        wait_until(lambda: len(family(parent.pid)) == 2, WAIT_S, "the child is there")
        head, child = family(parent.pid)
        assert head.pid == parent.pid and "input()" in child.command()
        assert child.signal(signal.SIGSTOP) and child.is_alive()
        assert child.kill()
        wait_until(lambda: not child.is_alive(), WAIT_S, "the child is gone")
        assert not child.kill()


def test_a_checkpoint_tells_which_batch_is_in_progress(tmp_path: Path) -> None:
    """A batch is in progress from when its offsets are logged to its commit; only then its positions hold."""
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.batches() == Batches() and not checkpoint.batches().in_progress
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    sources = [json.dumps({"in": {"0": 7, "1": 8}}), "-", json.dumps({"control": {"0": 3}})]
    (tmp_path / "offsets" / "10").write_text("\n".join(["v1", "{}", *sources]))
    (tmp_path / "offsets" / ".11.crc").write_text("")
    assert checkpoint.batches().in_progress and checkpoint.positions() is None
    (tmp_path / "commits" / "10").write_text("v1\n{}")
    assert checkpoint.batches() == Batches(10, 10) and not checkpoint.batches().in_progress
    assert checkpoint.positions() == {("in", 0): 7, ("in", 1): 8, ("control", 0): 3}
    assert checkpoint.last_s() >= 0


def test_a_seed_gives_one_schedule() -> None:
    """The same faults for the same seed, others for another; each kind once before any comes again."""
    kinds = list(kinds_for(3, optimizer=True).values())
    assert len(kinds) == len(KINDS)
    drawn = {seed: list(islice(schedule(seed, kinds), 2 * len(kinds))) for seed in (1, 2)}
    assert list(islice(schedule(1, kinds), 2 * len(kinds))) == drawn[1] != drawn[2]
    for faults in (drawn[1][: len(kinds)], drawn[1][len(kinds) :]):
        assert {fault.kind for fault in faults} == {kind.name for kind in kinds}
    for fault in drawn[1]:
        low, high = next(kind.hold_s for kind in kinds if kind.name == fault.kind)
        assert low <= fault.hold_s <= high and 0 <= fault.into < 1 and 0 <= fault.pick < 1


def test_every_kind_of_fault_is_documented() -> None:
    """The table of faults has exactly the kinds there are."""
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = page.partition("| kind | what happens |")[2].partition("\n\n")[0].splitlines()[2:]
    assert {name for row in rows for name in re.findall("`([^`]+)`", row.split("|")[1])} == {
        kind.name for kind in KINDS
    }


def test_leaders_move_only_where_there_are_several_nodes() -> None:
    assert "leader-kill" not in kinds_for(1, optimizer=True)
    assert {"optimizer-kill", "optimizer-stop"} == kinds_for(3, True).keys() - kinds_for(3, False).keys()


def test_a_report_is_told_in_three_ways() -> None:
    """As text, as JSON and as a row of a table: with the schedule, how to run it again, and the verdict."""
    struck = [Struck(Fault("cut", 2.0), 1.0, 5, 0.5), Struck(Fault("stall", 2.0), 9.0, None, None)]
    report = Report(7, 1.0, 3, "at-least-once", "branchline chaos --seed 7", Verdict(events=12), struck, 4)
    assert "verdict: clean" in report.describe() and "branchline chaos --seed 7" in report.describe()
    fields = json.loads(json.dumps(report.fields()))
    assert (fields["verdict"], fields["faults"], fields["in_progress"], fields["lost"]) == ("clean", 2, 1, 0)
    assert [each["in_progress"] for each in fields["schedule"]] == [True, False]
    head, rule, row = markdown([report]).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|")
    assert row.startswith("| 7 | 1 | 2 | 1 | 12 |") and row.endswith("| clean |")


@pytest.mark.parametrize("seeds", ["x", "5-1", "1-5000", "-3", "1,,2"])
def test_bad_seeds_are_refused(seeds: str) -> None:
    result = CliRunner().invoke(main, ["chaos", f"--seeds={seeds}"])
    assert result.exit_code == 2 and "--seed" in result.output
