"""A kernel's fingerprint changes with everything that goes into it, and with nothing else."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from typing import Any

import numba
import pytest

from branchline.kafka import record_kernels, word_kernels
from branchline.kafka.record_kernels import scan_records
from branchline.routing.compiled import documents, memory, tokens
from branchline.routing.compiled.freshness import fingerprint
from branchline.routing.compiled.paths import bucket_of


def another(function: Any) -> Callable[..., object]:
    namespace: dict[str, Any] = {}
    exec("def replaced(at): return at + 17", namespace)
    replaced: Callable[..., object] = namespace["replaced"]
    return replaced


CHANGES: list[tuple[Any, str, Callable[[Any], object]]] = [
    (tokens, "_DIGITS_MAX", lambda value: value + 1),
    (tokens, "_decode_escape", another),
    (tokens, "_HEX", lambda value: value + 1),
    (documents, "_ARRAY", lambda value: value - 1),
    (documents, "read_string", another),
    (word_kernels, "_PLUS_JSON", lambda value: value[::-1]),
    (memory, "_pointer", another),
    (memory, "_BYTES", lambda value: "<32 x i8>"),
    (record_kernels, "read_structured", another),
]


@pytest.mark.parametrize(("module", "name", "change"), CHANGES, ids=[name for _, name, _ in CHANGES])
def test_a_change_anywhere_below_a_kernel_is_seen(
    module: Any, name: str, change: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In constants, in parts of parts, in other modules, and in what writes instructions."""
    before = fingerprint(scan_records)
    assert fingerprint(scan_records) == before
    monkeypatch.setattr(module, name, change(getattr(module, name)))
    assert fingerprint(scan_records) != before


@pytest.mark.parametrize("kernel", [scan_records, bucket_of])
def test_what_is_kept_is_kept_with_the_whole_fingerprint(kernel: Any) -> None:
    """It is part of the stamp that kept code is compared with, and knows all of the kernel's file."""
    assert kernel._cache._cache_file._source_stamp[1] == fingerprint(kernel)


@pytest.mark.parametrize(
    "kept", [b"cbranchline.routing.gone\nGone\n.", b"cbuiltins\nGone\n.", b"", b"\x80\x04]"]
)
def test_what_another_version_has_kept_counts_for_nothing(
    kept: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its index may name classes that have moved since, or be cut off."""
    cache = bucket_of._cache._cache_file  # type: ignore[attr-defined]
    index = tmp_path / "kept.nbi"
    index.write_bytes(pickle.dumps(numba.__version__) + kept)
    monkeypatch.setattr(cache, "_index_path", str(index))
    assert cache._load_index() == {}


def test_another_process_finds_the_same_fingerprint() -> None:
    """Else nothing that was kept would ever be used."""
    program = (
        "from branchline.routing.compiled.freshness import fingerprint\n"
        "from branchline.kafka.record_kernels import scan_records\n"
        "print(fingerprint(scan_records))"
    )
    other = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == fingerprint(scan_records)
