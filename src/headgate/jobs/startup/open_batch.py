"""A batch that was begun and not committed: what it wrote, and what a start makes of it.

A run finishes its open batch with the flow that began it, or not at all: another flow has other
rows, and its written rows could not be told from the missing ones. So a changed flow
leaves the run at the batch before, in a new run. So does `--from latest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from headgate._codec import Form, alias, left_out
from headgate._units import format_count
from headgate.checkpoints.sparklog import (
    find_last_commit,
    find_open_batch,
    find_start,
    read_batch,
    read_offsets,
)
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.contract.written import Answer, Batches, Written
from headgate.connectors.registry import get_connector
from headgate.engine.plan.flow_plan import source_name
from headgate.errors import HeadgateError
from headgate.flow.operators.nodes import Source
from headgate.jobs.checkpoints.keeper import by_source
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run
from headgate.jobs.runs.written_batches import find_written
from headgate.jobs.values import LATEST, OpenBatch

# The JSON has the number alone.
_Count = Annotated[RecordCount, Form(lambda count: count.records, RecordCount)]


@dataclass(frozen=True, slots=True)
class BegunBatch:
    """An open batch; its JSON is what an event says of it.

    Attributes:
        number: Its number.
        lineage: The run it was begun in.
        last: The last batch that committed; None where there is none.
        starts: Where it begins in each source, by source id; None if it was not recorded.
        ends: Where it ends in each source; None before its first record.
        records: How many it reads, by source id; None if unknown.
        outputs: What outputs hold of it, dead letters last.
    """

    number: int = field(metadata=alias("batch"))
    lineage: str = field(metadata=alias("run"))
    last: int | None = field(metadata=left_out())
    starts: Mapping[str, str | None] = field(metadata=left_out())
    ends: Mapping[str, str | None] = field(metadata=left_out())
    records: Mapping[str, _Count | None]
    outputs: Mapping[str, Written]

    @property
    def is_unwritten(self) -> bool:
        """Whether it is known that no output holds anything of it."""
        return not any(output.is_possible for output in self.outputs.values())


def look_at_open_batch(home: JobFolder, run: Run) -> BegunBatch | None:
    """Return a run's open batch, or None where it has none; the run is shut out of its outputs.

    Args:
        home: Locked.

    Raises:
        HeadgateError: DRIVER_STILL_RUNNING; CHECKPOINT_INCOMPLETE or CHECKPOINT_DAMAGED.
    """
    number = find_open_batch(run.checkpoint)
    if number is None:
        return None
    last = find_last_commit(run.checkpoint)
    begun = read_batch(run.checkpoint, number)
    topics = {node.id: node.topic for node in run.flow.nodes if isinstance(node, Source)}
    ends = by_source(run.flow, begun.positions)
    starts = (
        {name: find_start(run.checkpoint, source_name(name)) for name in topics}
        if last is None
        else by_source(run.flow, read_offsets(run.checkpoint, last))
    )
    since = datetime.fromtimestamp(begun.timestamp_ms / 1000, UTC)
    return BegunBatch(
        number,
        run.lineage,
        last,
        starts,
        ends,
        {
            # A source without an end was not read yet.
            name: RecordCount(0)
            if ends.get(name) in (None, starts.get(name))
            else get_connector(topic).positions.count_between(topic, starts.get(name), ends[name])
            for name, topic in topics.items()
        },
        # A commit that is missing before it makes the batch before it as doubtful.
        find_written(home, run, Batches(0 if last is None else last + 1, None, since)),
    )


def check_choice(
    batch: BegunBatch, choice: OpenBatch | None, *, job: str, flow_changed: bool
) -> None:
    """Refuse to leave a batch that has written something, unless the user said how.

    Args:
        flow_changed: Whether the batch is left for a changed flow; otherwise `--from latest`
            leaves it.

    Raises:
        HeadgateError: BATCH_OPEN.
    """
    if batch.is_unwritten or choice is not None:
        return
    what = f"batch {batch.number} ({describe_records(batch.records)})"
    written = describe_outputs(batch.outputs)
    if flow_changed:
        raise HeadgateError(
            "BATCH_OPEN",
            f"cannot resume job {job!r} with a changed flow: {what} was begun with the old flow, "
            f"and {written}",
            hint="add --open-batch repeat to write the batch again with the changed flow, or "
            "--open-batch skip to continue after it without the missing rows",
        )
    raise HeadgateError(
        "BATCH_OPEN",
        f"cannot restore job {job!r} from {LATEST}: {what} was begun and did not commit, and "
        f"{written}",
        hint="run the unchanged flow once without --from, which finishes the batch; or add "
        "--open-batch repeat to write it again, or --open-batch skip to continue after it without "
        "the missing rows",
    )


def describe_choice(batch: BegunBatch, choice: OpenBatch | None) -> str:
    """Return what a start does with an open batch, in a sentence that the user reads."""
    what = f"batch {batch.number} ({describe_records(batch.records)})"
    if choice is OpenBatch.SKIP:
        return (
            f"{what} is skipped: {describe_outputs(batch.outputs)}; its other rows are not "
            "written, and state misses its records"
        )
    if batch.is_unwritten:
        return (
            f"{what} was begun and wrote nothing: it is read again in a new run; no row is "
            "repeated or lost"
        )
    return (
        f"{what} is repeated in a new run: {describe_outputs(batch.outputs)}, and those rows are "
        "written again"
    )


def describe_records(records: Mapping[str, RecordCount | None]) -> str:
    """Return how many records there are of each source that has some."""
    parts = [
        f"{_describe_count(count)} of {name!r}"
        for name, count in records.items()
        if count is None or count.records
    ]
    return ", ".join(parts) or "no records"


def _describe_count(count: RecordCount | None) -> str:
    if count is None:
        return "an unknown number of records"
    counted = _counted(count.records, "record")
    return f"about {counted}" if count.is_estimate else counted


def describe_outputs(outputs: Mapping[str, Written], *, of: str = "it") -> str:
    """Return which outputs hold rows of some batches, how many, and which may hold some."""
    parts = [_describe(name, output, of) for name, output in outputs.items() if output.is_possible]
    return ", ".join(parts) or f"no output holds rows of {of}"


def _describe(name: str, written: Written, of: str) -> str:
    if written.answer is Answer.UNKNOWN:
        return f"output {name!r} may hold rows of {of} ({written.why})"
    if written.rows is not None:
        return f"output {name!r} holds {_counted(written.rows, 'row')} of {of}"
    # A transaction spans all topics of a client: which of them got rows is not known.
    tasks = _counted(written.tasks or 0, "task")
    return f"{tasks} committed rows of {of} to the log of output {name!r}"


def _counted(count: int, noun: str) -> str:
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"
