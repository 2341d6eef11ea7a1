"""The images and the compose file, as far as they can be checked where no Docker engine runs.

`docker compose` itself is not asked. The compose file is held to the part of its specification that it uses,
written down here; every path, command, variable, host and port in it and in the Dockerfile to the repository,
to the `branchline` command, to Spark's jars and to each other.
"""

import fnmatch
import os
import re
import shlex
import subprocess
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from spark_clusters import SPARK_HOME

from branchline.kafka.home import HOME_VARIABLE
from branchline.kafka.jars import SETTINGS_VARIABLE
from branchline.kafka.java import OLDEST_MAJOR
from branchline.ops.cli import main
from branchline.ops.settings import SETTINGS
from branchline.ops.spark_options import spark_choice
from branchline.streaming.images import FOLDER

ROOT = Path(__file__).parent.parent.parent
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

VARIABLES = {each.variable for each in SETTINGS} | {HOME_VARIABLE, SETTINGS_VARIABLE, FOLDER}

Check = Callable[[Any], bool]

_DURATION = re.compile(r"(\d+(h|m|s|ms|us))+")
_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_PORT = re.compile(r"(\d+\.\d+\.\d+\.\d+:)?\d+:\d+")
_VOLUME = re.compile(r"[a-zA-Z0-9._-]+:/\S+")


def text(value: Any) -> bool:
    return isinstance(value, str)


def truth(value: Any) -> bool:
    return isinstance(value, bool)


def count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def matching(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(text, value))


def many(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def mapping(keys: dict[str, Check], *required: str) -> Check:
    return lambda value: (
        isinstance(value, dict)
        and set(required) <= value.keys() <= keys.keys()
        and all(keys[name](each) for name, each in value.items())
    )


def named(check: Check) -> Check:
    return lambda value: (
        isinstance(value, dict) and all(_NAME.fullmatch(name) and check(each) for name, each in value.items())
    )


CONDITIONS = ("service_started", "service_healthy", "service_completed_successfully")
HEALTHCHECK = mapping(
    {
        "test": lambda value: text(value) or (texts(value) and value[0] in ("CMD", "CMD-SHELL", "NONE")),
        **dict.fromkeys(("interval", "timeout", "start_period"), matching(_DURATION)),
        "retries": count,
        "disable": truth,
    }
)
SERVICE = mapping(
    {
        "image": text,
        "build": mapping({"context": text, "dockerfile": text}, "context"),
        "init": truth,
        "command": lambda value: text(value) or texts(value),
        "hostname": text,
        # Numbers and truths would be allowed, written as YAML reads them: as texts they are safe.
        "environment": named(text),
        "ports": many(matching(_PORT)),
        "volumes": many(matching(_VOLUME)),
        "restart": matching(re.compile(r"no|always|on-failure(:\d+)?|unless-stopped")),
        "deploy": mapping({"replicas": count}),
        "depends_on": named(mapping({"condition": CONDITIONS.__contains__}, "condition")),
        "healthcheck": HEALTHCHECK,
    },
    "image",
)
TOP: dict[str, Check] = {
    "name": text,
    "services": named(SERVICE),
    "volumes": named(lambda value: value is None),
}


def test_the_compose_file_keeps_to_its_specification() -> None:
    """It has no key that the specification does not know, and every value is of the kind that it asks for."""
    for name, value in COMPOSE.items():
        assert name.startswith("x-") or TOP[name](value), name


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("comand", "x"),
        ("command", 5),
        ("ports", ["99:"]),
        ("restart", "sometimes"),
        ("depends_on", {"kafka": {"condition": "service_well"}}),
        ("healthcheck", {"test": ["branchline"]}),
        ("healthcheck", {"interval": "10"}),
        ("environment", {"A": True}),
        ("volumes", ["./here"]),
    ],
)
def test_the_check_of_the_compose_file_can_fail(key: str, value: Any) -> None:
    """A service with a wrong key or value is told from a right one."""
    assert SERVICE({"image": "a:1"}) and not SERVICE({"image": "a:1", key: value})


def test_what_services_refer_to_is_there() -> None:
    """Services that others wait for, in a way that they can answer; volumes; what images are made from."""
    volumes = set()
    for service in SERVICES.values():
        for other, wanted in service.get("depends_on", {}).items():
            check = SERVICES[other].get("healthcheck", {})
            if wanted["condition"] == "service_healthy":
                assert not check.get("disable"), f"{other} never says that it is healthy"
                assert "test" in check or "build" in SERVICES[other]
        volumes |= {each.partition(":")[0] for each in service.get("volumes", ())}
        if "build" in service:
            assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
            assert service["image"] == f"branchline:{PROJECT['version']}"
    assert volumes == COMPOSE["volumes"].keys()


