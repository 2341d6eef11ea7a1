"""Images of shards as local files: what any worker on the host maps, to be warm without building anything.

Theory of operation. An image (`routing/shard.py`) is what all shards of a job share at one point of their
control: flat arrays that are read where they lie. It is written to a file that is named by that point, its
sequence number and its token, in a folder of the job below the user's own temporary folder. Whoever finds the
file maps it; then workers on the host share its memory. The state store stays the truth: a file that is not
there, is damaged, or belongs to another user or another program is as if it had never been, and the shard is
built from its state.

A file is written under another name first and then renamed, so it is never seen half, however many write it
at once; usually one does, since whoever begins claims it. It is written by a process forked for it, which
sees the shard as it was then, while the worker goes on. Nothing that goes wrong here stops a batch: a full
disk means that there is no file. Nothing in a file is code, and nothing is unpickled.

Where subscriptions change all the time, every batch would be worth an image, and writing them would never
end. So one is written at a time on a host, and after it nobody writes for some times what it took to make.
The price is paid by a cold worker, which then obeys more of the log.

    head         magic, format version, count of parts; sequence number, token
    sizes        of each part in bytes: the facts that are not in arrays, then the buffers
    checksum     CRC-32 of all before it
    parts        each at a multiple of 8 bytes; the first has a CRC-32 before it, buffers check themselves

Cost: opening is one pass over the file for the checksums, half a millisecond for each megabyte.
"""

import contextlib
import functools
import gc
import hashlib
import mmap
import os
import shutil
import stat
import struct
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from branchline.routing.prefix.layout import UnreadableTree
from branchline.routing.shard import Image, Job
from branchline.streaming.facts import pack, unpack
from branchline.streaming.parcel import program

FOLDER = "BRANCHLINE_IMAGES"
"""The environment variable that names the folder for images; without it, the temporary folder is used."""

KEPT = 2
"""Images of a job that are kept: the newest, and the one before it for whoever runs a batch again."""
CLAIM_S = 300.0
"""How long one who said that it writes an image is believed."""
REST = 4.0
"""After an image nobody writes one for so many times the processor time that it took: images of a job take a
fifth of a core at most."""
LEFTOVER_S = 7 * 86_400.0
"""How long the folder of a job that does not use it is left alone."""

_MAGIC, _FORMAT = b"BLim", 1
_HEAD = struct.Struct("<4sHHQ16s")
_SIZE = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
_ALIGNMENT = 8
_SUFFIX = ".image"


class Images:
    """The images of one job on this host."""

    def __init__(self, name: str, job: Job, folder: Path | None = None) -> None:
        """The name tells apart jobs that serve brokers of the same names."""
        self._named = hashlib.blake2b(repr((name, job)).encode(), digest_size=8).hexdigest()
        self._folder = folder
        self._writer: int | None = None
        self._claim: Path | None = None
        self._took_s = 0.0
        """Processor time that the last image took which was written aside from here."""
        self.counts: Counter[str] = Counter()
        """What happened here since somebody last looked."""

    def write_aside(self, sequence: int, token: bytes, make: Callable[[], Image | None]) -> bool:
        """Write the image of this point in a process of its own; False if it should be tried again later."""
        if self._is_writing() or self._is_soon():
            return False
        claimed = self._claimed(sequence, token)
        if claimed is None:
            return True
        try:
            writer = os.fork()
        except OSError:
            self.counts["images_unwritten"] += 1
            claimed.unlink(missing_ok=True)
            return True
        if writer:
            self._writer, self._claim = writer, claimed
            self.counts["images_written"] += 1
            return True
        try:
            # Nobody may wait for this process because it has the worker's sockets open, too.
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            gc.disable()
            os.nice(10)
            _write_claimed(claimed, sequence, token, make)
        finally:
            os._exit(0)

    def write(self, sequence: int, token: bytes, make: Callable[[], Image | None]) -> None:
        """Write the image of this point, and return when it is there."""
        claimed = self._claimed(sequence, token)
        if claimed is not None:
            try:
                _write_claimed(claimed, sequence, token, make)
                self.counts["images_written"] += 1
            except OSError:
                self.counts["images_unwritten"] += 1

    def finish(self) -> None:
        """Return when what is written aside is there."""
        if self._writer is not None:
            self._reap(0)

    def _is_writing(self) -> bool:
        return self._writer is not None and not self._reap(os.WNOHANG)

    def _reap(self, options: int) -> bool:
        """Whether the writer is gone; then, what it took is known, and its claim is nobody's any more."""
        assert self._writer is not None
        with contextlib.suppress(ChildProcessError):
            found, _, used = os.wait4(self._writer, options)
            if not found:
                return False
            self._took_s = used.ru_utime + used.ru_stime
        if self._claim is not None:
            self._claim.unlink(missing_ok=True)
        self._writer = self._claim = None
        return True

    def _is_soon(self) -> bool:
        """Whether somebody on this host is writing, or was a short while ago."""
        rest_s = REST * self._took_s
        try:
            folder = self._job_folder()
            if any(0 <= _age(path) < rest_s for path in folder.glob("*" + _SUFFIX)):
                return True
            return any(_age(path) <= CLAIM_S and _claimer_lives(path) for path in folder.glob("*.claim"))
        except OSError:
            return False

    def _claimed(self, sequence: int, token: bytes) -> Path | None:
        """The claim of whoever is to write this image; None if it is there, or another one has claimed it."""
        try:
            folder = self._private_folder()
            name = f"{sequence:020d}-{token.hex()}"
            if folder is None or (folder / (name + _SUFFIX)).exists():
                return None
            claim = folder / f"{name}.claim"
            return claim if _claim(claim) else None
        except OSError:
            self.counts["images_unwritten"] += 1
            return None

    def find(self, most: int) -> Iterator[tuple[int, bytes, Path]]:
        """The images of points up to a sequence number, the newest first."""
        try:
            folder = self._private_folder()
            names = [] if folder is None else sorted(folder.glob("*" + _SUFFIX), reverse=True)
        except OSError:
            return
        for path in names:
            sequence, _, token = path.stem.partition("-")
            if sequence.isdecimal() and int(sequence) <= most:
                yield int(sequence), bytes.fromhex(token), path

    def open(self, sequence: int, token: bytes, path: Path) -> Image | None:
        """The image in a file, None if it is not there or not what it should be."""
        try:
            image = _read(_mapped(path), sequence, token)
            os.utime(path.parent)
            return image
        except FileNotFoundError:
            return None
        except (OSError, UnreadableTree):
            self.damaged(path)
            return None

    def damaged(self, path: Path) -> None:
        """Count a file that cannot be used, and take it away."""
        self.counts["images_damaged"] += 1
        with contextlib.suppress(OSError):
            path.unlink()

    def _job_folder(self) -> Path:
        base = self._folder or Path(
            os.environ.get(FOLDER) or Path(tempfile.gettempdir()) / f"branchline-{os.getuid()}"
        )
        # An image holds what only the same program would make.
        return base / f"{self._named}-{program()}"

    def _private_folder(self) -> Path | None:
        """The job's folder, which nobody else can write to; None if there is no such."""
        folder = self._job_folder()
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = each.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
                self.counts["images_unwritten"] += 1
                return None
        return each


