"""Restoring a job that is known by name: what it would do, and how it is started for it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from headgate._clock import Clock, SystemClock
from headgate.checkpoints.catalog import pin, read_kept, unpin
from headgate.connectors.logs import bind, parse_log
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore import find_target, plan_restore
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.verbs import get_start
from headgate.jobs.flow_file import load_flow
from headgate.jobs.home import JobHome
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.registry import get_home
from headgate.jobs.values import RunOptions


def plan_of_restore(flow: str, options: RunOptions, *, clock: Clock | None = None) -> RestorePlan:
    """Return what a start with these options restores, without doing it.

    Args:
        flow: As `load_flow` takes it.
        options: With `restore_from` or `restore_at`.
    """
    graph = bind(load_flow(flow).graph, parse_log(options.on))
    home = JobHome(options.home, graph.name)
    now = (clock or SystemClock()).now()
    kept = find_target(home, source=options.restore_from, at=options.restore_at, now=now)
    return plan_restore(home, graph, kept, drop=options.drop_state, parallelism=options.parallelism)


def get_restore(
    root: Path,
    name: str,
    *,
    source: str | None,
    at: str | None,
    drop: Collection[str] = (),
) -> tuple[str, RunOptions]:
    """Return how a job is started to restore it: its flow, and its options with the checkpoint.

    Refuses a job that is running: two runs of one job at once would both write its outputs.
    """
    get_home(root, name, verb="restore")
    found = get_restore_options(root, name, source=source, at=at, drop=drop)
    if has_supervisor(JobHome(root, name)):
        raise HeadgateError(
            "JOB_RUNNING",
            f"cannot restore job {name!r}: it is running",
            hint=f"headgate stop {name}",
        )
    return found


def get_restore_options(
    root: Path, name: str, *, source: str | None, at: str | None, drop: Collection[str]
) -> tuple[str, RunOptions]:
    """Return how a job would be started to restore it, whether or not it is running now."""
    flow, options = get_start(root, name)
    return flow, replace(
        options,
        parallelism=None,
        until_caught_up=False,
        restore_from=None if at is not None else (source or "latest"),
        restore_at=at,
        drop_state=tuple(drop),
    )


@contextlib.contextmanager
def hold_checkpoint(root: Path, name: str, folder: Path) -> Iterator[None]:
    """Keep a checkpoint of a job's present run from being removed meanwhile.

    It is pinned, and unpinned at the end unless it was pinned before. One of an earlier run, or
    a savepoint, is removed by nobody, and is left as it is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it is gone already.
    """
    home = get_home(root, name, verb="restore")
    lineage = home.find_present_run()
    present = None if lineage is None else home.checkpoints_folder(lineage).absolute()
    if folder.absolute().parent != present:
        yield
        return
    kept = read_kept(folder)
    if kept.pinned:
        yield
        return
    pin(folder, job=name)
    try:
        yield
    finally:
        unpin(folder)