def test_every_image_is_pinned() -> None:
    """To a version of its own, and so is what the image is made from."""
    bases = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    for image in [*(service["image"] for service in SERVICES.values()), *bases]:
        _, _, tag = image.partition(":")
        assert re.match(r"\d+\.\d+", tag), image


def test_one_service_alone_is_a_kafka_for_this_machine() -> None:
    """`up kafka` starts nothing else, and clients here find it where the port leads."""
    kafka = SERVICES["kafka"]
    assert "depends_on" not in kafka
    assert kafka["ports"] == ["127.0.0.1:9092:9092"]
    assert listeners("ADVERTISED_LISTENERS")["CLIENT"] == ("localhost", 9092)


def test_kafka_listens_where_it_says() -> None:
    """Every advertised address is a listener's, each has a protocol, and the data is on the volume."""
    settings = SERVICES["kafka"]["environment"]
    bound, told = listeners("LISTENERS"), listeners("ADVERTISED_LISTENERS")
    assert {name: port for name, (_, port) in told.items()}.items() <= {
        name: port for name, (_, port) in bound.items()
    }.items()
    protocols = dict(each.split(":") for each in settings["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert protocols.keys() == bound.keys()
    assert settings["KAFKA_INTER_BROKER_LISTENER_NAME"] in told
    voter = settings["KAFKA_CONTROLLER_QUORUM_VOTERS"].partition("@")[2].split(":")
    assert bound[settings["KAFKA_CONTROLLER_LISTENER_NAMES"]] == (voter[0], int(voter[1]))
    assert SERVICES["kafka"]["volumes"] == [f"kafka-data:{settings['KAFKA_LOG_DIRS']}"]


def listeners(name: str) -> dict[str, tuple[str, int]]:
    found = re.findall(r"(\w+)://([\w.]+):(\d+)", SERVICES["kafka"]["environment"][f"KAFKA_{name}"])
    return {listener: (host, int(port)) for listener, host, port in found}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command that a container of our image runs, and where it stands."""
    for name, service in SERVICES.items():
        if "build" in service:
            given = service.get("command", [])
            yield name, shlex.split(given) if isinstance(given, str) else given
    for name, rest in instructions():
        if name in ("CMD", "HEALTHCHECK"):
            yield name, yaml.safe_load(rest[rest.index("[") :])
        if name == "RUN" and rest.startswith("branchline"):
            yield name, shlex.split(rest)


@pytest.mark.parametrize(("where", "words"), commands())
def test_every_command_is_one(where: str, words: list[str]) -> None:
    """A `branchline` command is parsed by the command itself, a class of Spark's is in its jars."""
    program, *arguments = words
    if program == "branchline":
        parse(arguments, SERVICES.get(where, {}).get("environment", {}))
        return
    assert program == "spark-class" and (SPARK_HOME / "bin" / program).is_file()
    name, *options = arguments
    assert in_jars("spark-core", name)
    known = {"Master": {"--host", "--port", "--webui-port"}, "Worker": {"--cores", "--memory", "--work-dir"}}
    # Spark takes a name and its value as two words.
    given = options if name.endswith("Master") else options[:-1]
    assert set(given[::2]) <= known[name.rpartition(".")[2]]


def parse(arguments: list[str], environment: dict[str, str]) -> click.Context:
    """What click makes of a command line, without running it."""
    command: click.Command = main
    context: click.Context | None = None
    with pytest.MonkeyPatch.context() as patch:
        for variable in VARIABLES:
            patch.delenv(variable, raising=False)
        for variable, value in environment.items():
            patch.setenv(variable, value)
        while True:
            if "--help" in arguments and not isinstance(command, click.Group):
                raise AssertionError("help is no work")
            if arguments == ["--help"]:
                return click.Context(command)
            context = command.make_context(command.name, list(arguments), parent=context)
            if not isinstance(command, click.Group):
                return context
            rest = [*context._protected_args, *context.args]
            assert rest[0] in command.commands, rest
            command, arguments = command.commands[rest[0]], rest[1:]


def in_jars(jar: str, name: str) -> bool:
    [path] = (SPARK_HOME / "jars").glob(f"{jar}_*.jar")
    with zipfile.ZipFile(path) as archive:
        return f"{name.replace('.', '/')}.class" in archive.namelist()


def test_the_check_of_commands_can_fail() -> None:
    """A command, an option or a value that is not there is noticed."""
    for words in (["rooter"], ["router", "--shard-count", "2"], ["router", "--shards", "two"]):
        with pytest.raises((click.UsageError, AssertionError)):
            parse(words, {})
    with pytest.raises(click.UsageError):
        parse(["router"], {"BRANCHLINE_SHARDS": "two"})
    assert not in_jars("spark-core", "org.apache.spark.deploy.master.Mistress")


def test_every_variable_of_ours_is_a_setting() -> None:
    """In the compose file and in the Dockerfile; and what is said of Spark is taken."""
    told = {
        name: value for service in SERVICES.values() for name, value in service.get("environment", {}).items()
    }
    made = re.findall(r"\b(BRANCHLINE_\w+)", (DOCKER / "Dockerfile").read_text())
    assert {name for name in [*told, *made] if name.startswith("BRANCHLINE_")} <= VARIABLES
    for service in SERVICES.values():
        conf(service)


def conf(service: dict[str, Any]) -> dict[str, str]:
    given = service.get("environment", {}).get("BRANCHLINE_SPARK_CONF", "")
    return dict(spark_choice("", tuple(given.split())).conf)


def test_everybody_finds_everybody() -> None:
    """Jobs and the demo use an address that Kafka tells containers, the master's own, and can be found."""
    inside = ":".join(map(str, listeners("ADVERTISED_LISTENERS")["INSIDE"]))
    words = shlex.split(SERVICES["spark-master"]["command"])
    host, port = (words[words.index(option) + 1] for option in ("--host", "--port"))
    assert host == SERVICES["spark-master"]["hostname"] == "spark-master"
    assert f"('{host}', {port})" in SERVICES["spark-master"]["healthcheck"]["test"][-1]
    assert SERVICES["spark-master"]["ports"] == ["127.0.0.1:8080:" + words[words.index("--webui-port") + 1]]
    assert shlex.split(SERVICES["spark-worker"]["command"])[-1] == f"spark://{host}:{port}"
    for name in ("router", "optimizer", "demo"):
        assert SERVICES[name]["environment"]["BRANCHLINE_BOOTSTRAP"] == inside
    for name in ("router", "optimizer"):
        assert SERVICES[name]["environment"]["BRANCHLINE_MASTER"] == f"spark://{host}:{port}"
        assert conf(SERVICES[name])["spark.driver.host"] == SERVICES[name]["hostname"] == name


def test_one_worker_is_enough_for_both_jobs() -> None:
    """If a worker is lost, the other one has the cores and the memory that both jobs ask for."""
    words = shlex.split(SERVICES["spark-worker"]["command"])
    cores = int(words[words.index("--cores") + 1])
    memory = int(words[words.index("--memory") + 1].removesuffix("g"))
    settings = [conf(SERVICES[name]) for name in ("router", "optimizer")]
    assert SERVICES["spark-worker"]["deploy"]["replicas"] == 2
    assert sum(int(each["spark.cores.max"]) for each in settings) <= cores
    # With one core in an executor, or one in all.
    executors = [(int(each["spark.cores.max"]), each["spark.executor.memory"]) for each in settings]
    assert sum(number * int(size.removesuffix("g")) for number, size in executors) <= memory


def test_drivers_and_workers_share_the_checkpoints() -> None:
    """At the same place, which the image has made for the user that it runs as."""
    for name in ("router", "optimizer", "spark-worker"):
        assert "checkpoints:/checkpoints" in SERVICES[name]["volumes"]
    for name in ("router", "optimizer"):
        context = parse(shlex.split(SERVICES[name]["command"])[1:], SERVICES[name]["environment"])
        assert context.params["checkpoint"] == f"/checkpoints/{name}"
    made = " ".join(rest for name, rest in instructions() if name == "RUN")
    assert re.search(r"mkdir /checkpoints\b.*chown branchline:branchline /checkpoints\b", made)


INSTRUCTIONS = {
    *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "HEALTHCHECK", "RUN", "USER", "VOLUME", "WORKDIR"),
}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's, each with the rest of its line; lines that go on are joined."""
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    whole = "\n".join(line for line in lines if not line.lstrip().startswith("#")).replace("\\\n", " ")
    return [
        (line.split()[0], line.split(maxsplit=1)[1].strip()) for line in whole.splitlines() if line.strip()
    ]


def test_the_dockerfile_can_be_read() -> None:
    """It begins with an image, has only instructions that there are, and lists in brackets are lists."""
    found = instructions()
    assert found[0][0] == "FROM" and {name for name, _ in found} <= INSTRUCTIONS
    for name, rest in found:
        if name in ("CMD", "ENTRYPOINT", "VOLUME"):
            assert all(isinstance(each, str) for each in yaml.safe_load(rest)), rest
        if name == "RUN":
            done = subprocess.run(["sh", "-n", "-c", rest], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def copied() -> list[str]:
    """What the image is made of, from the repository."""
    found = []
    for name, rest in instructions():
        words = [word for word in rest.split() if not word.startswith("--chmod")]
        if name == "COPY" and not words[0].startswith("--from"):
            found += words[:-1]
    return found


def test_what_is_copied_is_there_and_is_sent_to_be_built() -> None:
    """Every source exists, none is ignored, and all that the package is made of is among them."""
    ignore = [
        line for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] != "#"
    ]
    kept = [line.removeprefix("!") for line in ignore if line.startswith("!")]
    assert ignore[0] == "*"
    for source in copied():
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, each) for each in kept), source
    assert set(kept) == set(copied())
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    assert {folder.partition("/")[0] for folder in packages.values()} <= set(copied())
    assert {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "constraints.txt"} <= set(
        copied()
    )


