"""What Branchline raises when it cannot go on; each error says what to do about it.

    BranchlineError             code: a stable word for machines; hint: what to do about it
    ├── SetupError              this machine lacks something; nothing is wrong with the data
    │   ├── JavaMissing         no Java that runs
    │   ├── JavaTooOld          there is one, but Spark and Kafka cannot run on it
    │   ├── JarsUnavailable     the Java libraries could not be fetched
    │   └── KafkaFailed         the embedded Kafka did not start
    │       └── KafkaDataInUse  because another one runs on the same data
    ├── ConfigError             a setting, a name or a file given by the user is wrong
    ├── ClusterUnreachable      the Kafka cluster does not answer
    ├── TopicMissing            a topic that should be there is not
    ├── TopicFailed             a topic could not be made
    ├── EventMissing            an event that was named is not there
    ├── PublishFailed           Kafka did not take an event
    ├── RequestRefused          the home broker refused a request; carries its answer
    ├── WaitExpired             what was waited for did not come before the deadline
    ├── CheckpointDiffers       a checkpoint does not belong to the job as it is set now
    │   ├── MarkDiffers         nor do the marks of a bridge, to the cluster that it reads
    │   ├── CheckpointOlder     batches were written that the checkpoint does not know of
    │   ├── CheckpointLost      batches were written, and this checkpoint is a new one
    │   └── MarkersGone         it is not recorded which batches were written
    ├── OffsetsGone             records that were not read yet are there no more
    ├── JobRunning              a job runs that must not
    ├── JobFailed               a job ended and cannot go on
    ├── JobFenced               another copy of the same job has taken over
    ├── BridgeFenced            another copy of the same bridge has taken over
    └── SourceGap               what a bridge had still to carry is gone

Bad messages are not errors but data: they become a `Rejection` with a `Code`.
"""

from pathlib import Path


class BranchlineError(Exception):
    """The base of all our errors. The text says what happened; `hint` says what to do."""

    code: str = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(f"Hint: {hint}")  # an uncaught error shows the hint too


class SetupError(BranchlineError):
    """The machine lacks something that Branchline needs. `log` is the file to read, if there is one."""

    code = "setup"

    def __init__(self, message: str, *, hint: str = "", log: Path | None = None) -> None:
        super().__init__(message if log is None else f"{message}\nThe whole log: {log}", hint=hint)
        self.log = log


class JavaMissing(SetupError):
    code = "java-missing"


class JavaTooOld(SetupError):
    code = "java-too-old"


class JarsUnavailable(SetupError):
    code = "jars-unavailable"


class KafkaFailed(SetupError):
    code = "kafka-failed"


class KafkaDataInUse(KafkaFailed):
    code = "kafka-data-in-use"


class ConfigError(BranchlineError):
    code = "config"


class ClusterUnreachable(BranchlineError):
    code = "cluster-unreachable"


class TopicMissing(BranchlineError):
    code = "topic-missing"


class TopicFailed(BranchlineError):
    code = "topic-failed"


class EventMissing(BranchlineError):
    code = "event-missing"


class PublishFailed(BranchlineError):
    code = "publish-failed"


class RequestRefused(BranchlineError):
    """The home broker's refusal: its code, and the place in the filter's text if there is one."""

    def __init__(
        self, message: str, *, code: str, line: int | None = None, column: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.line = line
        self.column = column


class WaitExpired(BranchlineError):
    code = "wait-expired"


class CheckpointDiffers(BranchlineError):
    code = "checkpoint-differs"


class MarkDiffers(CheckpointDiffers):
    code = "mark-differs"


class CheckpointOlder(CheckpointDiffers):
    code = "checkpoint-older"


class CheckpointLost(CheckpointDiffers):
    code = "checkpoint-lost"


class MarkersGone(CheckpointDiffers):
    code = "markers-gone"


class OffsetsGone(BranchlineError):
    code = "offsets-gone"


class JobRunning(BranchlineError):
    code = "job-running"


class JobFailed(BranchlineError):
    code = "job-failed"


class JobFenced(BranchlineError):
    code = "job-fenced"


class BridgeFenced(BranchlineError):
    code = "bridge-fenced"


class SourceGap(BranchlineError):
    code = "source-gap"
