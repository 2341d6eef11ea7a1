"""The command without a cluster and without Java: what it explains, what it refuses, and how."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from branchline.kafka.errors import BranchlineError, RequestRefused
from branchline.kafka.home import Home
from branchline.ops.cli import EXIT_INTERRUPTED, main
from branchline.ops.output import EXIT_CODES, exit_code
from branchline.ops.run import EXIT_TERMINATED
from branchline.ops.running import claim, running_bootstrap
from branchline.ops.settings import SETTINGS

DOC = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")

NEED_A_CLUSTER = {
    "publish": ["publish", "{}"],
    "subscribe": ["subscribe", "alice", "TRUE"],
    "renew": ["renew", "alice"],
    "unsubscribe": ["unsubscribe", "alice"],
    "advertise": ["advertise", "shop", "TRUE"],
    "unadvertise": ["unadvertise", "shop"],
    "subscriptions": ["subscriptions"],
    "subscriptions show": ["subscriptions", "show", "alice"],
    "subscriptions export": ["subscriptions", "export"],
    "consume": ["consume", "alice"],
    "explain": ["explain", "branchline.in.main:0:1"],
    "dead-letters list": ["dead-letters", "list"],
    "dead-letters show": ["dead-letters", "show", "1"],
    "dead-letters retry": ["dead-letters", "retry", "1"],
    "status": ["status"],
    "router": ["router"],
    "topology": ["topology"],
    "topology show": ["topology", "show"],
    "topology add": ["topology", "add", "b", "--link", "a"],
    "topology remove": ["topology", "remove", "b"],
    "topology link": ["topology", "link", "a", "b"],
    "topology unlink": ["topology", "unlink", "a", "b"],
}

WRONG_USAGE = [
    [],
    ["no-such-command"],
    ["up", "--no-such-option"],
    ["up", "--port", "99999"],
    ["up", "--shards", "many"],
    ["up", "--shards", "0"],
    ["up", "--broker", "Not A Name"],
    ["up", "--namespace", ".dot"],
    ["up", "--brokers", "0"],
    ["up", "--brokers", "3", "--broker", "dublin"],
    ["up", "--brokers", "3", "--topology", "overlay.json"],
    ["up", "--broker", "dublin", "--broker", "dublin"],
    ["up", "--topology", "no-such-file"],
    ["router", "--cluster", "Not A Name", "--bootstrap", "127.0.0.1:1"],
    ["router", "--max-events-per-batch", "0", "--bootstrap", "127.0.0.1:1"],
    ["up", "--max-subscriptions", "10001"],
    ["up", "--out-partitions", "0"],
    ["up", "--out-replication", "0"],
    ["up", "--out-retention", "7"],
    ["up", "--out-retention", "1ms"],
    ["up", "--remove-topics-after", "0s"],
    ["bridge", "dublin"],
    ["bridge", "dublin", "virginia"],
    ["bridge", "dublin", "virginia", "--clusters", "no-such-file"],
    ["bridge", "dublin", "virginia", "--clusters", __file__],
    ["publish", "{}", "--file", __file__],
    ["publish", "{}", "--header", "no-equals-sign"],
    ["publish", "--file", "no-such-file"],
    ["subscribe"],
    ["subscribe", "alice"],
    ["subscribe", "Not A Name", "TRUE"],
    ["subscribe", "alice", "TRUE", "--wait", "forever"],
    ["subscribe", "alice", "TRUE", "--timeout", "-1"],
    ["subscribe", "alice", "TRUE", "--lease", "1 hour"],
    ["subscribe", "alice", "TRUE", "--lease", "60"],
    ["subscribe", "alice", "--file", __file__],
    ["subscribe", "--file", "no-such-file"],
    ["unsubscribe"],
    ["unsubscribe", "alice", "--all", "--id", "one"],
    ["advertise"],
    ["advertise", "shop"],
    ["advertise", "Not A Name", "TRUE"],
    ["advertise", "shop", "TRUE", "--broker", "Not A Name"],
    ["unadvertise"],
    ["unadvertise", "shop", "--id", "a.b"],
    ["subscriptions", "show"],
    ["subscriptions", "show", "Not A Name"],
    ["subscriptions", "import"],
    ["subscriptions", "import", "no-such-file"],
    ["subscriptions", "no-such-command"],
    ["consume"],
    ["consume", "alice", "--count", "0"],
    ["consume", "alice", "--timeout", "-1"],
    ["explain"],
    ["explain", "17"],
    ["explain", "branchline.in.main:0:1", "--last"],
    ["explain", "--last", "--subscriber", "Not A Name"],
    ["explain", "--last", "--clusters", "no-such-file"],
    ["dead-letters", "show", "not-a-number"],
    ["dead-letters", "retry"],
    ["status", "unexpected"],
    ["status", "--namespace", ".dot"],
    ["router", "--join", "--topology", "no-such-file"],
    ["topology", "no-such-command"],
    ["topology", "--clusters", "no-such-file"],
    ["topology", "check"],
    ["topology", "check", "no-such-file"],
    ["topology", "add", "b"],
    ["topology", "add", "b", "--link", "a:far"],
    ["topology", "add", "b", "--link", "a", "--link", "a:2"],
    ["topology", "link", "a"],
    ["topology", "link", "a", "b", "--cost", "0"],
    ["doctor", "--broker", "Not A Name"],
    ["demo", "--seconds", "0"],
]


def leaf_commands() -> Iterator[tuple[str, click.Command]]:
    for name, command in main.commands.items():
        if isinstance(command, click.Group):
            yield from ((f"{name} {child}", each) for child, each in command.commands.items())
        else:
            yield name, command


LEAVES = dict(leaf_commands())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def run(home: Home, *arguments: str, **variables: str | None) -> Result:
    """The command with nothing set but its home; it must end in its own way, not in a stack trace."""
    unset: dict[str, str | None] = {setting.variable: None for setting in SETTINGS}
    result = CliRunner().invoke(
        main, arguments, env={**unset, "BRANCHLINE_HOME": str(home.root), **variables}, catch_exceptions=False
    )
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_explains_itself_with_an_example(home: Home, name: str) -> None:
    """--help of each command exits with 0 and shows how it is called."""
    result = run(home, *name.split(), "--help")
    assert result.exit_code == 0
    assert re.search(rf"Examples?:\n\s+(generate-events \| )?branchline {name}\b", result.stdout)


def test_the_list_of_commands_is_readable(home: Home) -> None:
    """Each command's line in --help is whole, not cut off with dots."""
    for group in ([], ["dead-letters"], ["topology"], ["subscriptions"]):
        assert "..." not in run(home, *group, "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("name", sorted(LEAVES.keys() - {"setup"}))
def test_every_command_whose_output_is_data_speaks_json(name: str) -> None:
    """--json is there wherever there is something to print."""
    assert "--json" in options_of(name)


@pytest.mark.parametrize("arguments", WRONG_USAGE, ids=" ".join)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(home: Home, arguments: list[str]) -> None:
    """A wrong command line is refused with words on standard error, before anything is started."""
    result = run(home, *arguments)
    assert result.exit_code == 2
    assert result.stderr and not result.stdout
    assert not home.kafka.exists()


@pytest.mark.parametrize("arguments", NEED_A_CLUSTER.values(), ids=NEED_A_CLUSTER.keys())
def test_without_a_cluster_the_error_says_how_to_start_one(home: Home, arguments: list[str]) -> None:
    """With no cluster named and none running, the exit code is 2 and the hint names `branchline up`."""
    result = run(home, *arguments)
    assert result.exit_code == 2
    assert "error [config]" in result.stderr and "`branchline up`" in result.stderr
    told = json.loads(run(home, *arguments, "--json").stdout)
    assert told["error"] == "config" and "branchline up" in told["hint"]


@pytest.mark.parametrize("arguments", NEED_A_CLUSTER.values(), ids=NEED_A_CLUSTER.keys())
def test_a_wrong_address_is_told_at_once(home: Home, arguments: list[str]) -> None:
    """Where nothing listens, the command says so in seconds and exits with 4."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # taken and not listening: nobody else can answer there
        address = f"127.0.0.1:{held.getsockname()[1]}"
        started = time.monotonic()
        result = run(home, *arguments, "--bootstrap", address)
    assert time.monotonic() - started < 5
    assert result.exit_code == 4
    assert f"{address}: nothing listens there" in result.stderr and "hint:" in result.stderr


@pytest.mark.parametrize("address", ["host:port", ":9092", "host:0", "host:70000", "a b:1", "host:1,"])
def test_an_address_that_is_none_is_refused(home: Home, address: str) -> None:
    """What cannot be host:port is not tried but refused, with an example."""
    result = run(home, "status", BRANCHLINE_BOOTSTRAP=address)
    assert result.exit_code == 2
    assert "localhost:9092" in result.stderr


def test_client_properties_that_are_wrong_are_refused_first(home: Home, tmp_path: Path) -> None:
    """A file that is missing, or holds what we do not know, is named; its values are not shown."""
    assert "no-such-file" in run(home, "status", "--client-properties", "no-such-file").stderr
    file = tmp_path / "client.properties"
    file.write_text("sasl.pasword=tr0ub4dor\n")
    result = run(home, "status", "--client-properties", str(file))
    assert result.exit_code == 2
    assert f"{file}, line 1" in result.stderr and "sasl.password" in result.stderr
    assert "tr0ub4dor" not in result.output


def test_client_settings_that_kafka_refuses_are_told(home: Home, tmp_path: Path) -> None:
    """A security protocol that is none is an error about the file."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=NONSENSE\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        result = run(home, "status", "--bootstrap", address, "--client-properties", str(file))
    assert result.exit_code == 2
    assert str(file) in result.stderr


def test_without_java_setup_says_so(home: Home, tmp_path: Path) -> None:
    """No Java on the path and no JAVA_HOME: exit code 3 and what to install."""
    result = run(home, "setup", PATH=str(tmp_path), JAVA_HOME=None)
    assert result.exit_code == 3
    assert "error [java-missing]" in result.stderr and "openjdk" in result.stderr


def test_without_java_doctor_fails_that_check_and_goes_on(home: Home, tmp_path: Path) -> None:
    """Doctor reports every check, whatever the first one found; a failed one makes it exit with 1."""
    result = run(home, "doctor", "--json", PATH=str(tmp_path), JAVA_HOME=None)
    states = {check["check"]: check for check in map(json.loads, result.stdout.splitlines())}
    assert result.exit_code == 1
    assert states["java"]["state"] == "failed" and "openjdk" in states["java"]["hint"]
    assert states["jars"]["state"] == "failed" and "branchline setup" in states["jars"]["hint"]
    assert states["kafka"]["state"] == "warning" and "branchline up" in states["kafka"]["hint"]


def test_doctor_fails_on_a_cluster_that_does_not_answer(home: Home) -> None:
    """A cluster that was named and is not there is a failure, no warning."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        result = run(home, "doctor", "--bootstrap", f"127.0.0.1:{held.getsockname()[1]}")
    assert result.exit_code == 1
    assert re.search(r"^failed +kafka .*nothing listens there", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"subscriber": "a", "filter": "TRUE"}\n{"subscriber": ', "line 2: not JSON"),
        (b"[1]\n", "line 1: not a JSON object"),
        (b'{"subscriber": "a", "filtr": "TRUE"}', "unknown field 'filtr'"),
        (b'{"subscriber": "A B", "filter": "TRUE"}', "'A B'"),
        (b'{"op": "unsubscribe", "subscriber": "a"}', '"op" is not "subscribe"'),
        (b"\xff\n", "not UTF-8"),
        (b"\n \n", "holds no subscription"),
    ],
)
def test_a_broken_file_of_subscriptions_is_refused_whole(
    home: Home, tmp_path: Path, content: bytes, says: str
) -> None:
    """The error names the line, and nothing is asked for before the file is known to be good."""
    file = tmp_path / "subscriptions.jsonl"
    file.write_bytes(content)
    result = run(home, "subscribe", "--file", str(file), "--bootstrap", "127.0.0.1:1")
    assert result.exit_code == 2
    assert says in result.stderr and str(file) in result.stderr


@pytest.mark.slow
def test_one_up_for_a_home_is_found_while_it_lives(home: Home) -> None:
    """Its address is known from the announcement to the end; what is left in the file then says nothing."""
    assert running_bootstrap(home) is None
    with claim(home) as announce:
        assert running_bootstrap(home) is None
        announce("127.0.0.1:9")
        assert running_bootstrap(home) == "127.0.0.1:9"
        second = run(home, "up")
        assert second.exit_code == 3
        assert "another `branchline up` is running" in second.stderr and "BRANCHLINE_HOME" in second.stderr
        assert running_bootstrap(home) == "127.0.0.1:9"
    assert running_bootstrap(home) is None
    (home.run / "up.json").write_text('{"bootstrap": "127.0.0.1:9", "pid": 1}')
    assert running_bootstrap(home) is None


def test_every_setting_is_documented() -> None:
    """The table of settings has each one's option, variable and default, and no other row."""
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in section("## Settings").splitlines()
        if line.startswith("| `")
    ]
    assert [(row[0], row[1]) for row in rows] == [(each.option, each.variable) for each in SETTINGS]
    for row, setting in zip(rows, SETTINGS, strict=True):
        assert setting.default in (None, row[2])


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_is_documented_with_its_options(name: str) -> None:
    """Its section shows an example and names every option that is not said to be everybody's."""
    text = section(f"### `branchline {name}`")
    shared = {"--bootstrap", "--client-properties", "--namespace"}
    assert re.search(rf"```sh\n(.*\n)*?branchline {name}\b", text)
    assert [each for each in sorted(options_of(name) - shared) if f"`{each}`" not in text] == []


