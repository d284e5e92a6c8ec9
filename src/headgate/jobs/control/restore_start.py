"""Restoring a job that is known by name: resolved once, then shown, held and started."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from headgate._clock import Clock, SystemClock
from headgate.checkpoints.catalog import hold
from headgate.connectors.logs import bind, parse_log
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore_plan import RestorePlan, SealedPlan, resolve_restore
from headgate.jobs.control.verbs import get_start
from headgate.jobs.flow_file import LoadedFlow, load_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.values import RunOptions


@dataclass(frozen=True, slots=True)
class RestoreStart:
    """A start that restores a job, as it was resolved: `run_job` and `start_detached` follow it.

    Attributes:
        flow: Loaded; its file need not be executed again in this process.
        options: They name the checkpoint that was chosen by its folder.
    """

    flow: LoadedFlow
    options: RunOptions
    sealed: SealedPlan

    @property
    def plan(self) -> RestorePlan:
        """What the restore does."""
        return self.sealed.plan


def resolve_start(flow: str, options: RunOptions, *, clock: Clock | None = None) -> RestoreStart:
    """Return what a start with these options restores, without doing it.

    Args:
        flow: As `load_flow` takes it; its file is executed here, once.
        options: With `restore_from` or `restore_at`.
    """
    loaded = load_flow(flow)
    graph = bind(loaded.graph, parse_log(options.on))
    sealed = resolve_restore(
        JobFolder(options.home, graph.name),
        graph,
        options,
        now=(clock or SystemClock()).now(),
    )
    chosen = replace(options, restore_from=str(sealed.plan.folder), restore_at=None)
    return RestoreStart(loaded, chosen, sealed)


def prepare_restore(
    home: JobFolder,
    *,
    source: str | None,
    at: str | None,
    drop: Collection[str] = (),
) -> RestoreStart:
    """Return how a job is started to restore it.

    Refuses a job that is running: two runs of one job at once would both write its outputs.

    Raises:
        HeadgateError: JOB_NEVER_RAN, JOB_RUNNING, or what a restore refuses.
    """
    flow, options = get_restore_options(home, source=source, at=at, drop=drop)
    if has_supervisor(home):
        raise HeadgateError(
            "JOB_RUNNING",
            f"cannot restore job {home.name!r}: it is running",
            hint=f"headgate stop {home.name}",
        )
    return resolve_start(flow, options)


def get_restore_options(
    home: JobFolder, *, source: str | None, at: str | None, drop: Collection[str]
) -> tuple[str, RunOptions]:
    """Return how a job would be started to restore it, whether or not it is running now."""
    flow, options = get_start(home)
    return flow, replace(
        options,
        parallelism=None,
        until_caught_up=False,
        restore_from=None if at is not None else (source or "latest"),
        restore_at=at,
        drop_state=tuple(drop),
    )


@contextlib.contextmanager
def hold_checkpoint(home: JobFolder, folder: Path) -> Iterator[None]:
    """Keep a checkpoint from being removed until the run that restores it is open.

    Retention removes only checkpoints in the folders of a job's runs: a savepoint, or a folder
    elsewhere, is left as it is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it is gone already.
    """
    runs = (home.path / "runs").absolute()
    if not folder.absolute().is_relative_to(runs):
        yield
        return
    with hold(folder, job=home.name):
        yield
