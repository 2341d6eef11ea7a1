"""Which Java is taken, and what is said when none will do. No JVM: the `java` here are scripts."""

from pathlib import Path

import pytest

from branchline.kafka.errors import JavaMissing, JavaTooOld, SetupError
from branchline.kafka.java import find_java


def fake_java(home: Path, script: str) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


@pytest.fixture(autouse=True)
def _no_java_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("17", 17), ("21-ea", 21), ("25.0.1+8-LTS", 25), ("17.0.1_3", 17)]
)
def test_major_version_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, major: int
) -> None:
    """The first number counts, whatever follows it."""
    path = fake_java(tmp_path, says(version))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = find_java()
    assert (found.path, found.version, found.major) == (path, version, major)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16.0.2"])
def test_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    """1.8 is Java 8, and everything before 17 is too old; the error says which one it found and where."""
    path = fake_java(tmp_path, says(version))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaTooOld) as caught:
        find_java()
    assert version in str(caught.value)
    assert str(path) in str(caught.value)
    assert "JAVA_HOME" in caught.value.hint


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in Spark's start script, so that all parts run on one Java."""
    fake_java(tmp_path / "a", says("17.0.1"))
    fake_java(tmp_path / "b", says("21.0.1"))
    monkeypatch.setenv("PATH", str(tmp_path / "b" / "bin"))
    assert find_java().major == 21
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a"))
    assert find_java().major == 17


def test_wrong_java_home_is_not_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A good Java on the path does not help: Spark would still take JAVA_HOME's."""
    fake_java(tmp_path / "b", says("21.0.1"))
    monkeypatch.setenv("PATH", str(tmp_path / "b" / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(JavaMissing, match="JAVA_HOME"):
        find_java()


def test_no_java_at_all() -> None:
    """The hint names what to install."""
    with pytest.raises(JavaMissing) as caught:
        find_java()
    assert isinstance(caught.value, SetupError)
    assert caught.value.code == "java-missing"
    assert "JDK 17" in caught.value.hint


def test_options_announced_before_the_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAVA_TOOL_OPTIONS puts a line of its own in front."""
    fake_java(tmp_path, f"echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion=9' >&2\n{says('17.0.15')}")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java().version == "17.0.15"


@pytest.mark.parametrize(
    "script",
    [
        "echo 'The operation could not be completed. Unable to locate a Java Runtime.' >&2; exit 1",
        "echo hello",
        "exit 0",
        says("seventeen"),
        says("17.0.15") + "; exit 3",
    ],
)
def test_what_is_no_java_is_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    """A stub, another program, or one that fails: each gives an error with a hint, not a traceback."""
    fake_java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing) as caught:
        find_java()
    assert caught.value.hint


def test_file_that_cannot_be_executed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java for another processor is a program that does not run."""
    fake_java(tmp_path, "").write_bytes(b"\x7fELF for another machine")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="does not run"):
        find_java()
