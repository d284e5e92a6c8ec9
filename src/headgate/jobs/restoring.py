"""Restoring a job that is known by name: what it would do, and how it is started for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from headgate._clock import Clock, SystemClock
from headgate.connectors.logs import bind, parse_log
from headgate.errors import HeadgateError
from headgate.jobs.control import get_start
from headgate.jobs.home import JobHome
from headgate.jobs.intent import has_supervisor
from headgate.jobs.job import RunOptions
from headgate.jobs.loading import load_flow
from headgate.jobs.registry import get_home
from headgate.jobs.restore import RestorePlan, find_target, plan_restore


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
    flow, options = get_start(root, name)
    if has_supervisor(JobHome(root, name)):
        raise HeadgateError(
            "JOB_RUNNING",
            f"cannot restore job {name!r}: it is running",
            hint=f"headgate stop {name}",
        )
    chosen = replace(
        options,
        parallelism=None,
        until_caught_up=False,
        restore_from=None if at is not None else (source or "latest"),
        restore_at=at,
        drop_state=tuple(drop),
    )
    return flow, chosen
