"""What `rebuild` is told: times, offsets, and exactly one way."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from branchline.kafka.errors import ConfigError
from branchline.ops.cli import main
from branchline.ops.rebuild import read_offsets, read_time
from branchline.streaming.files import LocalFolder
from branchline.streaming.rebuilding import committed_offsets

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("2h", NOW_MS - 7_200_000),
        ("2023-11-14T22:13:20Z", NOW_MS),
        ("2023-11-14T22:13:20", NOW_MS),
        ("2023-11-15T00:13:20+02:00", NOW_MS),
    ],
)
def test_a_time_is_so_long_ago_or_a_moment(text: str, at_ms: int) -> None:
    """A moment without a zone is UTC."""
    assert read_time(text, NOW_MS) == at_ms


def test_what_is_no_time_is_refused() -> None:
    """With how to write one."""
    with pytest.raises(ConfigError, match="'yesterday'") as refused:
        read_time("yesterday", NOW_MS)
    assert "2h" in refused.value.hint


@pytest.mark.parametrize(
    "text", ["[1]", '{"t": 3}', '{"t": {"0": -1}}', '{"t": {"x": 1}}', '{"t": {"0": true}}', "{"]
)
def test_offsets_that_are_none_are_refused(text: str, tmp_path: Path) -> None:
    """Never taken for others."""
    file = tmp_path / "offsets.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="no offsets"):
        read_offsets(file)


@pytest.mark.parametrize(
    "ways", [(), ("--from-beginning", "--since", "2h"), ("--from", "x", "--from-positions")]
)
def test_exactly_one_way_must_be_given(ways: tuple[str, ...]) -> None:
    """Before anything else is looked at."""
    result = CliRunner().invoke(main, ["rebuild", "--json", *ways])
    assert result.exit_code == 2
    assert "--from-positions" in json.loads(result.stdout)["hint"]


def test_the_offsets_of_the_last_committed_batch_can_be_printed(tmp_path: Path) -> None:
    """Not those of a batch that was begun and not done; they read back as `--offsets` takes them."""
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    for batch in (9, 10, 11):
        lines = ["v1", '{"batchWatermarkMs":0}', json.dumps({"control": {"0": batch}}), "-"]
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(lines))
    for batch in (9, 10):
        (tmp_path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    (tmp_path / "commits" / ".11.crc").write_text("")
    result = CliRunner().invoke(main, ["rebuild", "--print-offsets", "--from", str(tmp_path)])
    assert result.exit_code == 0, result.output
    file = tmp_path / "offsets.json"
    file.write_text(result.stdout)
    assert read_offsets(file) == {"control": {"0": 10}}


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    """One that was rebuilt and never used begins where it was told to."""
    with pytest.raises(ConfigError, match="no checkpoint"):
        committed_offsets(LocalFolder(str(tmp_path)), "there")
    assert committed_offsets(LocalFolder(str(tmp_path)), "there", {"in": {"0": 3}}) == {"in": {"0": 3}}
