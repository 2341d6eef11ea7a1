"""The Spark session: how its Java is started."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from branchline.kafka.jars import Jars
from branchline.streaming.session import spark_archive

pytestmark = pytest.mark.spark


def test_spark_starts_from_its_archive(spark: SparkSession, jars: Jars) -> None:
    """With the class path of the session's own Java it fits; told to end where it does not, Java goes on."""
    gateway: Any = spark.sparkContext._gateway
    command = Path(f"/proc/{gateway.proc.pid}/cmdline").read_bytes().decode().split("\0")
    options = [each for each in spark_archive(jars.spark).options() if each in command]
    java, path = command[0], command[command.index("-cp") + 1]
    again = [java, "-Xshare:on", *options, "-cp", path, "org.apache.spark.deploy.SparkSubmit", "--version"]
    done = subprocess.run(again, capture_output=True, text=True, timeout=60)
    assert options and done.returncode == 0, done.stderr
