"""Looks at what is installed: is it what is pinned, whole, and under a licence that we can live with?

    python tests/audit.py

Every distribution that the product and its tools need is pinned in `constraints.txt` and installed at that
version; nothing is pinned that nobody needs; nothing comes from an address of its own; what each needs is
there at a version that it takes; and each has a licence from a short list. Whether a version is known to be
vulnerable, or was withdrawn, only an index can say: that is not looked at here.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PRODUCT = "branchline"

TOOLS = {"pip", "setuptools", "wheel"}
"""What makes and fills a virtual environment: of the interpreter, not ours to pin."""

ALLOWED = (
    r"Apache[ -](Software License[ -]?)?(License,? )?(Version )?2(\.0)?",
    r"Apache (Software )?License(, Version 2\.0)?",
    r"Apache-2\.0( WITH LLVM-exception)?",
    r"MIT( License)?",
    r"MIT-CMU|HPND|Historical Permission Notice and Disclaimer \(HPND\)",
    r"BSD([ -][23]-Clause)?( License)?|BSD-[23]-Clause|3-Clause BSD License|0BSD",
    r"ISC License \(ISCL\)|ISC",
    r"PSF-2\.0|Python Software Foundation License|Python-2\.0",
    r"Mozilla Public License 2\.0 \(MPL 2\.0\)|MPL-2\.0",
    r"Zlib|CC0-1\.0|OFL-1\.1|Unicode-3\.0|CNRI-Python",
)
"""Licences that let us use and pass on what we depend on: permissive ones, and MPL for whole files."""
NO_LICENCES = {"License :: OSI Approved", "License :: DFSG approved"}
"""Classifiers that praise a licence and name none."""
_ALLOWED = re.compile("|".join(f"(?:{each})" for each in ALLOWED), re.IGNORECASE)


def pins(text: str) -> Iterator[tuple[str, str | None]]:
    """The names in a constraints file with their versions; None for one that is not pinned to one."""
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        if "://" in line or " @ " in line or line.startswith("-"):
            yield line, None
            continue
        name, equals, version = line.partition("==")
        yield canonicalize_name(name.strip()), version.strip() if equals else None


def by_name(found: Iterable[Distribution]) -> dict[str, Distribution]:
    return {canonicalize_name(each.name): each for each in found}


def needed(declared: Iterable[str], installed: Mapping[str, Distribution]) -> dict[str, set[str]]:
    """All that is needed if this is declared, each with who needs it."""
    wanted = [(Requirement(each), PRODUCT) for each in declared]
    found: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    while wanted:
        requirement, by = wanted.pop()
        name = canonicalize_name(requirement.name)
        found.setdefault(name, set()).add(by)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen or name not in installed:
                continue
            seen.add((name, extra))
            for text in installed[name].requires or ():
                inner = Requirement(text)
                if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                    wanted.append((inner, name))
    return found


def licence_of(distribution: Distribution) -> list[str]:
    """The licences that it says it is under; all of them must be allowed, but for those to choose from."""
    about = distribution.metadata
    expression = about.get("License-Expression")
    if expression:
        return [part for part in re.split(r"\s+(?:AND|OR)\s+|[()]", expression) if part.strip()]
    classified = [
        each.rpartition(" :: ")[2]
        for each in about.get_all("Classifier") or ()
        if each.startswith("License :: ") and each not in NO_LICENCES
    ]
    said = about.get("License") or ""
    return classified or [said.strip().splitlines()[0] if said.strip() else "none"]


def faults(text: str, declared: Iterable[str], installed: Mapping[str, Distribution]) -> list[str]:
    """All that is wrong with the constraints' text, what is declared, and what is installed."""
    pinned = dict(pins(text))
    wanted = needed(declared, installed)
    found = [f"{name}: pinned to no version" for name, version in pinned.items() if version is None]
    if len(pinned) != len(list(pins(text))):
        found.append("constraints.txt: a name stands there twice")
    for name, by in sorted(wanted.items()):
        who = f"needed by {', '.join(sorted(by))}"
        if name not in installed:
            found.append(f"{name}: {who}, and not installed")
        elif name not in pinned:
            found.append(f"{name}: {who}, and not pinned: add {name}=={installed[name].version}")
    for name, distribution in sorted(installed.items()):
        if name in TOOLS or name == PRODUCT:
            continue
        if name not in wanted:
            found.append(f"{name}: installed, and nobody needs it")
        version = pinned.get(name)
        if version is not None and Version(version) != Version(distribution.version):
            found.append(f"{name}: pinned to {version}, and {distribution.version} is installed")
        if distribution.read_text("direct_url.json"):
            origin = json.loads(distribution.read_text("direct_url.json") or "{}").get("url", "")
            found.append(f"{name}: comes from an address of its own, {origin}")
        found += [
            f"{name}: its licence {licence!r} is not in the list"
            for licence in licence_of(distribution)
            if _ALLOWED.fullmatch(licence.strip()) is None
        ]
    found += [f"{name}: pinned, and nobody needs it" for name in sorted(pinned.keys() - wanted.keys())]
    found += sorted(conflicts(installed))
    return found


def conflicts(installed: Mapping[str, Distribution]) -> Iterator[str]:
    """What is installed at a version that somebody does not take: as `pip check` would say."""
    for name, distribution in installed.items():
        for text in distribution.requires or ():
            requirement = Requirement(text)
            other = installed.get(canonicalize_name(requirement.name))
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            if other is not None and not requirement.specifier.contains(other.version, prereleases=True):
                yield f"{name}: needs {requirement}, and {other.version} is installed"


def main() -> int:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    found = faults(text, declared, by_name(distributions()))
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