def test_stages_are_named_before_they_are_copied_from() -> None:
    """And what comes from another stage is where its image has it, as the path to Java says."""
    found = instructions()
    stages = [rest.split(" AS ")[1] for name, rest in found if name == "FROM" and " AS " in rest]
    froms = re.findall(r"--from=(\S+)", " ".join(rest for name, rest in found if name == "COPY"))
    assert froms == stages == ["java"]
    assert environment()["JAVA_HOME"] == "/opt/java/openjdk"
    assert any(
        rest.endswith(f"{environment()['JAVA_HOME']} {environment()['JAVA_HOME']}") for _, rest in found
    )


def environment() -> dict[str, str]:
    given = " ".join(rest for name, rest in instructions() if name == "ENV")
    return dict(word.split("=", 1) for word in shlex.split(given))


def test_the_image_has_the_versions_that_we_need() -> None:
    """Its Python and Java are new enough, and Spark is where that Python keeps its packages."""
    bases = [rest for name, rest in instructions() if name == "FROM"]
    java = re.match(r"eclipse-temurin:(\d+)\.", bases[0])
    python = re.match(r"python:((\d+)\.(\d+))-", bases[-1])
    assert java and int(java[1]) >= OLDEST_MAJOR
    assert python and (int(python[2]), int(python[3])) >= (3, 11)
    assert environment()["SPARK_HOME"] == f"/usr/local/lib/python{python[1]}/site-packages/pyspark"


