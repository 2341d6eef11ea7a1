"""The documentation says what the code does: tables are compared with it, examples are run through it."""

import itertools
import json
import re
import shlex
from pathlib import Path

import click
import pytest

from branchline.kafka import (
    asking,
    assisting,
    claiming,
    dead_letters,
    errors,
    explaining,
    headers,
    letters,
    messages,
)
from branchline.kafka import fields as message_fields
from branchline.kafka.dispatch import count
from branchline.kafka.events import Event, Mode, decode_event
from branchline.kafka.intake import Intake
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import DAY_MS, TOPIC_KINDS, TopicKind
from branchline.ops.cli import main
from branchline.routing import limits
from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity, Operation, Request, Status
from branchline.routing.dissemination.summaries import hides
from branchline.routing.evaluate import evaluate
from branchline.routing.offloading import assisting as volunteering
from branchline.routing.offloading import messages as tasks
from branchline.routing.offloading import offloader
from branchline.routing.offloading.assigner import Given
from branchline.routing.offloading.assisting import Answering, AskSet, Assist
from branchline.routing.offloading.client import answer, claimed
from branchline.routing.offloading.messages import Dispatch
from branchline.routing.offloading.offloader import Work
from branchline.routing.overlay import topology
from branchline.routing.overlay.denying import Denial
from branchline.routing.overlay.explaining import Explained
from branchline.routing.overlay.hops import Hop
from branchline.routing.overlay.letters import Body, Letter, Propose, Refresh
from branchline.routing.overlay.topology import fault, founded
from branchline.routing.prefix import header, possible, telling
from branchline.routing.shard import EventBatch, Outputs, Shard, alone
from branchline.routing.spellings import read_filter
from branchline.streaming.state import COUNTS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"])
MESSAGES = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")

PLACE = Place("branchline.control", 0, 12, 1_700_000_000_000)

_FENCE = re.compile(r"^```([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPERATING = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8").replace("\\\n", " ")
_COMMANDS = [
    line for _, text in _FENCE.findall(_OPERATING) for line in text.splitlines() if "branchline " in line[:11]
]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def table(first: str) -> dict[str, list[str]]:
    """The rows of the table whose head begins with this cell, by their own first cell without backticks."""
    lines = iter(MESSAGES.splitlines())
    assert any(line.startswith(f"| {first} |") for line in lines), f"no table begins with {first!r}"
    next(lines)
    rows: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        name = name.replace("`", "")
        assert name not in rows, f"{name} has two rows"
        rows[name] = cells
    return rows


def examples(kind: str) -> list[str]:
    """The blocks whose fence is marked with this kind."""
    found = [text for mark, text in _FENCE.findall(MESSAGES) if mark.partition(" ")[2] == kind]
    assert found, f"no example is marked {kind!r}"
    return found


def text_example(kind: str) -> str:
    (found,) = (text for mark, text in _FENCE.findall(MESSAGES) if mark == f"text {kind}")
    return str(found).strip()


def test_every_code_is_documented_and_no_other() -> None:
    """The table of codes has exactly the codes there are, each with a meaning and what to do."""
    rows = table("code")
    assert rows.keys() == {code.value for code in Code}
    assert all(len(cells) == 2 and all(cells) for cells in rows.values())


def test_every_topic_is_documented_as_it_is_created() -> None:
    """The table of topics says of each kind what `TOPIC_KINDS` says, in its order, and has no other row."""
    rows = [[name, *cells] for name, cells in table("topic").items()]
    assert rows == [topic_row(kind) for kind in TOPIC_KINDS]


def topic_row(kind: TopicKind) -> list[str]:
    kept = "-"
    if kind.retention_ms is not None:
        days, rest = divmod(kind.retention_ms, DAY_MS)
        assert not rest
        kept = "1 day" if days == 1 else f"{days} days"
    return [kind.name, str(kind.partitions), kind.config()["cleanup.policy"], kept, kind.carries]


