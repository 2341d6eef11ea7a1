"""One Kafka and one Spark session for the whole suite; a namespace of its own for each test."""

import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from machines import Machine, linked_home
from pyspark.sql import SparkSession
from side_by_side import share_of

from branchline.kafka.cluster import Cluster, read_properties
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars, ensure_jars
from branchline.kafka.java import find_java

# Few examples, the same ones each time; `make soak-properties` draws many and new ones. What `make test` and
# `make soak-filters` take more of is in amounts.py.
settings.register_profile("everyday", max_examples=25, deadline=None, derandomize=True, database=None)
settings.register_profile("thorough", settings.get_profile("everyday"))
settings.register_profile("soak", max_examples=1_000, deadline=None)
settings.register_profile("filters", settings.get_profile("soak"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))

# Every Java of the suite lives for minutes: the optimising compiler would take a third of the cores, and
# never earn it back. Without it Java has little room for compiled code: Spark fills it, and Java sweeps it.
QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK)

# Who is started in the background by a shell is made to ignore Ctrl-C, and so would be all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kafka",
        choices=["embedded", "container"],
        default="embedded",
        help="Where the tests' Kafka runs: from the jars, or in a container (needs Docker).",
    )
    parser.addoption(
        "--share", metavar="K/N", default="1/1", help="Only the tests of the Kth of N shares of the files."
    )


def _is_others(path: Path, config: pytest.Config) -> bool:
    share, shares = map(int, config.getoption("--share").split("/"))
    name = path.relative_to(config.rootpath).as_posix()
    return path.suffix == ".py" and share_of(name, shares) != share


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if _is_others(collection_path, config) else None


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    # Files that are named on the command line are never ignored.
    if left_out := [each for each in items if _is_others(each.path, config)]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [each for each in items if each not in left_out]


@pytest.fixture(scope="session")
def jars() -> Jars:
    return ensure_jars(Home.default(), print)


_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER, _PASSWORD = "tester", 'quo"ted back\\slash'
_ESCAPED = _PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
SECURED = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": (
        f'{_PLAIN} required username="{_USER}" password="{_ESCAPED}" user_{_USER}="{_ESCAPED}";'
    ),
}
"""The suite's Kafka lets nobody in without a password, so that every client here proves that it signs in."""


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if request.config.getoption("--kafka") == "container":
        with _container() as bootstrap:
            yield Cluster(bootstrap)
        return
    folder = tmp_path_factory.mktemp("kafka")
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={_USER}\nsasl.password={_PASSWORD}\n"
    )
    client = read_properties(file)
    jars: Jars = request.getfixturevalue("jars")
    with EmbeddedKafka(folder / "data", jars, find_java(), properties=SECURED, client=client) as kafka:
        yield Cluster(kafka.bootstrap, client)


@pytest.fixture(scope="session")
def elsewhere(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A second Kafka, for what goes on between two. A test that stops it starts it again."""
    with EmbeddedKafka(tmp_path_factory.mktemp("elsewhere") / "data", jars, find_java()) as kafka:
        yield kafka


@contextmanager
def _container() -> Iterator[str]:
    # Imported here: it looks for a Docker engine, which need not be there.
    from docker.errors import DockerException
    from testcontainers.community.kafka import KafkaContainer

    try:
        container = KafkaContainer("confluentinc/cp-kafka:7.9.0").with_kraft()
    except DockerException as error:
        pytest.exit(f"--kafka container needs a Docker engine: {error}", returncode=2)
    container.with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
    with container:
        yield container.get_bootstrap_server()


@pytest.fixture
def namespace() -> str:
    return f"test{next(_numbers)}"


@pytest.fixture(scope="session")
def failpoints(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let failpoints be armed, in this process and in all workers."""
    from branchline.streaming.failpoints import FOLDER

    os.environ[FOLDER] = str(tmp_path_factory.mktemp("failpoints"))


@pytest.fixture(scope="session")
def spark(jars: Jars, failpoints: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from branchline.streaming.images import FOLDER
    from branchline.streaming.session import create_session, stop_session

    os.environ[FOLDER] = str(tmp_path_factory.mktemp("images"))
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    quick = {"spark.driver.extraJavaOptions": QUICK}
    session = create_session(jars.spark, log, master="local[2,4]", more=quick)
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def _machine(jars: Jars) -> Iterator[Machine]:
    folder = Path(tempfile.mkdtemp(prefix="branchline-test-"))
    machine = Machine(linked_home(folder / "home"))
    yield machine
    machine.end()
    shutil.rmtree(folder)


@pytest.fixture
def up(_machine: Machine) -> Machine:
    """A running `branchline up`. A test that ends it leaves it ended; the next one starts it again."""
    _machine.start()
    _machine.await_router()
    return _machine
