"""What an attempt of a job is started with."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.checkpoints.sparklog import find_last_commit
from headgate.engine.settings import AttemptSettings, HeldFiles, HeldState, SparkSettings
from headgate.engine.state_variables import state_variable
from headgate.jobs.checkpoints.portable import state_folder
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run
from headgate.jobs.runs.open_batch_age import unfinished_since_ms
from headgate.jobs.values import RunOptions


def attempt_settings(
    home: JobFolder, run: Run, options: RunOptions, starts: Mapping[str, str]
) -> AttemptSettings:
    """Return the settings of the next attempt of a run.

    Args:
        starts: Where sources begin that have no position yet, by source id.
    """
    origin = run.origin
    return AttemptSettings(
        job=home.name,
        lineage=run.lineage,
        checkpoint=run.checkpoint,
        batch_every=options.batch_every,
        min_pause=options.min_pause,
        max_batch=options.max_batch,
        max_record=options.max_record,
        shown=options.print_rows,
        until_caught_up=options.until_caught_up,
        history=run.history,
        held=_held_state(run),
        starts={**starts, **({} if origin is None else origin.positions)},
        delivery=options.delivery,
        on_data_loss=options.on_data_loss,
        loaded=()
        if origin is None
        else tuple(name for name in origin.positions if name not in origin.loading),
        watermark_ms=0 if origin is None else origin.watermark_ms,
        times={} if origin is None else origin.times,
        partition_times={} if origin is None else origin.partition_times,
        unfinished_since_ms=unfinished_since_ms(run.checkpoint),
        placed_since=run.placed_since or 0,
        spark=_spark_settings(home, run, options),
    )


def _held_state(run: Run) -> dict[str, HeldState | HeldFiles]:
    """Return the state that operators take over, by uid: until the first commit alone."""
    origin = run.origin
    if origin is None or origin.folder is None or find_last_commit(run.checkpoint) is not None:
        return {}
    return {
        uid: HeldFiles(state_folder(origin.folder, uid))
        if origin.portable
        else HeldState(origin.folder, number, origin.batch, state_variable(run.flow.node(uid)))
        for uid, number in origin.operators.items()
    }


def _spark_settings(home: JobFolder, run: Run, options: RunOptions) -> SparkSettings:
    return SparkSettings(
        parallelism=run.parallelism,
        master=options.master,
        driver_memory=options.driver_memory,
        executor_memory=options.executor_memory,
        state_memory=options.state_memory,
        log_file=home.log_file,
        lock_file=home.path / "driver.lock",
        log_level=options.log_level,
        verbose=options.verbose,
    )
