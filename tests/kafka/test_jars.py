"""The folder of jars is whole or not there. No JVM: `java` is a script that plays Ivy."""

import importlib.metadata
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from branchline.kafka import jars
from branchline.kafka.errors import JarsUnavailable
from branchline.kafka.home import Home
from branchline.kafka.jars import ensure_jars

# Ivy's part: it is started in the folder to fill. What each test adds comes after.
pytestmark = pytest.mark.slow

IVY = f"""#!{sys.executable}
import pathlib, sys, time, zipfile
from xml.etree import ElementTree
if sys.argv[1] == "-version":
    print('openjdk version "17.0.15"', file=sys.stderr)
    sys.exit()
calls = pathlib.Path(__file__).with_name("calls")
with calls.open("a") as file:
    print(*sys.argv[1:], file=file)
call = len(calls.read_text().splitlines())

def fetch(names):
    for name in names:
        path = pathlib.Path(name)
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as jar:
            jar.writestr("a.class", "x" * 1000)
        print("\\t[SUCCESSFUL ] " + name, flush=True)

wanted = []
for line in ElementTree.parse(sys.argv[sys.argv.index("-ivy") + 1]).iter("dependency"):
    wanted.append(line.get("conf").split("-")[0] + "/" + line.get("name") + "-" + line.get("rev") + ".jar")
print("downloading https://repository.example/secret", flush=True)
"""

WHOLE = "fetch(wanted)"
FAILS_HALF_WAY = """
fetch(wanted[:3])
print("Server access error at url https://repository.example/x.jar (java.net.ConnectException: refused)")
sys.exit(1)
"""
TRUNCATED = "fetch(wanted); jar = pathlib.Path(wanted[0]); jar.write_bytes(jar.read_bytes()[:100])"

PlayIvy = Callable[[str], Path]


@pytest.fixture
def play_ivy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlayIvy:
    """Make `java` run the given end of the script; returns the file with its calls."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.delenv(jars.SETTINGS_VARIABLE, raising=False)

    def play(script: str) -> Path:
        java.write_text(IVY + script)
        java.chmod(0o755)
        return java.with_name("calls")

    return play


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home (of) [mine]")  # signs that mean something in Ivy's patterns


def silent(_: str) -> None:
    pass


def folders(home: Home) -> list[str]:
    return [path.name for path in home.jars.iterdir() if path.is_dir()]


def test_second_run_does_not_start_java(
    monkeypatch: pytest.MonkeyPatch, play_ivy: PlayIvy, home: Home
) -> None:
    """Once fetched, the jars are found without Java, let alone a network."""
    play_ivy(WHOLE)
    first = ensure_jars(home, silent)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert ensure_jars(home, silent) == first
    assert len(first.spark) == 5
    assert all(jar.is_file() for jar in first.spark)
    assert any(jar.name.startswith("kafka_2.13-") for jar in first.kafka.iterdir())


def test_failure_half_way_leaves_nothing(play_ivy: PlayIvy, home: Home) -> None:
    """The error has the reason, the log and the way out, and no address; the next try succeeds."""
    play_ivy(FAILS_HALF_WAY)
    with pytest.raises(JarsUnavailable) as caught:
        ensure_jars(home, silent)
    assert folders(home) == []
    assert "refused" in str(caught.value)
    assert "repository.example" not in str(caught.value)
    assert jars.SETTINGS_VARIABLE in caught.value.hint
    assert caught.value.log is not None
    assert "repository.example" in caught.value.log.read_text()
    play_ivy(WHOLE)
    assert ensure_jars(home, silent).spark


def test_truncated_jar_is_never_accepted(play_ivy: PlayIvy, home: Home) -> None:
    """A jar that stays damaged is an error, and nothing is left that looks whole."""
    play_ivy(TRUNCATED)
    with pytest.raises(JarsUnavailable, match="damaged"):
        ensure_jars(home, silent)
    assert folders(home) == []


def test_truncated_jar_in_the_cache_is_fetched_again(play_ivy: PlayIvy, home: Home) -> None:
    """Otherwise one bad download would fail every later run."""
    calls = play_ivy(f"{TRUNCATED} if call == 1 else None\nif call > 1: fetch(wanted)")
    cached = home.ivy / "cache" / "org" / "jars" / "spark-sql-kafka-0-10_2.13-4.2.0.jar"
    cached.parent.mkdir(parents=True)
    cached.touch()
    ensure_jars(home, silent)
    assert len(calls.read_text().splitlines()) == 2
    assert not cached.exists()


def test_jar_that_did_not_come_is_an_error(play_ivy: PlayIvy, home: Home) -> None:
    """Ivy ends well where a configuration leaves a jar out; Kafka would fail much later."""
    play_ivy("fetch(wanted[:-1])")
    with pytest.raises(JarsUnavailable, match="log4j-slf4j-impl"):
        ensure_jars(home, silent)
    assert folders(home) == []


def test_leftovers_of_a_dead_run_are_removed(play_ivy: PlayIvy, home: Home) -> None:
    """Each killed run would otherwise cost 55 MB for ever."""
    play_ivy(WHOLE)
    stale = home.jars / "0123456789ab.1.tmp" / "kafka"
    stale.mkdir(parents=True)
    ensure_jars(home, silent)
    assert len(folders(home)) == 1
    assert not stale.exists()


def test_two_at_once_fetch_once(play_ivy: PlayIvy, home: Home) -> None:
    """The second waits for the first and finds its jars."""
    calls = play_ivy(f"time.sleep(0.3)\n{WHOLE}")
    results: list[jars.Jars] = []
    threads = [
        threading.Thread(target=lambda: results.append(ensure_jars(home, silent)), daemon=True)
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == 3
    assert len(set(results)) == 1
    assert len(calls.read_text().splitlines()) == 1


def test_progress_is_told(play_ivy: PlayIvy, home: Home) -> None:
    """What is fetched, and how much it was; never Ivy's own lines."""
    play_ivy(WHOLE)
    told: list[str] = []
    ensure_jars(home, told.append)
    assert told[0].startswith("Fetching")
    assert told[-1].startswith("Fetched 7 jars")
    assert "repository.example" not in "".join(told)


def test_company_settings_are_handed_to_ivy(
    monkeypatch: pytest.MonkeyPatch, play_ivy: PlayIvy, home: Home, tmp_path: Path
) -> None:
    """A mirror is named in a file; one that is not there is said at once."""
    calls = play_ivy(WHOLE)
    settings = tmp_path / "ivysettings.xml"
    monkeypatch.setenv(jars.SETTINGS_VARIABLE, str(settings))
    with pytest.raises(JarsUnavailable, match="not a file"):
        ensure_jars(home, silent)
    settings.write_text("<ivysettings/>")
    ensure_jars(home, silent)
    assert f"-settings {settings}" in calls.read_text()


def test_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch, play_ivy: PlayIvy, home: Home) -> None:
    """Ivy would wait for ever; its process is ended and nothing is left."""
    play_ivy("time.sleep(60)")
    monkeypatch.setattr(jars, "STALL_TIMEOUT_S", 0.3)
    with pytest.raises(JarsUnavailable, match="Nothing came"):
        ensure_jars(home, silent)
    assert folders(home) == []


def test_connector_has_the_version_of_pyspark() -> None:
    """The two are released together and work only together."""
    versions = {
        line.attrib["name"]: line.attrib["rev"]
        for line in ElementTree.parse(jars.IVY_FILE).iter("dependency")
    }
    assert versions["spark-sql-kafka-0-10_2.13"] == importlib.metadata.version("pyspark")
