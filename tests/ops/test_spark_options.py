"""Which Spark a job runs on: what `--master` and `--spark-conf` take, and what they refuse."""

import pytest
from click.testing import CliRunner

from branchline.kafka.errors import ConfigError
from branchline.ops.cli import main
from branchline.ops.spark_options import OURS, spark_choice


def test_settings_of_spark_are_read_as_given() -> None:
    """A value may have equals signs, and of a name that comes twice the last one counts."""
    given = ("spark.executor.memory=2g", "spark.hadoop.a=b=c", "spark.executor.memory=3g")
    choice = spark_choice("yarn", given)
    assert choice.master == "yarn"
    assert choice.conf == {"spark.executor.memory": "3g", "spark.hadoop.a": "b=c"}


def test_secrets_are_not_shown() -> None:
    """Neither what was chosen nor an error shows a value."""
    assert "s3cret" not in repr(spark_choice("yarn", ("spark.hadoop.fs.s3a.secret.key=s3cret",)))
    with pytest.raises(ConfigError) as refused:
        spark_choice("yarn", ("fs.s3a.secret.key=s3cret",))
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("given", [*(f"{name}=1" for name in OURS), "spark.x", "x=1", "=1", ""])
def test_what_would_break_a_job_is_refused(given: str) -> None:
    """Settings that the job itself makes, and what is no setting of Spark, with what to do."""
    with pytest.raises(ConfigError) as refused:
        spark_choice("yarn", (given,))
    assert refused.value.hint


@pytest.mark.parametrize("command", ["up", "router", "optimizer", "rebuild"])
def test_every_job_takes_them(command: str) -> None:
    """Refused before anything is started, whichever job; from the variable too, as words."""
    arguments = [command, *(["--print-offsets", "--from", "x"] if command == "rebuild" else [])]
    for how in (
        {"args": [*arguments, "--spark-conf", "spark.master=x"]},
        {"args": arguments, "env": {"BRANCHLINE_SPARK_CONF": "spark.a=1 spark.master=x"}},
    ):
        result = CliRunner().invoke(main, **how)  # type: ignore[arg-type]
        assert result.exit_code == 2 and "spark.master cannot be set" in result.output, result.output
