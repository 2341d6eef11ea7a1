"""The package out of its parcel, in one place for all executors of a host.

What compiles loops keeps them beside the code. In a parcel there is no beside, and each executor has a copy
of it in a working folder of its own: so every executor compiled everything, the one that stands in for a lost
one among them, which took longer than all else. Now whoever comes first unpacks the parcel into a folder of
the host that is named by its content, and what one has compiled the next one loads.

The folder is this user's own. If it cannot be made, or others could have written there, code is taken from
the parcel as before.
"""

import os
import stat
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path


def unpack(module: str) -> None:
    """Let whatever is imported from now on come from the folder, if the module's file is in a parcel."""
    parcel = next((each for each in Path(module).parents if each.suffix == ".zip" and each.is_file()), None)
    if parcel is not None:
        with suppress(OSError):
            sys.path.insert(0, str(_unpacked(parcel)))


def _unpacked(parcel: Path) -> Path:
    """The folder; raises OSError if there is none that can be trusted."""
    folder = Path(tempfile.gettempdir()) / f"branchline-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
        raise PermissionError(f"{folder} is not ours alone")
    code = folder / parcel.stem
    if not code.exists():
        coming = Path(tempfile.mkdtemp(dir=folder))
        with zipfile.ZipFile(parcel) as archive:
            archive.extractall(coming)
        with suppress(OSError):  # somebody else was quicker
            coming.rename(code)
    return code
