"""What goes along with a job: the package in a file, and what executors are asked before they get to work."""

import json
import os
import socket
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spark_clusters import SPARK_HOME, foreign_python

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, MasterUnreachable
from branchline.streaming.executors import check_master, check_python
from branchline.streaming.fitness import LIBRARIES, faults, here
from branchline.streaming.images import FOLDER
from branchline.streaming.parcel import PACKAGES, digest, make_parcel
from branchline.streaming.session import LOCAL_CHECKPOINT, LOCAL_MASTER, SETTINGS, settings_for

ROOT = Path(__file__).parent.parent.parent

_READS_FILTERS = """
import json, branchline.streaming.daemon, branchline.streaming.parcel as parcel
from branchline.routing.spellings import read_filter
from branchline.routing.codes import Rejection
texts = {"sql": "a = 1", "cesql": "a = 1", "eventbridge": '{"a": [1]}'}
texts["cloudevents"] = '{"exact": {"a": "x"}}'
refused = [name for name, text in texts.items() if isinstance(read_filter(name, text), Rejection)]
print(json.dumps([parcel.__file__, parcel.digest(*parcel.PACKAGES), parcel.program(), refused]))
"""

_LOOKS = """
import json, dataclasses, branchline.streaming.daemon
from pathlib import Path
from branchline.streaming.fitness import look
[found] = look(("/no/such/file",), Path("/no/such/folder/probe"), "127.0.0.1:1,SSL://127.0.0.1:2", iter(()))
print(json.dumps(dataclasses.asdict(found)))
"""


_IMPORTS = """
import json, branchline.streaming.daemon
from branchline.kafka import events
from branchline.routing import filters
from branchline.routing.compiled.paths import bucket_of
print(json.dumps([events.__file__, filters.__file__, bucket_of._cache.cache_path]))
"""


def run(python: Path, parcel: Path, folder: Path, code: str, *more: Path) -> Any:
    """What the code prints there, with the path that Spark gives a worker, in the folder of the parcel."""
    path = os.pathsep.join([parcel.name, *map(str, more)])
    done = subprocess.run(
        [python, "-c", code],
        cwd=parcel.parent,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": str(folder), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_parcel_holds_every_file_of_its_packages(tmp_path: Path) -> None:
    """It has what a wheel has of these packages, and the same content makes the same file."""
    parcel = make_parcel(tmp_path)
    there = {
        f"branchline/{file.relative_to(ROOT).as_posix()}": file.read_bytes()
        for package in PACKAGES
        for file in (ROOT / package.partition(".")[2]).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(parcel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        assert {name: archive.read(name) for name in names} == there
    assert parcel.name == f"branchline-{digest(*PACKAGES)}.zip"
    (tmp_path / "again").mkdir()
    assert make_parcel(tmp_path / "again").read_bytes() == parcel.read_bytes()


def test_a_python_without_the_package_has_it_from_the_parcel(tmp_path: Path) -> None:
    """By its bare name in the working folder, grammars and all; and it is known there as the same program."""
    parcel = make_parcel(tmp_path)
    python = foreign_python(tmp_path / "environment")
    file, packages, program, refused = run(python, parcel, tmp_path, _READS_FILTERS)
    assert file.startswith(str(parcel)) and refused == []
    assert (packages, program) == (digest(*PACKAGES), digest("branchline.routing"))


def test_an_executor_that_lacks_everything_can_still_say_so(tmp_path: Path) -> None:
    """A bare Python with Spark's own files: the daemon's imports do not stop it, and each lack is named."""
    parcel = make_parcel(tmp_path)
    python = foreign_python(tmp_path / "environment", libraries=False)
    found = run(python, parcel, tmp_path, _LOOKS, *(SPARK_HOME / "python" / "lib").glob("*.zip"))
    named = set(faults(replace(here(), **{**found, "missing": tuple(found["missing"])}), here()))
    lacking = {f"{name} is missing" for name in LIBRARIES if name != "pyspark"}
    assert lacking < named
    assert {each for each in named if "is missing" not in each} == {
        "/no/such/file is not there",
        "Kafka cannot be reached from there",
        "the folder of the checkpoint is not the same as here, or cannot be written to",
    }


def test_executors_of_a_host_share_what_they_compile(tmp_path: Path) -> None:
    """Wherever each has its copy of the parcel, code is in one place, and what is compiled beside it."""
    found = []
    for name in ("one", "other"):
        place = tmp_path / name
        place.mkdir()
        found.append(run(foreign_python(tmp_path / "environment"), make_parcel(place), tmp_path, _IMPORTS))
    assert found[0] == found[1]
    assert all(Path(each).is_relative_to(tmp_path / f"branchline-{os.getuid()}") for each in found[0])


@pytest.mark.parametrize("others", [0o777, 0o755])
def test_nothing_is_imported_from_where_others_may_write(others: int, tmp_path: Path) -> None:
    """Code is then taken from the parcel."""
    shared = tmp_path / f"branchline-{os.getuid()}"
    shared.mkdir()
    shared.chmod(others)
    parcel = make_parcel(tmp_path)
    events, filters, _ = run(foreign_python(tmp_path / "environment"), parcel, tmp_path, _IMPORTS)
    assert parcel.name in events and parcel.name in filters and not list(shared.iterdir())


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, []),
        ({"python": "CPython 3.9"}, [f"Python CPython 3.9 is not {here().python}"]),
        ({"versions": {**here().versions, "lark": None}}, ["lark is missing"]),
        ({"package": "another"}, ["another version of branchline is imported there"]),
        (
            {"versions": {**here().versions, "pandas": "1.0"}},
            [f"pandas 1.0 is not {here().versions['pandas']}"],
        ),
    ],
)
def test_executors_are_as_this_machine(other: dict[str, Any], says: list[str]) -> None:
    """The same Python and the same libraries, version for version; what is not is named."""
    assert list(faults(replace(here(), **other), here())) == says


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_master_that_does_not_listen_is_an_error_at_once(listening: int) -> None:
    """One of several is enough; other kinds of masters are for Spark to find."""
    check_master(f"spark://127.0.0.1:1,127.0.0.1:{listening}")
    for master in ("local[2]", "yarn", "k8s://https://127.0.0.1:1"):
        check_master(master)
    for master in ("spark://127.0.0.1:1", "spark://127.0.0.1:0", "spark://127.0.0.1:99999"):
        with pytest.raises(MasterUnreachable, match="no Spark master") as refused:
            check_master(master)
        assert refused.value.hint


