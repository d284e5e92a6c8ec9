"""What an attempt of a job is started with."""

from __future__ import annotations

from collections.abc import Mapping

from headgate._locations import Location, url_of
from headgate.checkpoints.sparklog import find_last_commit, find_open_batch, read_batch
from headgate.engine.plan.flow_plan import source_name
from headgate.engine.settings import (
    AttemptSettings,
    HeldFiles,
    HeldState,
    SparkSettings,
    held_state,
)
from headgate.errors import HeadgateError, StoreError
from headgate.jobs.checkpoints.portable import state_folder
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.drain import has_begun_drain
from headgate.jobs.runs.job_stores import lease_of
from headgate.jobs.runs.lineage import Run, find_store
from headgate.jobs.values import RunOptions


def attempt_settings(
    home: JobFolder, run: Run, options: RunOptions, starts: Mapping[str, str]
) -> AttemptSettings:
    """Return the settings of the next attempt of a run.

    Args:
        starts: Where sources begin that have no position yet, by source id.
    """
    origin, store = run.origin, find_store(run)
    return AttemptSettings(
        job=home.name,
        lineage=run.lineage,
        checkpoint=run.checkpoint,
        lease=None if store is None else lease_of(home.name, store),
        lease_expires=options.lease_expires,
        batch_every=options.batch_every,
        min_pause=options.min_pause,
        max_batch=options.max_batch,
        max_record=options.max_record,
        shown=options.print_rows,
        until_caught_up=options.until_caught_up,
        check_determinism=options.check_determinism,
        drain=options.drain,
        drain_begun=options.drain and has_begun_drain(run.checkpoint),
        history=run.history,
        held=_held_state(run),
        starts={**starts, **({} if origin is None else origin.positions)},
        kept=_kept(run),
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


def _kept(run: Run) -> dict[str, str]:
    """Return where sources find what they kept in the checkpoint that they go on from."""
    origin = run.origin
    if origin is None or origin.kept is None:
        return {}
    return {name: url_of(origin.kept / source_name(name)) for name in origin.positions}


def _held_state(run: Run) -> dict[str, HeldState | HeldFiles]:
    """Return the state that operators take over, by uid: until the first commit alone."""
    origin = run.origin
    if origin is None or origin.folder is None or find_last_commit(run.checkpoint) is not None:
        return {}
    return {
        uid: HeldFiles(state_folder(origin.folder, uid))
        if origin.portable
        else held_state(run.flow.node(uid), origin.folder, number, origin.batch)
        for uid, number in origin.operators.items()
    }


def _spark_settings(home: JobFolder, run: Run, options: RunOptions) -> SparkSettings:
    return SparkSettings(
        parallelism=run.parallelism,
        master=options.master,
        driver_memory=options.driver_memory,
        executors=options.executors,
        executor_cores=options.executor_cores,
        executor_memory=options.executor_memory,
        executor_wait=options.executor_wait,
        executor_timeout=options.executor_timeout,
        driver_host=options.driver_host,
        driver_bind=options.driver_bind,
        python=options.python,
        py_env=options.py_env,
        state_memory=options.state_memory,
        worker_memory=options.worker_memory,
        metaspace=options.metaspace,
        code_cache=options.code_cache,
        direct_memory=options.direct_memory,
        off_heap_memory=options.off_heap_memory,
        executor_overhead=options.executor_overhead,
        call_timeout=options.call_timeout,
        log_file=home.log_file,
        lock_file=home.path / "driver.lock",
        log_level=options.log_level,
        log_format=options.log_format,
        job=home.name,
        verbose=options.verbose,
    )


def unfinished_since_ms(checkpoint: Location) -> int:
    """Return when the open batch of a run was begun, in epoch milliseconds; 0 for none."""
    try:
        begun = find_open_batch(checkpoint)
        return 0 if begun is None else read_batch(checkpoint, begun).timestamp_ms
    except StoreError:
        raise
    except HeadgateError:
        # Spark fails on a corrupted batch when it repeats it, and explains more.
        return 0
