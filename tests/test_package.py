"""The package's shape: who imports whom, what is not there, and what a wheel holds."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("routing", "kafka", "streaming", "ops")
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]

# What routing may use beside the standard library and itself.
ROUTING_LIBRARIES = {"lark", "numba", "numpy", "pyarrow"}

# Clocks, randomness and the outside world: what the pure core must not touch.
IMPURE = {
    *("time", "random", "secrets", "uuid"),
    *("os", "io", "pathlib", "shutil", "tempfile", "socket", "selectors", "subprocess"),
    *("threading", "multiprocessing", "asyncio", "urllib", "http"),
}


def sources(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, f"no Python files in {folder}"
    return found


def imports(file: Path) -> Iterator[tuple[str, ...]]:
    """What a file imports, wherever in it, as paths of names: relative imports are spelled out."""
    package = ("branchline", *file.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(name.name.split(".")) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            # `from branchline import kafka` imports branchline.kafka.
            yield from ((*module, name.name) for name in node.names)


def test_routing_imports_only_what_is_pure() -> None:
    """Routing imports the standard library, numba, numpy, lark, pyarrow and itself, and nothing else."""
    for file in sources("routing"):
        for path in imports(file):
            if path[0] == "branchline":
                assert path[1] == "routing", f"{file.name} imports {'.'.join(path)}"
            else:
                known = path[0] in sys.stdlib_module_names or path[0] in ROUTING_LIBRARIES
                assert known, f"{file.name} imports {'.'.join(path)}"


def test_routing_touches_no_clock_no_randomness_and_no_outside_world() -> None:
    """Routing imports no module for time, random numbers, files, processes or networks, nor opens a file."""
    for file in sources("routing"):
        assert not {path[0] for path in imports(file)} & IMPURE, file.name
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not names & {"open", "__import__", "input"}, file.name


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("kafka", {"branchline.streaming", "branchline.ops", "pyspark", "py4j"}),
        ("streaming", {"branchline.ops"}),
    ],
)
def test_imports_go_one_way(folder: str, forbidden: set[str]) -> None:
    """Kafka imports neither streaming, ops nor Spark; streaming does not import ops."""
    for file in sources(folder):
        for path in imports(file):
            heads = {".".join(path[:length]) for length in (1, 2)}
            assert not heads & forbidden, f"{file.name} imports {'.'.join(path)}"


@pytest.mark.parametrize("file", ["kafka/__init__.py", "branchline/__init__.py", "__init__.py"])
def test_no_package_file_where_it_would_shadow(file: str) -> None:
    """`branchline` and `branchline.kafka` have no __init__.py: the first would hide the second in an editable
    install, and the second would shadow the client library named kafka in processes started here.
    """
    assert not (ROOT / file).exists()


def test_every_package_folder_is_listed_and_mapped() -> None:
    """Each folder with Python files is in pyproject's packages and mapped to where it is, and no other is."""
    folders = {file.parent.relative_to(ROOT) for folder in FOLDERS for file in sources(folder)}
    expected = {".".join(("branchline", *folder.parts)): folder.as_posix() for folder in folders}
    assert sorted(SETUPTOOLS["packages"]) == sorted(expected)
    assert SETUPTOOLS["package-dir"] == expected


def test_every_top_level_package_is_known_here() -> None:
    """Every top-level folder with Python files is one of the packages, or benchmarks or tests."""
    tops = {file.parent.name for file in ROOT.glob("[!.]*/*.py")}
    assert tops - {"build", "dist"} == {*FOLDERS, "benchmarks", "tests"}


def test_a_wheel_holds_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in the package folders, also grammars, settings and type markers, is in a wheel's file list.

    The list is asked of setuptools' own build step with pyproject's tables. Building a wheel would need the
    network, for the setuptools that pyproject asks for.
    """
    setuptools = pytest.importorskip("setuptools", reason="the mapping is checked above")
    monkeypatch.chdir(ROOT)
    distribution = setuptools.Distribution(
        {
            "script_name": "setup.py",
            "packages": SETUPTOOLS["packages"],
            "package_dir": SETUPTOOLS["package-dir"],
            "package_data": {
                "" if name == "*" else name: patterns for name, patterns in SETUPTOOLS["package-data"].items()
            },
        }
    )
    build = distribution.get_command_obj("build_py")
    build.build_lib = str(tmp_path)
    build.ensure_finalized()
    listed = {Path(file).relative_to(tmp_path) for file in build.get_outputs(include_bytecode=False)}
    there = {
        Path("branchline") / file.relative_to(ROOT)
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert listed == there