def test_the_executors_python_must_be_on_the_drivers_machine_too(tmp_path: Path) -> None:
    """Spark starts it once beside the driver: a path that is not there is refused, a bare name is not."""
    check_python({"spark.pyspark.python": "python3"})
    check_python({"spark.pyspark.python": str(foreign_python(tmp_path / "environment"))})
    with pytest.raises(ConfigError, match=r"\./environment/bin/python"):
        check_python({"spark.pyspark.python": "./environment/bin/python"})


def test_what_executors_elsewhere_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parcel goes before a given path, variables that executors read are passed on, the driver's address
    is not the loopback one, and what is given wins; on this machine nothing of that is done.
    """
    monkeypatch.setenv(FOLDER, "/var/images")
    monkeypatch.setenv("BRANCHLINE_HOME", "/home/me")
    given = {"spark.executorEnv.PYTHONPATH": "more", "spark.sql.streaming.stopTimeout": "5s"}
    remote = settings_for("spark://master:7077", False, given, Path("/tmp/branchline-1.zip"))
    assert remote["spark.executorEnv.PYTHONPATH"] == "branchline-1.zip:more"
    assert remote["spark.executorEnv.BRANCHLINE_IMAGES"] == "/var/images"
    assert remote["spark.sql.streaming.stopTimeout"] == "5s"
    assert not {*LOCAL_MASTER, *LOCAL_CHECKPOINT, "spark.executorEnv.BRANCHLINE_HOME"} & remote.keys()
    assert settings_for("local[*,4]", True, {}) == {**SETTINGS, **LOCAL_CHECKPOINT, **LOCAL_MASTER}


def test_files_that_a_client_needs_are_known() -> None:
    """Those that client properties name, which executors must have too."""
    properties = {"ssl.ca.location": "/ca.pem", "ssl.keystore.location": "/me.p12", "sasl.username": "me"}
    assert Cluster("", properties).files() == ("/ca.pem", "/me.p12")
    assert Cluster("").files() == ()