def test_no_command_is_documented_that_is_not_there() -> None:
    """The sections are the commands."""
    assert re.findall(r"^### `branchline (.+)`$", DOC, re.MULTILINE) == list(LEAVES)


def test_exit_codes_are_documented_as_they_are() -> None:
    """The table has every exit code, and each error that we raise stands in the row of its own."""
    rows = dict(re.findall(r"^\| (\d+) \|[^|]+\|([^|]*)\|$", section("## Exit codes"), re.MULTILINE))
    ours = {0, 1, 2, EXIT_INTERRUPTED, EXIT_TERMINATED}
    assert {int(code) for code in rows} == ours | set(EXIT_CODES.values())
    told = {error: int(code) for code, cell in rows.items() for error in re.findall(r"`([a-z-]+)`", cell)}
    assert told == {kind.code: exit_code(kind("")) for kind in error_kinds() if kind is not RequestRefused}


def error_kinds() -> list[type[BranchlineError]]:
    kinds = BranchlineError.__subclasses__()
    for kind in kinds:
        kinds += [each for each in kind.__subclasses__() if each.code != kind.code]
    return kinds


def options_of(name: str) -> set[str]:
    options = (each for each in LEAVES[name].params if isinstance(each, click.Option))
    return {spelled for each in options for spelled in each.opts}


def section(heading: str) -> str:
    """The text below a heading up to the next of its rank or above."""
    level = heading.partition(" ")[0]
    _, found, text = DOC.partition(f"\n{heading}\n")
    assert found, f"docs/commands.md has no {heading!r}"
    return re.split(rf"^#{{2,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]