def test_the_image_does_not_run_as_root() -> None:
    """It is another user from before the jars are fetched, which are that user's, to the end."""
    names = [(name, rest) for name, rest in instructions()]
    user = names.index(("USER", "branchline"))
    assert [rest for name, rest in names if name == "USER"] == ["branchline"]
    assert user < names.index(("RUN", "branchline setup")) < names.index(("CMD", '["branchline", "--help"]'))
    assert f"mkdir /checkpoints {environment()[HOME_VARIABLE]}" in " ".join(rest for _, rest in names)


def entrypoint(folder: Path, *words: str, **variables: str) -> list[str]:
    """What the container's script runs, with a Java that only tells how it was called."""
    java = folder / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    done = subprocess.run(
        [DOCKER / "entrypoint.sh", *words],
        env={"PATH": f"{folder}:{os.environ['PATH']}", **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_entrypoint_runs_what_it_is_given(tmp_path: Path) -> None:
    """Word for word; the script is one that can be run, and the image has it under that name."""
    assert entrypoint(tmp_path, "printf", "%s|", "a b", "*", "") == ["a b|*||"]
    assert ("ENTRYPOINT", '["entrypoint.sh"]') in instructions()


def test_the_entrypoint_makes_an_executor_of_what_kubernetes_says(tmp_path: Path) -> None:
    """All options of the executor's class, which is in Spark's jars, and Java's own in their order."""
    told = {
        "SPARK_HOME": "/spark",
        "SPARK_EXECUTOR_MEMORY": "2g",
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
        "SPARK_EXECUTOR_ID": "7",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "exec-7",
        **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number} x" for number in range(11)},
    }
    words = entrypoint(tmp_path, "executor", **told)
    assert words[:11] == [f"-Dn={number} x" for number in range(11)]
    assert words[11:15] == ["-Xms2g", "-Xmx2g", "-cp", "/spark/conf:/spark/jars/*"]
    assert in_jars("spark-kubernetes", words[15])
    assert dict(zip(words[16::2], words[17::2], strict=True)) == {
        "--driver-url": told["SPARK_DRIVER_URL"],
        "--executor-id": "7",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.7",
        "--resourceProfileId": "0",
        "--podName": "exec-7",
    }
