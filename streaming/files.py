"""Small files on whatever file system holds a checkpoint, through Spark's own Hadoop client.

A checkpoint on this machine's own disk is a folder like any other, for which no Spark need be started.
"""

from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession


class Folder(Protocol):
    """A checkpoint's folder, wherever it is."""

    def read(self, name: str) -> bytes | None:
        """What the file holds, or None if there is no such file."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write the file whole: it is never seen half."""
        ...

    def names(self, folder: str = "") -> list[str]:
        """What is in it, or in a folder within; nothing if there is no such folder."""
        ...


class LocalFolder:
    """A folder on this machine's disk."""

    def __init__(self, location: str) -> None:
        path = unquote(urlsplit(location).path) if location.startswith("file:") else location
        self._path = Path(path)

    def read(self, name: str) -> bytes | None:
        file = self._path / name
        return file.read_bytes() if file.exists() else None

    def write(self, name: str, content: bytes) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        temporary = self._path / f"{name}.new"
        temporary.write_bytes(content)
        temporary.replace(self._path / name)

    def names(self, folder: str = "") -> list[str]:
        path = self._path / folder
        return sorted(file.name for file in path.iterdir()) if path.is_dir() else []


class SparkFolder:
    """A folder on whatever file system Spark reaches."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark, self._path = spark, location.rstrip("/")

    def read(self, name: str) -> bytes | None:
        return read_bytes(self._spark, f"{self._path}/{name}")

    def write(self, name: str, content: bytes) -> None:
        write_bytes(self._spark, f"{self._path}/{name}", content)

    def names(self, folder: str = "") -> list[str]:
        files, place = _locate(self._spark, f"{self._path}/{folder}".rstrip("/"))
        found = files.listStatus(place) if files.exists(place) else []
        return sorted(status.getPath().getName() for status in found)


def read_bytes(spark: SparkSession, path: str) -> bytes | None:
    """What the file holds, or None if there is no such file."""
    files, place = _locate(spark, path)
    if not files.exists(place):
        return None
    stream = files.open(place)
    try:
        return bytes(stream.readAllBytes())
    finally:
        stream.close()


def read_text(spark: SparkSession, path: str) -> str | None:
    """The file's text, or None if there is no such file."""
    found = read_bytes(spark, path)
    return None if found is None else found.decode()


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write the file whole: under another name first, so that it is never seen half."""
    write_bytes(spark, path, text.encode())


def write_bytes(spark: SparkSession, path: str, content: bytes) -> None:
    """Write the file whole: under another name first, so that it is never seen half."""
    files, place = _locate(spark, path)
    _, temporary = _locate(spark, path + ".new")
    fs: Any = spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    stream = files.create(temporary, True)
    try:
        stream.write(content)
    finally:
        stream.close()
    rename = getattr(fs, "Options$Rename")
    options = spark.sparkContext._gateway.new_array(rename, 1)  # type: ignore[union-attr]
    options[0] = rename.OVERWRITE
    context = fs.FileContext.getFileContext(place.toUri(), files.getConf())
    context.rename(files.makeQualified(temporary), files.makeQualified(place), options)


def _locate(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm: Any = spark.sparkContext._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    return place.getFileSystem(configuration), place
