"""In which spelling a command takes a filter, and how it tells that one was refused."""

from dataclasses import dataclass
from typing import NoReturn

import click

from branchline.kafka.errors import RequestRefused
from branchline.ops.output import exit_code, say
from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.spellings import SPELLINGS
from branchline.routing.spellings.errors import caret
from branchline.routing.spellings.guessing import guess

IN_WORDS = {
    "sql": "SQL",
    "cloudevents": "a CloudEvents filter",
    "cesql": "CESQL",
    "eventbridge": "an EventBridge pattern",
}


@dataclass(frozen=True, slots=True)
class Spelled:
    """A filter's text and its spelling, which was given or guessed."""

    text: str
    spelling: str
    guessed: bool

    @classmethod
    def of(cls, text: str, spelling: str | None) -> "Spelled":
        return cls(text, guess(text) if spelling is None else spelling, spelling is None)

    @property
    def note(self) -> str:
        """How the text was read, for whoever did not say how."""
        return f"read as {IN_WORDS.get(self.spelling, self.spelling)}; --spelling says otherwise"


spelling_option = click.option(
    "--spelling",
    type=click.Choice(list(SPELLINGS)),
    show_default="guessed",
    help="The filter's language.",
)


def compiled_or_refused(filter_: Spelled, as_json: bool, whose: str = "") -> Compiled:
    """The filter as routing uses it; a filter that is refused ends the command."""
    compiled = compile_filter(filter_.spelling, filter_.text)
    if isinstance(compiled, Rejection):
        refuse(filter_, compiled, as_json, whose)
    return compiled


def refuse(filter_: Spelled, why: Rejection, as_json: bool, whose: str = "") -> NoReturn:
    """End the command as `subscribe` does when the router refuses a filter."""
    note = filter_.note if filter_.guessed else ""
    error = RequestRefused(
        f"{whose}refused: {why.reason}", code=why.code, line=why.line, column=why.column, hint=note
    )
    if as_json:
        raise error
    place = f" (line {why.line}, column {why.column})" if why.line is not None else ""
    say(f"{whose}refused [{why.code}]: {why.reason}{place}")
    if why.line is not None and why.column is not None:
        say(caret(filter_.text, why.line, why.column))
    if note:
        say(f"hint: {note}")
    raise click.exceptions.Exit(exit_code(error))


def printable(text: str) -> str:
    """The text with blanks for what could write to someone's terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
