"""The README's examples, run as they stand there."""

import subprocess
import sys
from pathlib import Path

import pytest
from machines import ANSWER_DEADLINE_S, Machine

from branchline.ops.cli import main
from branchline.ops.running import running_bootstrap

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The README's code blocks in a language."""
    parts = README.split("```")[1::2]
    return [part.removeprefix(language + "\n") for part in parts if part.startswith(language + "\n")]


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_the_readme_example_works_word_for_word(up: Machine) -> None:
    """The commands of the worked example, in a shell, print the event that matches and no other."""
    [example] = [block for block in blocks("sh") if "branchline subscribe" in block]
    done = subprocess.run(
        ["sh", "-e", "-c", example],
        env=up.environment(),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=ANSWER_DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == '{"type": "flight", "to": "MAD", "price": 99}'
    assert "router of broker main: running" in done.stdout


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_a_foreign_client_does_it_all(up: Machine, tmp_path: Path) -> None:
    """kafka-python, in under 30 lines of the README, publishes, subscribes and receives."""
    [script] = blocks("python")
    assert len(script.splitlines()) < 30
    assert "import branchline" not in script and "from branchline" not in script
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**up.environment(), "BOOTSTRAP": str(running_bootstrap(up.home))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=ANSWER_DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["in-force", "b'k' b'{\"price\": 15}' b'dublin'"]


def test_the_readme_names_only_targets_and_commands_that_there_are() -> None:
    """Every make target and every command in the README's blocks exists."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for block in blocks("sh"):
        for line in block.splitlines():
            words = line.split("#")[0].split()
            if words[0] == "make":
                assert f"\n{words[1]}:" in makefile
            elif words[0].endswith("branchline"):
                assert words[1] in main.commands