def test_every_limit_is_documented_with_its_number() -> None:
    """The table of limits has every limit with the number it has in the code, and no other row."""
    known = {name: value for name, value in vars(limits).items() if name.isupper()}
    for module, names in (
        (messages, ("REQUEST_ID_MAX_CHARS", "LETTER_MAX_BYTES", "LETTER_MAX_FIELDS")),
        (explaining, ("EXPLAIN_MAX_BYTES", "EXPLAINED_MAX_BYTES", "EXPLAINED_MAX_NAMES")),
        (dead_letters, ("KEY_MAX_BYTES", "REASON_MAX_CHARS", "LETTER_MIN_BYTES")),
        (message_fields, ("COUNTED_MAX",)),
        (telling, ("PIECES_MAX",)),
        (possible, ("NODES_BEYOND",)),
        (header, ("DECODED_MAX_BYTES",)),
        (letters, ("REPORT_PIECE",)),
        (volunteering, ("ASSIST_MIN_MS", "ASSIST_MAX_MS", "VOLUNTEERS_MAX")),
        (tasks, ("BATCH_MAX",)),
        (offloader, ("WAIT_MS", "TIMEOUT_MS", "SLICE", "COPIES", "WAITING_MOST")),
        (assisting, ("ANSWER_MAX_BYTES", "TASK_MAX_BYTES")),
        (topology, ("TOPOLOGY_NUMBER_MAX", "BROKER_NUMBER_MAX", "LINK_COST_MAX")),
    ):
        known |= {name: getattr(module, name) for name in names}
    assert {name: cells[0] for name, cells in table("limit").items()} == {
        name: str(value) for name, value in known.items()
    }


def test_every_status_is_documented() -> None:
    """The table of statuses has exactly those that an ack can have."""
    assert table("status").keys() == {status.value for status in Status}


def test_every_count_is_documented() -> None:
    """The table of counts has exactly those that a job adds up: a shard's, and the sink's own."""
    assert table("count").keys() == {
        *count(Intake(), Outputs(), leads=True),
        *("diverted", "unanswered", "removed", "not_removed", "transactions", "skipped", "differed"),
        *COUNTS,
    }


def test_every_header_of_a_dead_letter_is_documented() -> None:
    """The table of a dead letter's headers has exactly those that one can have."""
    oversize = Record(PLACE, None, b"x" * (limits.EVENT_MAX_BYTES + 1))
    rejection = Rejection(Code.EVENT_TOO_LARGE, "too large")
    _, _, added = dead_letters.encode_dead_letter(oversize, rejection, dead_letters.OWES_EVENT)
    assert table("header").keys() == {name for name, _ in added}


@pytest.mark.parametrize("example", examples("request"))
def test_example_requests_decode(example: str) -> None:
    """Every example of a control message is a request, and its filter can be read."""
    request = messages.decode_request(example.encode())
    assert isinstance(request, Request)
    if request.operation is Operation.SUBSCRIBE:
        outputs = Shard(alone("main"), 0).handle(1, [], [request], EventBatch())
        assert [ack.status for ack in outputs.acks] == [Status.ACCEPTED, Status.IN_FORCE]


def test_example_requests_show_every_operation_and_field() -> None:
    """Between them, the examples show all operations, and the table lists all fields that they may have."""
    shown = [json.loads(example) for example in examples("request")]
    assert {fields["op"] for fields in shown} == {operation.value for operation in Operation}
    assert table("field").keys() == set().union(*shown)
    for operation, fields in messages.REQUEST_FIELDS.items():
        places = {name: cells[0] for name, cells in table("field").items()}
        assert fields == {
            name for name, where in places.items() if where == "all" or f"`{operation}`" in where
        }


@pytest.mark.parametrize("example", examples("topology"))
def test_example_topologies_are_taken(example: str) -> None:
    """Every example of a topology is a control message, and can follow the one of a single broker."""
    propose = messages.decode_control(example.encode())
    assert isinstance(propose, Propose)
    assert json.loads(messages.encode_proposal(propose)) == json.loads(example)
    assert fault(propose.topology, founded(["main"])) is None


@pytest.mark.parametrize("example", examples("assist"))
def test_example_offers_to_work_are_written_as_shown(example: str) -> None:
    """Every example of an offer is one, and is written again as it stands."""
    assist = messages.decode_control(example.encode())
    assert isinstance(assist, Assist)
    assert json.loads(assisting.encode_assist(assist)) == json.loads(example)


def test_the_example_of_a_task_has_the_answer_that_is_shown() -> None:
    """Both are written as they stand, and the tables have all their fields."""
    (shown,), (answered,) = examples("task"), examples("answer")
    task = assisting.decode_task(Record(PLACE, None, shown.encode()), "alice", "main")
    assert task is not None
    work = Work("main", Dispatch("alice", task), False)
    assert json.loads(assisting.encode_work(work, json.loads(shown)["at_ms"]) or b"") == json.loads(shown)
    done = Answering(answer(task, "alice"), "main")
    assert json.loads(assisting.encode_answering(done)) == json.loads(answered)
    assert listed("of a task") == json.loads(shown).keys()
    assert listed("answered with") == assisting.ANSWER_FIELDS


