"""Archives of classes: which one is whose, and that Java takes them."""

import subprocess
from pathlib import Path

import pytest

from branchline.kafka.class_archives import ClassArchive, class_archive
from branchline.kafka.jars import Jars
from branchline.kafka.java import find_java


def java_at(folder: Path, release: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    (folder / "release").write_text(release)
    return folder


def test_another_java_and_other_jars_have_other_archives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also a Java that took the place of another one."""
    java = java_at(tmp_path / "java", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(java))
    one = class_archive("kafka", tmp_path / "jars")
    assert class_archive("kafka", tmp_path / "jars") == one
    others = [class_archive("spark", tmp_path / "jars"), class_archive("kafka", tmp_path / "jars" / "2")]
    (java / "release").write_text("17.0.2")
    others.append(class_archive("kafka", tmp_path / "jars"))
    monkeypatch.setenv("JAVA_HOME", str(java_at(tmp_path / "other", "17.0.1")))
    others.append(class_archive("kafka", tmp_path / "jars"))
    assert len({one, *others}) == 5


def test_an_archive_is_used_once_it_is_whole(tmp_path: Path) -> None:
    """Nothing is asked of Java before, and what a broken-off Java has written is not there."""
    archive = ClassArchive(tmp_path / "archives" / "kafka.jsa")
    option = archive.recording()[0]
    assert not archive.keep() and archive.options() == ()
    Path(option.split("=", 1)[1]).write_bytes(b"classes")
    assert archive.options() == ()
    assert archive.keep() and f"-XX:SharedArchiveFile={archive.file}" in archive.options()
    assert archive.file.read_bytes() == b"classes"


@pytest.mark.slow
def test_kafka_starts_from_its_archive(jars: Jars) -> None:
    """Made by `branchline setup`; told to end where it does not fit, Java does not."""
    options = class_archive("kafka", jars.kafka).options()
    command = [find_java().path, "-Xshare:on", *options, "-cp", f"{jars.kafka}/*", "kafka.Kafka", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert options and done.returncode == 0, done.stderr
