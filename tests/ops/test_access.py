"""Who may do what: every principal tries everything at a real authorizer, and everybody does their work."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from bridges import Pair
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from machines import COMMAND, START_DEADLINE_S, STOP_DEADLINE_S, linked_home
from principals import DEADLINE_S, NAMES, NOBODY, NS, OTHERS, ROLES, TOPICS, Trier, expected, matrix
from processes import await_end, family
from routers import read_all
from secured import ADMIN, MARK, Secured, secured
from waiting import wait_until

from branchline.kafka.access import Operation as May
from branchline.kafka.access import Resource, rights
from branchline.kafka.admin import ensure_topics, list_topics
from branchline.kafka.asking import Answer, ask, decode_answer
from branchline.kafka.client import Publisher, Subscriber
from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.ends import Ends
from branchline.kafka.errors import ClusterUnreachable
from branchline.kafka.jars import Jars
from branchline.kafka.java import find_java
from branchline.kafka.listing import last_stats, list_subscriptions
from branchline.kafka.messages import encode_proposal, encode_request
from branchline.kafka.reading import read_to_end
from branchline.kafka.topics import OUT, Topics
from branchline.routing.control import Operation, Request, Subscribed
from branchline.routing.overlay.letters import Propose
from branchline.routing.overlay.topology import founded

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LIVE = Topics("live")

PAGE = Path(__file__).parents[2] / "docs" / "access.md"
REGENERATE = "BRANCHLINE_TEST_WRITE_DOCS"
"""Set to 1, what the test has found is written to the page in place of being compared with it."""


@pytest.fixture(scope="module")
def kafka(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    users = [*ROLES, NOBODY, "dora"]
    with secured(tmp_path_factory.mktemp("secured"), jars, find_java(), users) as kafka:
        yield kafka


@dataclass
class Job:
    """Both jobs in one process, and the folder below which is all that they write."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    def await_router(self) -> None:
        wait_until(
            lambda: "router: running" in self.output or self.process.poll() is not None,
            START_DEADLINE_S,
            "the router runs",
        )
        assert self.process.poll() is None, self.output

    def end(self) -> None:
        everything = family(self.process.pid) if self.process.poll() is None else []
        self.process.terminate()
        self.process.wait(STOP_DEADLINE_S)
        await_end(everything, STOP_DEADLINE_S)


@pytest.fixture(scope="module")
def job(kafka: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """The jobs as the principal of the router. They start while the other test goes on."""
    for arguments in (
        ["publisher", "shop", "--broker", "main"],
        *(["subscriber", name] for name in ("alice", "bob", "dora")),
        ["operator", "--principal", "User:olga"],
        ["router", "--principal", "User:router"],
    ):
        kafka.allow(LIVE.namespace, *arguments)
    folder = tmp_path_factory.mktemp("job")
    home = linked_home(folder / "home")
    (folder / "spark").mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("BRANCHLINE_")},
        "BRANCHLINE_HOME": str(home.root),
        "BRANCHLINE_IMAGES": str(folder / "images"),
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
    }
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [COMMAND, "up", *kafka.options("router", LIVE.namespace), "--limit", "1s"],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    job = Job(process, folder)
    yield job
    job.end()


def test_exactly_what_the_table_says_is_allowed(kafka: Secured, job: Job) -> None:
    """Each principal tries each operation on each kind of topic, group and transactional id."""
    admin = kafka.cluster(ADMIN)
    ensure_topics(admin, {name: TOPICS.kind(name) or OTHERS.kind(name) or OUT for name in NAMES})
    producer = admin.producer()
    for name in NAMES:
        producer.produce(name, b"there", b"key")
    assert producer.flush(DEADLINE_S) == 0
    for _, _, arguments in ROLES.values():
        kafka.allow(NS, *arguments)
    # Rights come into force in the order in which they were given; those of the operator were the last.
    wait_until(lambda: TOPICS.positions in list_topics(kafka.cluster("olga")), 20, "the rights are in force")
    users = [*ROLES, NOBODY]
    triers = {user: Trier(kafka.cluster(user)) for user in users}
    with ThreadPoolExecutor(len(users)) as pool:
        found = dict(zip(users, pool.map(lambda user: triers[user].everything(), users), strict=True))
    want = {user: expected(rights(role, TOPICS, **names)) for user, (role, names, _) in ROLES.items()}
    want[NOBODY] = expected(())
    # Those last who should be able to: what is gone is refused to nobody.
    for user in sorted(users, key=lambda user: any(May.DELETE in may for may in want[user].values())):
        for name in triers[user].delete():
            found[user][Resource.TOPIC, name].add(May.DELETE)
    for user in users:
        for key, may in want[user].items():
            assert found[user][key] == may, f"{user} on {key[1]}"
    compare_with_page(matrix(found))


