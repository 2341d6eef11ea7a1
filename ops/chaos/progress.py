"""How far a job is, from its checkpoint: Spark logs a batch's offsets before it runs, and a commit after.

Both are files named by the batch's number, so whether a batch is in progress can be seen from outside, at any
moment and to the millisecond, without asking the job, which may be stopped or dead.
"""

import json
from dataclasses import dataclass
from pathlib import Path

NO_BATCH = -1

Positions = dict[tuple[str, int], int]
"""By topic and partition: the offset up to which everything is handled."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The last batch that was begun, and the last one that was done."""

    begun: int = NO_BATCH
    done: int = NO_BATCH

    @property
    def in_progress(self) -> bool:
        return self.begun > self.done


class Checkpoint:
    """A query's checkpoint on this machine's disk."""

    def __init__(self, folder: Path) -> None:
        self._offsets, self._commits = folder / "offsets", folder / "commits"

    def batches(self) -> Batches:
        # Commits last: what is done between the two looks must not seem to be in progress.
        begun = _newest(self._offsets)
        return Batches(begun, _newest(self._commits))

    def last_s(self) -> float:
        """How long the last batch took that is done; 0 if that cannot be told."""
        number = str(_newest(self._commits))
        try:
            times = [(folder / number).stat().st_mtime for folder in (self._offsets, self._commits)]
        except FileNotFoundError:
            return 0.0
        return times[1] - times[0]

    def positions(self) -> Positions | None:
        """Where everything is handled up to; None while a batch is in progress."""
        batches = self.batches()
        if batches.begun == NO_BATCH or batches.begun != batches.done:
            return None
        lines = (self._offsets / str(batches.begun)).read_text().splitlines()
        # The first two are the format's version and the batch's own settings; then one for each source.
        return {
            (topic, int(partition)): offset
            for source in lines[2:]
            if source != "-"
            for topic, partitions in json.loads(source).items()
            for partition, offset in partitions.items()
        }


def _newest(folder: Path) -> int:
    try:
        return max((int(file.name) for file in folder.iterdir() if file.name.isdigit()), default=NO_BATCH)
    except FileNotFoundError:
        return NO_BATCH
