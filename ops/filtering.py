"""`filter`: look at filters without a cluster: what they mean, what they match, how two of them compare."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from branchline.kafka.errors import ConfigError
from branchline.ops.output import emit, say
from branchline.ops.settings import json_option
from branchline.ops.spelling import Spelled, compiled_or_refused, printable, spelling_option
from branchline.ops.trying import try_filter
from branchline.routing import filters
from branchline.routing.compiling import Compiled
from branchline.routing.covers import ALL, Cover
from branchline.routing.describing import describe_constraint, describe_cover, describe_filter
from branchline.routing.expression import Expression, Or
from branchline.routing.filters import Filter
from branchline.routing.limits import COVER_MAX_FILTERS
from branchline.routing.relations import Verdict, relate
from branchline.routing.spellings import SPELLINGS
from branchline.routing.spellings.sql_text import write

VERDICTS = {
    Verdict.EQUAL: "A equals B",
    Verdict.COVERS: "A covers B",
    Verdict.COVERED: "A is covered by B",
    Verdict.OVERLAPS: "A and B overlap",
    Verdict.DISJOINT: "A and B are disjoint",
}


@click.group("filter", short_help="Check, test and compare filters, without a cluster.")
def filter_commands() -> None:
    """Check, test and compare filters. Needs no cluster and changes nothing.

    \b
    Examples:
      branchline filter check "type = 'flight' AND price < 500"
      branchline filter test "price < 500" events.jsonl
      branchline filter covers "price < 500" "price < 100"
    """


@filter_commands.command(short_help="Show how a filter is read and what routing makes of it.")
@click.argument("filter", required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the filter from a file.",
)
@spelling_option
@json_option
def check(filter: str | None, path: Path | None, spelling: str | None, as_json: bool) -> None:
    """Show how FILTER is read and what routing makes of it; - reads it from standard input.

    The cover is what indexes look for. It is exact, or a residual is checked as well.

    \b
    Examples:
      branchline filter check "type = 'flight' AND price < 500"
      branchline filter check '{"type": ["flight"], "price": [{"numeric": ["<", 500]}]}'
      branchline filter check --file filter.json --spelling cloudevents --json
    """
    filter_ = Spelled.of(_text(filter, path), spelling)
    compiled = compiled_or_refused(filter_, as_json)
    sql = write(compiled.expression)
    residual = None if compiled.residual is None else write(compiled.residual)
    if as_json:
        emit(
            {
                "spelling": filter_.spelling,
                "guessed": filter_.guessed,
                "sql": sql,
                "exact": compiled.exact,
                "always": compiled.always,
                "cover": [[describe_constraint(each) for each in one] for one in compiled.cover],
                "residual": residual,
                "left": [{"part": write(left.part), "why": left.why} for left in compiled.left],
            }
        )
        return
    _show("spelling", [f"{filter_.spelling} ({'guessed' if filter_.guessed else 'given'})"])
    _show("as SQL", [sql])
    _show("normal form", _normal_form(compiled))
    count = len(compiled.cover)
    exact = "exact" if compiled.exact else "not exact"
    _show(f"cover of {count} filter{'' if count == 1 else 's'}, {exact}", describe_cover(compiled.cover))
    if residual is not None:
        _show("residual", [residual])
        _show("left to it", [f"{write(left.part)}: {left.why}" for left in compiled.left])
    if compiled.always:
        click.echo("matches every event")


filter_commands.add_command(try_filter)


@filter_commands.command(short_help="Tell whether one filter matches all that another one does.")
@click.argument("a")
@click.argument("b")
@spelling_option
@click.option("--spelling-b", type=click.Choice(list(SPELLINGS)), help="B's language, if it is another.")
@json_option
def covers(a: str, b: str, spelling: str | None, spelling_b: str | None, as_json: bool) -> None:
    """Tell whether filter A covers filter B (matches whatever B matches), equals it or overlaps it.

    \b
    Examples:
      branchline filter covers "price < 500" "price < 100 AND type = 'flight'"
      branchline filter covers "type = 'flight'" '{"type": ["flight"]}' --json
    """
    one = compiled_or_refused(Spelled.of(a, spelling), as_json, "A: ")
    other = compiled_or_refused(Spelled.of(b, spelling_b or spelling), as_json, "B: ")
    relation = relate(one, other)
    outside = None
    if relation.certain and relation.verdict in (Verdict.COVERED, Verdict.OVERLAPS):
        outside = _outside(one.cover, other.cover)
    example = None if outside is None else describe_filter(outside)
    if as_json:
        fields = {"verdict": relation.verdict, "certain": relation.certain, "outside": example}
        emit({name: value for name, value in fields.items() if value is not None})
        return
    doubt = "" if relation.certain else f" (not certain: {_residuals(one, other)})"
    click.echo(f"{VERDICTS[relation.verdict]}{doubt}")
    if example is not None:
        click.echo(f"B matches and A does not: {printable(example)}")


def _text(filter_: str | None, path: Path | None) -> str:
    if (filter_ is None) is (path is None):
        raise ConfigError("one of FILTER and --file is needed", hint='branchline filter check "price < 100"')
    if path is None and filter_ != "-":
        return filter_ or ""
    if path is None and sys.stdin.isatty():
        say("reading the filter from standard input; end with Ctrl-D")
    data = sys.stdin.buffer.read() if path is None else path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = "standard input" if path is None else path
        raise ConfigError(
            f"{where}: not UTF-8 at byte {error.start}", hint="write the filter in UTF-8"
        ) from None
    # The last line's end is the file's and not the filter's.
    return text.removesuffix("\n").removesuffix("\r")


def _show(heading: str, lines: Sequence[str]) -> None:
    if len(lines) == 1:
        click.echo(f"{heading}: {printable(lines[0])}")
        return
    click.echo(f"{heading}:")
    for line in lines:
        click.echo(f"  {printable(line)}")


def _normal_form(compiled: Compiled) -> list[str]:
    """The disjunction of the cover's filters and, if it is not exact, the residual."""
    first, *others = describe_cover(compiled.cover)
    lines = [first, *(f"OR {line}" for line in others)]
    if compiled.residual is None:
        return lines
    if compiled.cover == ALL:
        return [write(compiled.residual)]
    if others:
        lines = [f"({lines[0]}", *lines[1:-1], f"{lines[-1]})"]
    return [*lines, f"AND {_conjunct(compiled.residual)}"]


def _conjunct(term: Expression) -> str:
    return f"({write(term)})" if isinstance(term, Or) else write(term)


def _residuals(one: Compiled, other: Compiled) -> str:
    if one.exact:
        return "B has a residual"
    return "A has a residual" if other.exact else "A and B have residuals"


def _outside(one: Cover, other: Cover) -> Filter | None:
    """A region where the other holds and the one does not, None if none can be said."""
    for theirs in other:
        rest: list[Filter] = [theirs]
        for mine in one:
            # Any piece will do, so those that cannot be said, or are too many, may be left out.
            pieces = [piece for each in rest for piece in filters.difference(each, mine) or ()]
            rest = pieces[:COVER_MAX_FILTERS]
        if rest:
            return rest[0]
    return None
