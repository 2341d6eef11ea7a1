"""The `filter` commands: what the page says of them, what `check` and `covers` tell, what is refused."""

import json
import re
import shlex
from pathlib import Path

import pytest
from filter_runs import IN_ALL_SPELLINGS, REFUSED, answer, run

from branchline.ops.spelling import IN_WORDS
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.spellings import SPELLINGS

DOC = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
SECTIONS = DOC[DOC.index("### `branchline filter check`") : DOC.index("### `branchline dead-letters list`")]
EXAMPLES = re.findall(r"^(?:(\S.*) \| )?(branchline filter .+)$", SECTIONS, re.MULTILINE)
SHOWN = re.findall(r"```sh\n(branchline filter .+)\n```\n\n```text\n((?:.+\n)+)```", SECTIONS)
EVENTS = re.findall(r"```json events\n((?:.+\n)+)```", SECTIONS)[0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.jsonl").write_text(EVENTS)
    (tmp_path / "filter.json").write_text('{"prefix": {"type": "fl"}}\n')
    return tmp_path


@pytest.mark.parametrize(("before", "command"), EXAMPLES)
def test_every_documented_example_runs(before: str, command: str) -> None:
    """Each `branchline filter` line of the page is accepted; the one with a broken event exits with 1."""
    stdin = shlex.split(before)[1] if before.startswith("echo") else EVENTS.splitlines()[0]
    result = run(*shlex.split(command)[1:], stdin=stdin)
    assert result.exit_code == (1 if "events.jsonl" in command else 0), result.output
    if "--json" in command:
        assert all(isinstance(json.loads(line), dict) for line in result.stdout.splitlines())


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_documented_output_is_what_is_printed(command: str, output: str) -> None:
    """What the page shows below a command is all that it prints."""
    assert run(*shlex.split(command)[1:]).output == output


def test_every_command_shows_its_output() -> None:
    """The page shows what each of the three prints."""
    assert {command.split()[2] for command, _ in SHOWN} == {"check", "test", "covers"}


def test_every_spelling_is_documented_and_has_words() -> None:
    """The page's table names the spellings, with an example that is guessed to be in that one."""
    rows = re.findall(r"^\| `(\w+)` \| [^|`]+ \| `(.+)` \|$", DOC[DOC.index("## Spellings") :], re.MULTILINE)
    assert (
        {spelling for spelling, _ in rows} == SPELLINGS.keys() == IN_WORDS.keys() == IN_ALL_SPELLINGS.keys()
    )
    for spelling, example in rows:
        assert answer("filter", "check", example)["spelling"] == spelling


@pytest.mark.parametrize(("spelling", "text"), IN_ALL_SPELLINGS.items())
def test_check_reads_every_spelling(spelling: str, text: str) -> None:
    """Guessed, given, from a file or from standard input: it is the same filter."""
    Path("filter").write_text(text + "\n")
    guessed = answer("filter", "check", text)
    assert guessed["spelling"] == spelling and guessed["guessed"] is True
    for given in ([text], ["--file", "filter"]):
        assert answer("filter", "check", *given, "--spelling", spelling) == {**guessed, "guessed": False}
    assert answer("filter", "check", "-", stdin=text + "\r\n") == guessed
    assert f"spelling: {spelling} (guessed)\n" in run("filter", "check", text).stdout


def test_check_tells_what_routing_makes_of_a_filter() -> None:
    """The JSON form holds the filter as SQL, the cover, the residual and what is left to it, as compiled."""
    told = answer("filter", "check", "a < 5 AND b LIKE 'x%y%z'")
    compiled = compile_filter("sql", "a < 5 AND b LIKE 'x%y%z'")
    assert not isinstance(compiled, Rejection)
    assert told == {
        "spelling": "sql",
        "guessed": True,
        "sql": "a < 5 AND b LIKE 'x%y%z'",
        "exact": False,
        "always": False,
        "cover": [["a < 5", "b STARTS WITH 'x'", "b CONTAINS 'y'", "b ENDS WITH 'z'"]],
        "residual": "b LIKE 'x%y%z'",
        "left": [{"part": "b LIKE 'x%y%z'", "why": compiled.left[0].why}],
    }
    shown = run("filter", "check", "a < 5 AND b LIKE 'x%y%z'").stdout
    assert "\n  AND b LIKE 'x%y%z'\n" in shown and "residual: b LIKE 'x%y%z'\n" in shown


def test_check_of_an_exact_filter_shows_no_residual() -> None:
    """Several filters stand on a line each, and nothing is left."""
    shown = run("filter", "check", "a IN (1, 3) AND b = TRUE").stdout
    assert "normal form:\n  a = 1 AND b = TRUE\n  OR a = 3 AND b = TRUE\n" in shown
    assert "cover of 2 filters, exact:\n  a = 1 AND b = TRUE\n  a = 3 AND b = TRUE\n" in shown
    assert "residual" not in shown
    assert answer("filter", "check", "a = 1")["residual"] is None


def test_check_without_any_range_has_the_residual_alone() -> None:
    """A cover that holds everywhere says nothing in the normal form."""
    shown = run("filter", "check", "a <> b OR NOT (a <> b) IS TRUE").stdout
    told = answer("filter", "check", "a <> b OR NOT (a <> b) IS TRUE")
    assert told["cover"] == [[]] and not told["always"]
    assert f"normal form: {told['residual']}\n" in shown


@pytest.mark.parametrize(
    "text", ["TRUE", "[]", "a IS NULL OR a IS NOT NULL", "NOT a IS MISSING OR NOT EXISTS a"]
)
def test_check_tells_a_tautology(text: str) -> None:
    """A filter that matches every event is accepted and told."""
    assert run("filter", "check", text).stdout.endswith("matches every event\n")
    assert answer("filter", "check", text)["always"] is True


def test_a_filter_cannot_write_to_the_terminal() -> None:
    """Control characters of a filter or an event are not printed."""
    assert "\x1b" not in run("filter", "check", "a = '\x1b[31m'").output
    assert "\x9b" not in run("filter", "test", "a = '\x9b1m'", stdin='{"a": "\x9b31m"}').output


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "spelling"), REFUSED, ids=lambda value: str(value)[:20]
)
def test_a_refused_filter_is_shown_with_its_place(
    text: str, code: str, line: int, column: int, spelling: str
) -> None:
    """Every command exits with 5 and shows code, place, and the line with a caret; JSON has the same."""
    for command in (["check", text], ["test", text], ["covers", "TRUE", text], ["covers", text, "TRUE"]):
        result = run("filter", *command)
        assert result.exit_code == 5 and not result.stdout
        first, shown, caret, hint = result.stderr.splitlines()
        assert f"refused [{code}]: " in first and f"(line {line}, column {column})" in first
        assert first.startswith(
            {"TRUE": "B: ", text: "A: "}[command[1]] if command[0] == "covers" else "refused"
        )
        assert caret == " " * (column + 1) + "^"
        assert shown.strip() == text.split("\n")[line - 1].replace("\t", " ").strip()[:100]
        assert hint == f"hint: read as {IN_WORDS[spelling]}; --spelling says otherwise"
        told = answer("filter", *command)
        assert (told["error"], told["line"], told["column"]) == (code, line, column)
        assert run("filter", *command, "--json").exit_code == 5