def compare_with_page(made: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = (
        "<!-- the matrix, which tests/ops/test_access.py checks -->\n",
        "\n<!-- end of the matrix -->",
    )
    found = re.search(f"{re.escape(begin)}(.*?){re.escape(end)}", text, re.DOTALL)
    assert found is not None
    if os.environ.get(REGENERATE):
        PAGE.write_text(text[: found.start(1)] + made + text[found.end(1) :], encoding="utf-8")
    else:
        assert found[1] == made, f"docs/access.md is out of date: run this test with {REGENERATE}=1"


# Everybody at work


def subscriber(kafka: Secured, name: str) -> Subscriber:
    return Subscriber(kafka.cluster(name), name, namespace=LIVE.namespace, own_control=True)


def write(kafka: Secured, user: str, topic: str, *values: bytes) -> None:
    producer = kafka.cluster(user).producer()
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(DEADLINE_S) == 0


def answers(kafka: Secured, topic: str) -> list[Answer]:
    found = (decode_answer(record) for record in read_to_end(kafka.cluster(ADMIN), topic, hint=""))
    return [answer for answer in found if answer is not None]


def standing(kafka: Secured) -> dict[str, Subscribed]:
    found = list_subscriptions(kafka.cluster("olga"), LIVE)
    return {change.identity.subscriber: change for change in found}


def delivered(kafka: Secured, name: str, count: int) -> list[int]:
    found = []
    for event in subscriber(kafka, name).events():
        found.append(event.json()["n"])
        if len(found) == count:
            break
    return sorted(found)


def holding_secrets(folder: Path) -> list[Path]:
    """The files in a folder that have a password in them."""
    found = []
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # whoever runs tidies up
            if path.is_file() and not path.is_symlink() and MARK.encode() in path.read_bytes():
                found.append(path)
    return found


def arguments(pid: int) -> list[str]:
    """Of the process and all below it."""
    found = []
    for each in family(pid):
        with suppress(psutil.NoSuchProcess):
            found.append(" ".join(each.cmdline()))
    return found


def test_everybody_does_their_work_and_no_password_is_seen(kafka: Secured, job: Job) -> None:
    """Over TLS and with no more rights than they need: a publisher, subscribers on their own topics, an
    operator, and both jobs. A message that speaks for another changes nothing. An answer that cannot be
    written stops nobody. And what was written, printed or started shows no password.
    """
    process, folder = job.process, job.folder
    job.await_router()
    subscriber(kafka, "alice").subscribe("n < 100", timeout_s=60)
    result = kafka.run("bob", LIVE.namespace, "subscribe", "bob", "n >= 2", "--own-control", "--json")
    assert (result.exit_code, json.loads(result.stdout)["status"]) == (0, "in-force")
    with Publisher(kafka.cluster("shop"), namespace=LIVE.namespace) as shop:
        for number in (1, 2, 3):
            shop.publish({"n": number})
    assert delivered(kafka, "alice", 3) == [1, 2, 3]

    before = standing(kafka)
    forged = [
        encode_request(Request(Operation.UNSUBSCRIBE, "bob", "", all=True, request="f1")),
        encode_request(Request(Operation.SUBSCRIBE, "bob", "default", filter="FALSE", request="f2")),
        encode_proposal(Propose(founded(["main", "mine"]), "f3")),
    ]
    write(kafka, "alice", LIVE.own_control("alice"), *forged)
    refused = {("f1", "not-yours"), ("f2", "not-yours"), ("f3", "not-yours")}
    wait_until(
        lambda: refused <= {(each.request, each.code) for each in answers(kafka, LIVE.own_acks("alice"))},
        DEADLINE_S,
        "what is not hers is refused",
    )
    assert standing(kafka) == before
    assert {each.subscriber for each in answers(kafka, LIVE.own_acks("bob"))} == {"bob"}
    assert answers(kafka, LIVE.acks) == [], "nobody asked on the shared topic"

    # Answers that cannot be written: a topic that is gone is made anew, one that is closed gets none.
    admin = kafka.cluster(ADMIN).admin()
    closed = (ResourceType.TOPIC, LIVE.own_acks("dora"), ResourcePatternType.LITERAL, "User:router", "*")
    [denial] = admin.create_acls([AclBinding(*closed, AclOperation.WRITE, AclPermissionType.DENY)]).values()
    denial.result()
    [gone] = admin.delete_topics([LIVE.own_acks("bob")]).values()
    gone.result()
    ask(
        kafka.cluster("dora"),
        LIVE,
        [Request(Operation.SUBSCRIBE, "dora", "d", filter="n = 4")],
        None,
        own=True,
    )
    renewal = Request(Operation.RENEW, "bob", "default", request="again")
    write(kafka, "bob", LIVE.own_control("bob"), encode_request(renewal))
    wait_until(
        lambda: (
            LIVE.own_acks("bob") in list_topics(kafka.cluster(ADMIN))
            and "again" in {each.request for each in answers(kafka, LIVE.own_acks("bob"))}
        ),
        DEADLINE_S,
        "bob is answered again",
    )
    wait_until(lambda: "dora" in standing(kafka), DEADLINE_S, "dora's request is handled")
    stats = last_stats(kafka.cluster("olga"), LIVE)
    assert stats["router/main"]["counts"]["unanswered"] > 0
    with Publisher(kafka.cluster("shop"), namespace=LIVE.namespace) as shop:
        shop.publish({"n": 4})
    assert delivered(kafka, "bob", 3) == [2, 3, 4]
    assert delivered(kafka, "dora", 1) == [4]

    told = kafka.run("olga", LIVE.namespace, "status", "--json")
    assert json.loads(told.stdout)["jobs"]
    wait_until(
        lambda: list(read_to_end(kafka.cluster(ADMIN), LIVE.rt_updates, hint="")),
        DEADLINE_S,
        "the Tree Optimizer tells of its tree",
    )
    assert [line for line in arguments(process.pid) if MARK in line] == []
    assert MARK not in told.output + result.output
    assert holding_secrets(folder) == []
    job.end()
    assert holding_secrets(folder) == []
    assert list(folder.rglob("state/*")) and list(folder.rglob("spark*.log")), (
        "there was something to look at"
    )

    server = kafka.folder / "data" / "server.properties"
    assert holding_secrets(kafka.folder / "data") == [server]
    assert server.stat().st_mode & 0o777 == 0o600
    everywhere = read_all(kafka.cluster(ADMIN), list(list_topics(kafka.cluster(ADMIN))))
    assert everywhere and not any(MARK.encode() in (record.value or b"") for record in everywhere)


def test_who_does_not_trust_the_server_or_is_not_known_is_not_let_in(kafka: Secured) -> None:
    """Without the authority, the certificate or the password there is no answer."""
    good = kafka.cluster("alice").properties
    for left_out in ("ssl.ca.location", "ssl.keystore.location", "sasl.password"):
        properties = {name: value for name, value in good.items() if name != left_out}
        if left_out == "sasl.password":
            properties[left_out] = "wrong"
        with pytest.raises(ClusterUnreachable):
            list_topics(Cluster(kafka.bootstrap, properties), 1.0)


def test_a_bridge_carries_with_its_rights_at_either_end(
    kafka: Secured, elsewhere: EmbeddedKafka, tmp_path: Path
) -> None:
    """From here with the rights of a source, to here with those of a target."""
    other, admin = Cluster(elsewhere.bootstrap), kafka.cluster(ADMIN)
    for side, user in (("source", "carrier"), ("target", "lander")):
        kafka.allow(
            f"bridged-{side}", "bridge", "home", "away", "--side", side, "--principal", f"User:{user}"
        )
        (tmp_path / side).mkdir()
        whole, limited = (
            (cluster, other) if side == "source" else (other, cluster)
            for cluster in (admin, kafka.cluster(user))
        )
        pair = Pair(*whole, f"bridged-{side}", tmp_path / side)
        pair.link("there")
        mail = [pair.topics.broker("there"), pair.topics.link("there"), pair.topics.rt_updates]
        for topic in mail:
            pair.write(topic, b"key", topic.encode())
        pair.flush()
        pair.once(Ends("home", limited[0], "away", limited[1], pair.namespace))
        assert sorted(record.value or b"" for record in pair.arrived(*mail)) == sorted(map(str.encode, mail))
