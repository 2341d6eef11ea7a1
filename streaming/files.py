"""Small files on whatever file system holds a checkpoint, through Spark's own Hadoop client."""

from typing import Any

from pyspark.sql import SparkSession


def read_text(spark: SparkSession, path: str) -> str | None:
    """The file's text, or None if there is no such file."""
    files, place = _locate(spark, path)
    if not files.exists(place):
        return None
    stream = files.open(place)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write the file whole: under another name first, so that it is never seen half."""
    files, place = _locate(spark, path)
    _, temporary = _locate(spark, path + ".new")
    fs: Any = spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    stream = files.create(temporary, True)
    try:
        stream.write(text.encode())
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