def test_a_spelling_that_was_given_is_not_second_guessed() -> None:
    """What was said is tried alone, and no hint says that it was guessed."""
    result = run("filter", "check", '{"type": ["a"]}', "--spelling", "sql")
    assert result.exit_code == 5 and "hint:" not in result.stderr
    assert run("filter", "check", "TRUE", "--spelling", "klingon").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "TRUE", "--file", "filter.json"],
        ["check", "--file", "no-such-file"],
        ["check", "--file", "latin-1"],
        ["test"],
        ["test", "TRUE", "no-such-file"],
        ["covers", "TRUE"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    """Nothing to read, two things to read, or what is no text is told on standard error."""
    Path("latin-1").write_bytes("größe = 1".encode("latin-1"))
    result = run("filter", *arguments)
    assert result.exit_code == 2 and result.stderr and not result.stdout


def test_the_group_explains_itself() -> None:
    """`filter --help` lists its commands whole, with examples."""
    shown = run("filter", "--help").stdout
    assert "..." not in shown.partition("Commands:")[2]
    assert all(f"branchline filter {name} " in shown for name in ("check", "test", "covers"))


@pytest.mark.parametrize(
    ("one", "other", "told", "verdict", "certain"),
    [
        ("a < 5", "a < 3 AND b = 1", "A covers B", "covers", True),
        ("a < 3", "a < 5", "A is covered by B", "is covered", True),
        ("a = 'x'", '{"a": ["x"]}', "A equals B", "equal", True),
        ("a < 3 AND b > 1", "a < 5 AND b > 2", "A and B overlap", "overlaps", True),
        ("a < 3", "a > 5", "A and B are disjoint", "disjoint", True),
        ("a < 3", "b LIKE 'x%y%z'", "A and B overlap (not certain: B has a residual)", "overlaps", False),
        ("b LIKE 'x%y%z'", "a < 3", "A and B overlap (not certain: A has a residual)", "overlaps", False),
        ("b < d", "a < c", "A and B overlap (not certain: A and B have residuals)", "overlaps", False),
    ],
)  # fmt: skip
def test_two_filters_are_compared(one: str, other: str, told: str, verdict: str, certain: bool) -> None:
    """One line says how they stand to each other, and whose residual leaves it in doubt."""
    assert run("filter", "covers", one, other).stdout.splitlines()[0] == told
    found = answer("filter", "covers", one, other)
    assert (found["verdict"], found["certain"]) == (verdict, certain)


def test_what_a_filter_misses_of_another_is_shown() -> None:
    """The example is a region in which B matches and A does not; there is none if A covers B."""
    assert answer("filter", "covers", "a < 3", "a < 5 AND b = 1")["outside"] == "a >= 3 AND a < 5 AND b = 1"
    assert answer("filter", "covers", "a IN (1, 2)", "a IN (2, 3)")["outside"] == "a = 3"
    assert "outside" not in answer("filter", "covers", "a < 5", "a < 3")


def test_each_filter_may_have_its_spelling() -> None:
    """--spelling is for both, --spelling-b for the second."""
    both = ("TRUE", "TRUE", "--spelling", "cesql")
    assert answer("filter", "covers", *both)["verdict"] == "equal"
    mixed = ("type = 'a'", '{"type": ["a"]}', "--spelling", "sql")
    assert run("filter", "covers", *mixed).stderr.startswith("B: refused [filter-syntax]")
    assert answer("filter", "covers", *mixed, "--spelling-b", "eventbridge")["verdict"] == "equal"