def test_the_example_of_a_fixed_set_is_claimed_of_as_shown() -> None:
    """Asked for, given and claimed of as it stands, and the table has all its fields."""
    (asking,), (shown,) = examples("fixed-set"), examples("set")
    asked = messages.decode_control(asking.encode())
    assert isinstance(asked, AskSet)
    assert json.loads(claiming.encode_ask_set(asked)) == json.loads(asking)
    assignment = claiming.decode_given(Record(PLACE, None, shown.encode()), "f1")
    assert assignment is not None
    given = Given("alice", "main", assignment, "f1", False)
    assert json.loads(claiming.encode_given(given, json.loads(shown)["at_ms"])) == json.loads(shown)
    assert listed("of a set") == json.loads(shown).keys()
    requests = [messages.decode_request(each.encode()) for each in examples("request")]
    (request,) = [each for each in requests if isinstance(each, Request) and each.claimed is not None]
    compiled = compile_filter(request.spelling, request.filter)
    assert isinstance(compiled, Compiled)
    assert request.claimed == claimed(assignment, compiled.cover, hides)


@pytest.mark.parametrize("example", examples("refresh"))
def test_example_refreshes_are_written_as_shown(example: str) -> None:
    """Every example of a request to refresh is one, and is written again as it stands."""
    refresh = messages.decode_control(example.encode())
    assert isinstance(refresh, Refresh)
    assert json.loads(messages.encode_refresh(refresh)) == json.loads(example)


def test_example_questions_are_written_as_shown() -> None:
    """Every example of a question is one, and is written again as it stands; the table has all its fields."""
    for example in examples("question"):
        asked = messages.decode_control(example.encode())
        assert isinstance(asked, explaining.Asked)
        assert json.loads(explaining.encode_asked(asked)) == json.loads(example)
    assert listed("question field") == explaining.EXPLAIN_FIELDS


def test_every_field_of_an_explanation_is_documented() -> None:
    """The tables of an answer and of a hop have the fields that a full one has."""
    hop = Hop("b", "a", 1, ("b",), "how", copies=(("c", ()),), stopped="", knows=1, left_out=(("path", 1),))
    denials = (Denial(Identity("b", "alice", "one"), "TRUE", True),) * (explaining.EXPLAINED_MAX_NAMES + 1)
    answer = Explained("b", "main", "r", "alice", (hop,), denials=denials)
    fields = json.loads(explaining.encode_explained(answer, PLACE, 1))
    assert listed("answer field") == fields.keys()
    assert listed("of a hop") == explaining.hop_fields(hop).keys()


def listed(first: str) -> set[str]:
    """The names in the first column of the table that begins so."""
    return {field for row in table(first) for field in row.split(", ")}


@pytest.mark.parametrize("example", examples("letter"))
def test_example_letters_are_written_as_shown(example: str) -> None:
    """Every example of a letter is read, and written again as it stands."""
    letter = letters.decode_letter("main", example.encode())
    assert isinstance(letter, Letter)
    ((key, value),) = letters.encode_letter(letter)
    assert (key, json.loads(value)) == (letter.sender.encode(), json.loads(example))


def test_every_kind_of_letter_is_documented() -> None:
    """The table of states has exactly what can be told, and nearly each has an example."""
    states = listed("state")
    assert states == {kind.__name__.lower() for kind in Body.__args__}  # type: ignore[attr-defined]
    assert states - {json.loads(example)["state"] for example in examples("letter")} == {"subscribed"}


def test_every_field_of_a_change_is_documented() -> None:
    """The table of a change's fields has exactly those that a record on `filters` can have."""
    assert listed("change field") == messages.CHANGE_FIELDS["subscribed"] | messages.CHANGE_FIELDS["ended"]


def test_every_header_of_a_copy_is_documented() -> None:
    """The table of a copy's headers has exactly those that are believed on `broker.<broker>`."""
    assert table("its header").keys() == {headers.ORIGIN, headers.ONLY, headers.PREFIX}


@pytest.mark.parametrize("example", [*examples("ack"), *examples("ack refused")])
def test_example_acks_are_read(example: str) -> None:
    """Every example of an ack is one that our own client can read, field for field."""
    answer = asking.decode_answer(Record(PLACE, None, example.encode()))
    assert answer is not None
    fields = json.loads(example)
    for name in ("status", "subscriber", "id", "request", "code", "reason", "line", "column"):
        assert getattr(answer, name) == fields.get(name), name
    assert answer.number is None or list(answer.number) == fields["number"]


