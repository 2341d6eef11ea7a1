"""The package itself as a file that goes along with a job, for executors that have never heard of it.

Theory of operation. The modules are taken from where this process imports them, so it does not matter how the
package was installed: as a wheel, in place, or itself from such a file. The file is named by its content, and
the same content gives the same bytes; so it is made once, and two versions never meet under one name. Spark
brings it into the working folder of every executor before the first task there, and the Python path of the
workers (`session.py`) has its bare name.
"""

import functools
import hashlib
import importlib
import io
import os
import zipfile
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path

PACKAGES = ("branchline.routing", "branchline.kafka", "branchline.streaming")
"""What an executor may import; the command itself stays where it is."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can tell."""


def digest(*packages: str) -> str:
    """What tells these packages, as they are here, from every other version of them."""
    found = hashlib.blake2b(digest_size=8)
    for name, content in _files(packages):
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def make_parcel(folder: Path) -> Path:
    """The package in a file in this folder."""
    path = folder / f"branchline-{digest(*PACKAGES)}.zip"
    if not path.exists():
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_bytes(_zipped())
        temporary.replace(path)
    return path


def _zipped() -> bytes:
    buffer = io.BytesIO()
    folders: set[str] = set()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _files(PACKAGES):
            parts = name.split("/")
            for depth in range(1, len(parts)):
                # Python sees a package without an __init__.py in a zip only if its folder is listed.
                above = "/".join(parts[:depth]) + "/"
                if above not in folders:
                    folders.add(above)
                    archive.writestr(zipfile.ZipInfo(above, _EPOCH), b"")
            about = zipfile.ZipInfo(name, _EPOCH)
            about.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(about, content)
    return buffer.getvalue()


def _files(packages: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Every file of the packages, by its name from the top, in order."""
    for package in packages:
        yield from _below(package.replace(".", "/"), _folder(package))


def _folder(package: str) -> Traversable:
    """Where a package is imported from. (`importlib.resources` knows no package without an __init__.py that
    is in a zip, or is installed in place.)
    """
    for place in map(Path, importlib.import_module(package).__path__):
        if place.is_dir():
            return place
        for above in place.parents:
            if above.is_file():
                return zipfile.Path(above, f"{place.relative_to(above).as_posix()}/")
    raise FileNotFoundError(f"{package} is in no folder and in no zip file")


def _below(name: str, folder: Traversable) -> Iterator[tuple[str, bytes]]:
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        if each.is_file():
            if not each.name.endswith(".pyc"):
                yield f"{name}/{each.name}", each.read_bytes()
        elif each.name != "__pycache__":
            yield from _below(f"{name}/{each.name}", each)


@functools.cache
def program() -> str:
    """What tells this version of the routing core from every other one."""
    return digest("branchline.routing")
