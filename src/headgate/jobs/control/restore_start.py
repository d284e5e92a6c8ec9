"""The restore of a job: resolved once, then shown, held and started."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from headgate._clock import Clock, SystemClock
from headgate._locations import Location, is_local
from headgate.checkpoints.catalog import hold
from headgate.checkpoints.stores import is_kept_on_store
from headgate.connectors.logs import bind, parse_log
from headgate.jobs.checkpoints.restore_plan import RestorePlan, SealedPlan, resolve_restore
from headgate.jobs.control.requests import check_at_rest
from headgate.jobs.control.verbs import get_start
from headgate.jobs.flow_file import LoadedFlow, load_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.startup.background import Detached, start_detached
from headgate.jobs.values import LATEST, RunOptions


@dataclass(frozen=True, slots=True)
class RestoreStart:
    """A resolved start that restores a job, for `run_job` and `start_detached`.

    Attributes:
        flow: Loaded, so that its file is executed once in this process.
        options: With the folder of the chosen checkpoint.
    """

    flow: LoadedFlow
    options: RunOptions
    sealed: SealedPlan

    @property
    def plan(self) -> RestorePlan:
        return self.sealed.plan


def resolve_start(flow: str, options: RunOptions, *, clock: Clock | None = None) -> RestoreStart:
    """Resolve a start with these options, without doing it.

    Args:
        flow: As `load_flow` takes it; its file is executed here.
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
    """Resolve the restore of a job that is not running.

    Raises:
        HeadgateError: JOB_NEVER_RAN, JOB_RUNNING, or the refusal of a restore.
    """
    flow, options = get_restore_options(home, source=source, at=at, drop=drop)
    # Two runs of one job at once would both write its outputs.
    check_at_rest(home, verb="restore")
    return resolve_start(flow, options)


def restore_job(
    home: JobFolder, *, source: str | None, at: str | None, drop: Collection[str] = ()
) -> tuple[RestorePlan, Detached]:
    """Go back to a checkpoint of a job at rest, and run on from there in the background.

    Raises:
        HeadgateError: What `prepare_restore` raises, or the refusal of the start.
    """
    start = prepare_restore(home, source=source, at=at, drop=drop)
    options = replace(start.options, print_rows=0, verbose=False)
    with hold_checkpoint(home, start.plan.folder):
        return start.plan, start_detached(start.flow, options, restore=start.sealed)


def get_restore_options(
    home: JobFolder, *, source: str | None, at: str | None, drop: Collection[str]
) -> tuple[str, RunOptions]:
    """Return the flow and the options of a start that restores a job, which may be running."""
    flow, options = get_start(home)
    return flow, replace(
        options,
        parallelism=None,
        restore_from=None if at is not None else (source or LATEST),
        restore_at=at,
        drop_state=tuple(drop),
    )


@contextlib.contextmanager
def hold_checkpoint(home: JobFolder, folder: Location) -> Iterator[None]:
    """Keep a checkpoint from being removed until the run that restores it is open.

    Retention removes only checkpoints in the folders of a job's runs, so other folders need no
    hold. CHECKPOINT_NOT_FOUND is raised if the checkpoint is gone already.
    """
    if is_local(folder):
        kept_in = folder.resolve().parent
        of_run = home.checkpoints_folder(kept_in.parent.name)
        is_of_run = is_local(of_run) and kept_in == of_run.resolve()
    else:
        is_of_run = is_kept_on_store(folder)
    with hold(folder, job=home.name) if is_of_run else contextlib.nullcontext():
        yield