def test_example_refusal_is_what_the_home_answers() -> None:
    """The refused ack has the very fields that the shard and the encoder give for that filter."""
    (example,) = examples("ack refused")
    shown = json.loads(example)
    (text,) = re.findall(r"cannot be read, here `([^`]+)`", MESSAGES)
    request = Request(Operation.SUBSCRIBE, "alice", "default", filter=text, request=shown["request"])
    (ack,) = Shard(alone("main"), 0).handle(1, [], [request], EventBatch()).acks
    place = Place(PLACE.topic, 0, shown["place"]["offset"], 0)
    assert json.loads(messages.encode_ack(ack, place, shown["at_ms"])) == shown


@pytest.mark.parametrize("example", examples("change"))
def test_example_changes_are_written_as_shown(example: str) -> None:
    """Every example of a `filters` record is read, and written again as it stands."""
    change = messages.decode_change(example.encode())
    assert not isinstance(change, Rejection)
    key, value = messages.encode_change(change)
    assert value is not None and json.loads(value) == json.loads(example)
    assert key == "/".join(json.loads(example)[name] for name in ("home", "subscriber", "id")).encode()


def test_example_event_is_matched_as_the_page_says() -> None:
    """The structured example is a CloudEvent that the page's filters match, or do not match, as it claims."""
    (example,) = examples("event")
    content_type = ("content-type", b"application/cloudevents+json")
    event = decode_event(Record(PLACE, None, example.encode(), (content_type,)))
    assert isinstance(event, Event) and event.mode is Mode.STRUCTURED and not event.opaque
    (matching,) = re.findall(r"here by `([^`]+)`", MESSAGES)
    (other,) = re.findall(r"matches if one of them does: `([^`]+)`", MESSAGES)
    for text, expected in ((matching, True), (other, False)):
        expression = read_filter("sql", text)
        assert not isinstance(expression, Rejection)
        assert evaluate(expression, event.attributes) is expected


def test_example_delivery_id_reads_back() -> None:
    """The example of a delivery id is one: its parts read back and make the same id."""
    delivery = text_example("delivery-id")
    parts = headers.read_delivery_id(delivery)
    assert parts is not None
    assert headers.delivery_id(*parts) == delivery


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link leads to a file that is there, and every link within a page to a heading."""
    text = page.read_text(encoding="utf-8")
    headings = {anchor(line) for line in text.splitlines() if line.startswith("#")}
    for link in _LINK.findall(text):
        if link.startswith("#"):
            assert link[1:] in headings, link
        elif "://" not in link:
            assert (page.parent / link.partition("#")[0]).exists(), link


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")


def operating_table(first: str) -> list[list[str]]:
    """The rows of a table in `operate.md`, without its head."""
    lines = iter((ROOT / "docs" / "operate.md").read_text(encoding="utf-8").splitlines())
    assert any(line.startswith(f"| {first} |") for line in lines), f"no table begins with {first!r}"
    next(lines)
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_an_operator_is_told_of_every_error() -> None:
    """Each error that ends a command or job has a row of its own, in their order, with what to do."""
    rows = operating_table("error")
    assert [row[0].strip("`") for row in rows] == [kind.code for kind in error_kinds()]
    assert all(len(row) == 3 and all(row) for row in rows)


def error_kinds() -> list[type[errors.BranchlineError]]:
    """As they stand in the module, but for those whose code is a message's."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    ours = [each for each in kinds if issubclass(each, errors.BranchlineError)]
    return [each for each in ours if each not in (errors.BranchlineError, errors.RequestRefused)]


def test_an_operator_is_told_of_every_code() -> None:
    """Each code of a message stands in exactly one row, in their order, with who can mend it."""
    rows = operating_table("codes")
    told = [code for row in rows for code in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(told) == sorted(code.value for code in Code)
    assert all(len(row) == 3 and all(row) for row in rows)


@pytest.mark.parametrize("command", _COMMANDS, ids=lambda command: command[:60])
def test_commands_for_operators_are_commands(command: str) -> None:
    """Every `branchline` command in a block of `operate.md` is taken by the command itself."""
    words = shlex.split(command)[1:]
    taken = main.commands[words[0]]
    taken.make_context(words[0], words[1:], parent=click.Context(main))
