"""The audit of what is installed finds each fault that is planted, and nothing where there is none."""

from importlib.metadata import distributions
from pathlib import Path

import audit
import pytest

PINS = "one==1.0\ntwo==2.0\n"
ONE = {"Name": "one", "Version": "1.0", "License-Expression": "MIT", "Requires-Dist": "two>=2"}
TWO = {
    "Name": "two",
    "Version": "2.0",
    "Classifier": "License :: OSI Approved :: Apache Software License",
}


def found(
    folder: Path, *installed: dict[str, str], text: str = PINS, declared: str = "one", url: bool = False
) -> list[str]:
    for about in installed:
        info = folder / f"{about['Name']}-{about['Version']}.dist-info"
        info.mkdir()
        lines = [f"{name}: {value}" for name, value in {"Metadata-Version": "2.4", **about}.items()]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        if url:
            (info / "direct_url.json").write_text('{"url": "https://example.org/x.whl"}')
    return audit.faults(text, [declared], audit.by_name(distributions(path=[str(folder)])))


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    """Pinned, installed, needed, licensed; what is needed by what is needed too."""
    assert found(tmp_path, ONE, TWO) == []


@pytest.mark.parametrize(
    ("about", "options", "said"),
    [
        ([ONE, TWO], {"text": "one==1.0\n"}, "two: needed by one, and not pinned"),
        ([ONE, TWO], {"text": "one==1.0\ntwo>=2\n"}, "two>=2: pinned to no version"),
        ([ONE, TWO], {"text": PINS + "two @ https://example.org/two.whl\n"}, "pinned to no version"),
        ([ONE, TWO], {"text": PINS + "two==2.0\n"}, "a name stands there twice"),
        ([ONE, TWO], {"text": PINS + "three==3\n"}, "three: pinned, and nobody needs it"),
        ([ONE], {}, "two: needed by one, and not installed"),
        ([ONE, TWO, {**TWO, "Name": "three"}], {}, "three: installed, and nobody needs it"),
        ([ONE, {**TWO, "Version": "2.1"}], {}, "two: pinned to 2.0, and 2.1 is installed"),
        ([{**ONE, "Requires-Dist": "two<2"}, TWO], {}, "one: needs two<2, and 2.0 is installed"),
        ([ONE, TWO], {"url": True}, "one: comes from an address of its own"),
        ([{**ONE, "License-Expression": "MIT AND GPL-3.0-only"}, TWO], {}, "one: its licence 'GPL-3.0-only'"),
        ([ONE, {"Name": "two", "Version": "2.0"}], {}, "two: its licence 'none'"),
    ],
)
def test_each_fault_is_found(
    about: list[dict[str, str]], options: dict[str, object], said: str, tmp_path: Path
) -> None:
    """And said in words that name what is wrong."""
    assert any(said in line for line in found(tmp_path, *about, **options)), said  # type: ignore[arg-type]
