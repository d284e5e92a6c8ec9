"""Falling back to an older checkpoint, and the rows that it writes again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.contract.written import NOTHING, Batches, Written
from headgate.errors import Domain, HeadgateError
from headgate.jobs.checkpoints.restore_plan import count_read_again
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, walk_lineage
from headgate.jobs.runs.written_batches import find_written
from headgate.jobs.startup.open_batch import describe_outputs, describe_records


@dataclass(frozen=True, slots=True)
class Repeats:
    """What lies behind a checkpoint.

    Attributes:
        records: Those that are read again, by source id; None if unknown.
        outputs: What outputs hold of later batches, dead letters included.
    """

    records: Mapping[str, RecordCount | None]
    outputs: Mapping[str, Written]

    @property
    def is_possible(self) -> bool:
        """Whether an output receives, or may receive, rows again."""
        return any(output.is_possible for output in self.outputs.values())


def find_repeats(home: JobFolder, kept: Checkpoint) -> Repeats:
    """Return what the job has written since a checkpoint; its run is shut out of the outputs.

    Args:
        home: Locked.
        kept: A checkpoint of the job's present run, or of an ancestor of it.

    Raises:
        HeadgateError: DRIVER_STILL_RUNNING.
    """
    outputs: dict[str, Written] = {}
    for run, first, last in _runs_since(home, kept):
        by_topic = find_written(home, run, Batches(first, last, kept.completed_at))
        for name, written in by_topic.items():
            outputs[name] = outputs.get(name, NOTHING).plus(written)
    return Repeats(count_read_again(home, kept), outputs)


def _runs_since(home: JobFolder, kept: Checkpoint) -> Iterator[tuple[Run, int, int | None]]:
    """Yield the present run and those it comes from, up to the checkpoint's, with their batches.

    What a run wrote behind the checkpoint that another went back to was repeated by that one:
    its rows are not those that come again now.
    """
    for ancestor in walk_lineage(home, home.find_present_run()):
        is_of_it = ancestor.lineage == kept.run
        first, last = kept.batch + 1 if is_of_it else 0, ancestor.last_batch
        if ancestor.run is not None and (last is None or first <= last):
            yield ancestor.run, first, last
        if is_of_it:
            return


def check_repeats(repeats: Repeats, kept: Checkpoint, *, job: str, why: str) -> None:
    """Refuse to fall back where an output would receive rows again.

    Args:
        why: What is wrong with the newer checkpoints.

    Raises:
        HeadgateError: FALLBACK_REPEATS.
    """
    if repeats.is_possible:
        raise HeadgateError(
            "FALLBACK_REPEATS",
            f"cannot resume job {job!r} exactly once: its newest checkpoint is corrupted "
            f"({why}), and rows would be duplicated from {kept.id}: "
            f"{describe_repeats(repeats)}",
            hint=f"add --allow-repeats to go back to {kept.id} and write those rows again",
            domain=Domain.EXTERNAL,
        )


def describe_repeats(repeats: Repeats) -> str:
    """Describe the rows and records that are written and read again."""
    if not repeats.is_possible:
        return "no row is repeated"
    return (
        f"{describe_outputs(repeats.outputs, of='later batches')}; "
        f"{describe_records(repeats.records)} are read again"
    )
