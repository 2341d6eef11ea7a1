"""Bad files, settings and arguments: the command says what is wrong, and nobody reads a traceback."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bad_outcomes import check_table
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated

from branchline.kafka.errors import ConfigError
from branchline.kafka.messages import LETTER_MAX_BYTES
from branchline.ops.cli import main
from branchline.ops.clusters import read_clusters
from branchline.ops.overlay import read_topology
from branchline.ops.toml_files import TOML_MAX_BYTES
from branchline.routing.overlay.topology import fault

CONFIG = (2, "config")
USAGE = (2, "usage")
REFUSED = (5, "refused")

TOPOLOGY, TOPOLOGY_JSON = "topology file (TOML)", "topology file (JSON)"
CLUSTERS, PROPERTIES, SIMULATION = "clusters file", "client properties", "simulation file"
SUBSCRIPTIONS, SETTING, ARGUMENT = "subscriptions file", "environment", "argument"

NOWHERE = ["--bootstrap", "127.0.0.1:1"]

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    TOPOLOGY: lambda file: ["topology", "check", file],
    TOPOLOGY_JSON: lambda file: ["topology", "check", file],
    CLUSTERS: lambda file: ["topology", "show", "--clusters", file, *NOWHERE],
    PROPERTIES: lambda file: ["status", "--client-properties", file, *NOWHERE],
    SIMULATION: lambda file: ["simulate", file],
    SUBSCRIPTIONS: lambda file: ["subscriptions", "import", file, *NOWHERE],
}
SUFFIX = {TOPOLOGY: ".toml", CLUSTERS: ".toml", SIMULATION: ".toml", TOPOLOGY_JSON: ".json"}


@dataclass(frozen=True, slots=True)
class Case:
    """A class of bad input, and what the command must say to it: how it ends, and the code."""

    entrance: str
    name: str
    content: bytes | None = None
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] | None = None
    said: tuple[int, str] = CONFIG


def _files() -> list[Case]:
    deep = b"a = " + b"[" * 100_000
    dotted = b"a" + b".a" * 50_000 + b" = 1"
    tomls = {
        "not TOML": b"brokers",
        "not UTF-8": b'a = "\xff"',
        "UTF-16": 'brokers = ["a"]'.encode("utf-16"),
        "100,000 levels": deep,
        "50,000 levels of dotted names": dotted,
        "an integer of 5,000 digits": b"a = " + b"9" * 5_000,
        "a key twice": b"a = 1\na = 2",
        "NUL": b"a = '\0'",
        "too large": b"#" * (TOML_MAX_BYTES + 1),
        "an unknown key": b"cost = 5",
    }
    cases = [
        Case(entrance, name, data)
        for entrance in (TOPOLOGY, CLUSTERS, SIMULATION)
        for name, data in tomls.items()
    ]
    cases += [
        Case(TOPOLOGY, name, data)
        for name, data in {
            "empty": b"",
            "no broker": b"brokers = []",
            "a broker that is a number": b"brokers = [5]",
            "a name in dots": b'brokers = ["a.b"]',
            "a name of 50 kB": b'brokers = ["' + b"a" * 50_000 + b'"]',
            "a name that is a table": b"brokers = [{name.a.b = 1}]",
            "a broker twice": b'brokers = ["a", "a"]',
            "20,000 brokers": b"brokers = [" + b",".join(b'"b%d"' % n for n in range(20_000)) + b"]",
            "a link to nobody": b'brokers = ["a"]\nlinks = [["a", "b"]]',
            "a link of four": b'brokers = ["a", "b"]\nlinks = [["a", "b", 1, 2]]',
            "a link that costs 1e400": b'brokers = ["a", "b"]\nlinks = [["a", "b", 1e400]]',
            "a link that costs nan": b'brokers = ["a", "b"]\nlinks = [["a", "b", nan]]',
            "a link that costs 10^30": b'brokers = ["a", "b"]\nlinks = [["a", "b", 1' + b"0" * 30 + b"]]",
            "brokers apart": b'brokers = ["a", "b"]',
        }.items()
    ]
    cases += [
        Case(TOPOLOGY_JSON, name, data)
        for name, data in {
            "empty": b"",
            "not JSON": b"brokers",
            "an array": b"[]",
            "100,000 levels": b"[" * 100_000,
            "NaN": b'{"number": NaN}',
            "too large": b'"' + b"x" * LETTER_MAX_BYTES + b'"',
            "a number of 10^30": b'{"number": 1'
            + b"0" * 30
            + b', "brokers": [], "links": [], "retired": []}',
        }.items()
    ]
    cases += [
        Case(CLUSTERS, name, data)
        for name, data in {
            "no bootstrap": b"[a]\nclient_properties = 'x'",
            "a bootstrap that is a number": b"[a]\nbootstrap = 5",
            "a cluster that is no table": b"a = 5",
            "a name in dots": b'["a.b"]\nbootstrap = "x:1"',
            "properties that are not there": b'[a]\nbootstrap = "x:1"\nclient_properties = "none"',
        }.items()
    ]
    cases += [
        Case(PROPERTIES, name, data)
        for name, data in {
            "not UTF-8": b"sasl.password=\xff",
            "not name=value": b"password",
            "an unknown name": b"bootstrap.servers=x",
            "a login without a mechanism": b"sasl.username=x",
            "an unknown mechanism": b"sasl.username=x\nsasl.mechanism=NONE",
            "NUL": b"sasl.password\0=x",
        }.items()
    ]
    line = b'{"subscriber": "a", "filter": "TRUE"'
    digits = b'{"subscriber": "a", "spelling": "cesql", "filter": "a LIKE \'' + b"9" * 400 + b"' =\"}"
    cases += [
        Case(SUBSCRIPTIONS, name, data, said=said)
        for name, data, said in (
            ("empty", b"", CONFIG),
            ("not JSON", b"alice", CONFIG),
            ("not UTF-8", line + b"}\n\xff", CONFIG),
            ("100,000 levels", b"[" * 100_000, CONFIG),
            ("an integer of 5,000 digits", b'{"a": ' + b"9" * 5_000 + b"}", CONFIG),
            ("an array", b"[]", CONFIG),
            ("a subscriber in dots", b'{"subscriber": "a.b", "filter": "TRUE"}', CONFIG),
            ("an unknown field", line + b', "more": 1}', CONFIG),
            ("a lease of 10^30", line + b', "lease_ms": 1' + b"0" * 30 + b"}", REFUSED),
            ("a filter that is none", b'{"subscriber": "a", "filter": "a <", "spelling": "sql"}', REFUSED),
            ("a filter of 400 digits that is none", digits, REFUSED),
            ("a subscription twice", line + b"}\n" + line + b"}", REFUSED),
        )
    ]
    return cases


def _settings() -> list[Case]:
    def setting(name: str, said: tuple[int, str], *arguments: str, **variables: str) -> Case:
        return Case(SETTING, name, None, arguments, variables, said)

    router = ("router", *NOWHERE)
    return [
        setting("shards that are no number", USAGE, *router, BRANCHLINE_SHARDS="many"),
        setting("shards below 1", CONFIG, *router, BRANCHLINE_SHARDS="-1"),
        setting("10^30 shards", CONFIG, *router, BRANCHLINE_SHARDS="1" + "0" * 30),
        setting("a namespace with a slash", CONFIG, "status", *NOWHERE, BRANCHLINE_NAMESPACE="a/b"),
        setting("a namespace of 300 characters", CONFIG, "status", *NOWHERE, BRANCHLINE_NAMESPACE="a" * 300),
        setting("a duration without a unit", USAGE, *router, BRANCHLINE_OUT_RETENTION="7"),
        setting("a duration of 10^30 days", USAGE, *router, BRANCHLINE_OUT_RETENTION="1" + "0" * 30 + "d"),
        setting("a threshold that is NaN", USAGE, "optimizer", *NOWHERE, BRANCHLINE_THRESHOLD="nan"),
        setting("a broker in dots", CONFIG, *router, BRANCHLINE_BROKER="a.b"),
        setting("an address of colons", CONFIG, "status", BRANCHLINE_BOOTSTRAP="::"),
        setting("an address with port 99999", CONFIG, "status", BRANCHLINE_BOOTSTRAP="x:99999"),
        setting(
            "client properties that are not there",
            CONFIG,
            *("status", *NOWHERE),
            BRANCHLINE_CLIENT_PROPERTIES="no-such-file",
        ),
    ]


def _arguments() -> list[Case]:
    def argument(name: str, said: tuple[int, str], *arguments: str) -> Case:
        return Case(ARGUMENT, name, None, arguments, None, said)

    odd = "\udcff"  # a byte that is no UTF-8, as Python hands it over
    return [
        argument("an event that is not JSON", CONFIG, "publish", "price=5", *NOWHERE),
        argument("an event with 1e400", CONFIG, "publish", '{"a": 1e400}', *NOWHERE),
        argument("an event of 100,000 levels", CONFIG, "publish", "[" * 100_000, *NOWHERE),
        argument("an event that is not UTF-8", CONFIG, "publish", f'{{"a": "{odd}"}}', *NOWHERE),
        argument("a header without a value", CONFIG, "publish", "{}", "--header", "x", *NOWHERE),
        argument("a header that is not UTF-8", CONFIG, "publish", "{}", "--header", f"{odd}=x", *NOWHERE),
        argument("a subscriber in dots", CONFIG, "subscribe", "a.b", "TRUE", *NOWHERE),
        argument("a subscriber that is not UTF-8", CONFIG, "subscribe", odd, "TRUE", *NOWHERE),
        argument("a filter that is not UTF-8", CONFIG, "subscribe", "a", f"a = '{odd}'", *NOWHERE),
        argument("a filter of 100 kB", CONFIG, "subscribe", "a", "x" * 100_000, *NOWHERE),
        argument("a lease of 10^30 days", USAGE, "subscribe", "a", "TRUE", "--lease", "1" + "0" * 30 + "d"),
        argument("an event's name that is none", CONFIG, "explain", "here", *NOWHERE),
        argument("an event's name that is not UTF-8", CONFIG, "explain", odd, *NOWHERE),
        argument("a dead letter that is no number", USAGE, "dead-letters", "show", "x", *NOWHERE),
        argument("a timeout that is NaN", USAGE, "subscribe", "a", "TRUE", "--timeout", "nan", *NOWHERE),
        argument("a timeout of 1e400", USAGE, "subscribe", "a", "TRUE", "--timeout", "1e400", *NOWHERE),
        argument("a namespace that is not UTF-8", CONFIG, "status", "--namespace", odd, *NOWHERE),
        argument("an address that is not UTF-8", CONFIG, "status", "--bootstrap", odd),
        argument("a file that is not there", CONFIG, "topology", "check", "no-such-file.toml"),
        argument("a file without an end", CONFIG, "topology", "check", "/dev/zero"),
        argument("a folder for a file", USAGE, "simulate", "/"),
    ]


CASES = [*_files(), *_settings(), *_arguments()]


def said(case: Case, folder: Path) -> tuple[int, str]:
    """How the command ends, and the code that it says."""
    arguments = list(case.arguments)
    if case.content is not None:
        file = folder / f"bad{SUFFIX.get(case.entrance, '.txt')}"
        file.write_bytes(case.content)
        arguments = COMMANDS[case.entrance](str(file))
    home = {
        "BRANCHLINE_HOME": str(folder / "home"),
        **{name: "" for name in os.environ if "BRANCHLINE_" in name},
    }
    result = CliRunner().invoke(main, [*arguments, "--json"], env={**home, **(case.variables or {})})
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert "Traceback" not in result.output
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")
    ]
    codes = [line["error"] for line in lines if "error" in line]
    if not codes and any("refused" in line for line in lines):
        codes = ["refused"]
    return result.exit_code, codes[0] if codes else "usage"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.entrance}: {case.name}".replace(" ", "-"))
def test_every_command_says_what_is_wrong(case: Case, tmp_path: Path) -> None:
    """With the exit code and the code of its kind; nothing is raised that somebody would have to read."""
    assert said(case, tmp_path) == case.said


def test_the_page_has_them_all() -> None:
    """The table of files, settings and arguments is the one that is tested here."""
    rows = [(case.entrance, case.name, case.said[0], f"`{case.said[1]}`") for case in CASES]
    check_table("commands", ("entrance", "class", "exit", "code"), rows, "tests/ops/test_bad_input_files.py")


TOPOLOGY_FILE = b"""brokers = ["dublin", {name = "virginia", cluster = "us"}, "lisbon"]
links = [["dublin", "virginia", 5], ["dublin", "lisbon"]]
"""


@given(mutated(st.just(TOPOLOGY_FILE)), st.sampled_from((".toml", ".json")))
def test_a_topology_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, kind: str
) -> None:
    """Whatever was done to it, there is a topology or an error of ours, and whether it can be one is told."""
    file = tmp_path_factory.getbasetemp() / f"fuzzed{kind}"
    file.write_bytes(data)
    try:
        fault(read_topology(file))
    except ConfigError as error:
        assert error.hint


@given(mutated(st.just(b'[dublin]\nbootstrap = "kafka-1.dublin:9092"\n')))
def test_a_clusters_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Likewise."""
    file = tmp_path_factory.getbasetemp() / "clusters.toml"
    file.write_bytes(data)
    try:
        read_clusters(file)
    except ConfigError as error:
        assert error.hint