@functools.cache
def images_of(name: str, job: Job) -> Images:
    """The images of a job, the same for all its shards that this worker runs."""
    return Images(name, job)


def _write_claimed(claim: Path, sequence: int, token: bytes, make: Callable[[], Image | None]) -> None:
    try:
        image = make()
        if image is not None:
            _write(claim.parent, claim.stem + _SUFFIX, _parts(sequence, token, image))
    finally:
        claim.unlink(missing_ok=True)
    _tidy(claim.parent)


def _parts(sequence: int, token: bytes, image: Image) -> list[bytes | memoryview]:
    rest = pack(image.rest)
    parts = [_CHECKSUM.pack(zlib.crc32(rest)) + rest, *image.buffers]
    head = _HEAD.pack(_MAGIC, _FORMAT, len(parts), sequence, token)
    head += b"".join(_SIZE.pack(len(part)) for part in parts)
    return [head + _CHECKSUM.pack(zlib.crc32(head)), *parts]


def _write(folder: Path, name: str, parts: list[bytes | memoryview]) -> None:
    temporary = folder / f"{uuid4().hex}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
                file.write(bytes(-len(part) % _ALIGNMENT))
        temporary.rename(folder / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mapped(path: Path) -> memoryview:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            raise UnreadableTree("the file is not this user's own")
        if not about.st_size:
            raise UnreadableTree("the file is empty")
        # Whoever looks at the view keeps the map.
        return memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
    finally:
        os.close(descriptor)


def _read(data: memoryview, sequence: int, token: bytes) -> Image:
    if len(data) < _HEAD.size:
        raise UnreadableTree("the image is cut short")
    magic, version, count, *named = _HEAD.unpack_from(data)
    if (magic, version, named) != (_MAGIC, _FORMAT, [sequence, token]):
        raise UnreadableTree("the file is no image, or one of another point")
    end = _HEAD.size + count * _SIZE.size
    if len(data) < end + _CHECKSUM.size or _CHECKSUM.unpack_from(data, end)[0] != zlib.crc32(data[:end]):
        raise UnreadableTree("the head of the image is damaged")
    sizes = [_SIZE.unpack_from(data, _HEAD.size + place * _SIZE.size)[0] for place in range(count)]
    at = end + _CHECKSUM.size
    at += -at % _ALIGNMENT
    parts = []
    for size in sizes:
        parts.append(data[at : at + size])
        at += size + -size % _ALIGNMENT
    if at != len(data):
        raise UnreadableTree("the image is cut short, or longer than it was")
    rest = parts[0][_CHECKSUM.size :]
    if zlib.crc32(rest) != _CHECKSUM.unpack_from(parts[0])[0]:
        raise UnreadableTree("the facts in the image are damaged")
    return Image(parts[1:], unpack(bytes(rest)))


def _claim(path: Path) -> bool:
    """Say that this worker writes an image; False if another one has said so."""
    if _age(path) > CLAIM_S or not _claimer_lives(path):
        path.unlink(missing_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(str(os.getpid()))
    return True


def _claimer_lives(path: Path) -> bool:
    """Whether who made a claim may still be there; if that is wrong, an image is written twice."""
    try:
        claimer = path.read_text()
        if claimer.isdecimal():
            os.kill(int(claimer), 0)
    except (FileNotFoundError, PermissionError):
        return True
    except ProcessLookupError:
        return False
    return True


def _tidy(folder: Path) -> None:
    """Keep the newest images, and nothing that was left by those who are gone."""
    images = sorted(folder.glob("*" + _SUFFIX), key=_age)
    for path in images[KEPT:]:
        path.unlink(missing_ok=True)
    for path in [*folder.glob("*.tmp"), *folder.glob("*.claim")]:
        if _age(path) > CLAIM_S:
            path.unlink(missing_ok=True)
    for path in folder.parent.iterdir():
        if path != folder and _age(path) > LEFTOVER_S:
            shutil.rmtree(path, ignore_errors=True)


def _age(path: Path) -> float:
    """In seconds; of what is not there any more, none."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
