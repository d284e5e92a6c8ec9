"""A flow that is run from Python: attached to this process, or in the background."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate._units import format_duration
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.names import did_you_mean
from headgate.interactive.job import Job
from headgate.interactive.progress import show_progress
from headgate.jobs.flow_file import hold_flow
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.setting_table import SETTINGS
from headgate.jobs.settings import resolve_options
from headgate.jobs.startup.background import start_detached
from headgate.jobs.values import LATEST, Consent, JobSnapshot, OpenBatch, RunOptions

# As for the commands.
_ON_VARIABLE = "HEADGATE_ON"
_EXCLUSIVE = ("fresh", "restore_from", "restore_at", "open_batch")
_SETTINGS = [setting.field for setting in SETTINGS if setting.name not in ("on", "profile")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a run is asked for; `Flow.run` describes the fields."""

    on: str | None
    until_caught_up: bool
    drain: bool
    fresh: bool
    restore_from: str | None
    restore_at: str | None
    drop_state: Sequence[str]
    start: str | Sequence[str]
    consent: Consent
    home: Path
    settings: Mapping[str, Any]


def run(graph: Graph, order: Order, *, detach: bool, progress: bool) -> Job:
    """Run a flow without a file, and return its job."""
    options = _resolve(order)
    flow = hold_flow(graph, options.home)
    job = Job(FolderHome(options.home), graph.name)
    if detach:
        start_detached(flow, options)
        return job
    # It imports all that supervises a job.
    from headgate.jobs.startup.foreground import run_job

    with show_progress(graph.name, wanted=progress) as watcher:
        ended = run_job(flow, options, watcher)
    is_bounded = order.until_caught_up or order.drain
    if is_bounded and ended.state is not JobState.FINISHED:
        raise _stopped(ended)
    return job


def _stopped(ended: JobSnapshot) -> HeadgateError:
    why = f" ({ended.reason})" if ended.reason else ""
    return HeadgateError(
        "JOB_ENDED",
        f"job {ended.job!r} has not caught up: it is {ended.state}{why}",
        hint="run the flow again to go on from its last batch",
    )


def _resolve(order: Order) -> RunOptions:
    values = (order.fresh, order.restore_from, order.restore_at, order.consent.open_batch)
    given = [name for name, value in zip(_EXCLUSIVE, values, strict=True) if value]
    if order.restore_from == LATEST and given == ["restore_from", "open_batch"]:
        given = []
    if len(given) > 1:
        raise HeadgateError(
            "BAD_SETTING",
            f"{' and '.join(given)} exclude each other",
            hint=f"leave out {given[-1]}",
        )
    base = RunOptions(
        home=order.home,
        until_caught_up=order.until_caught_up,
        drain=order.drain,
        fresh=order.fresh,
        restore_from=order.restore_from,
        restore_at=order.restore_at,
        drop_state=tuple(order.drop_state),
        consent=order.consent,
        start=(order.start,) if isinstance(order.start, str) else tuple(order.start),
    )
    flags = {_check_name(name): _plain(value) for name, value in order.settings.items()}
    on = order.on or os.environ.get(_ON_VARIABLE)
    # A headgate.toml counts in the working directory.
    return resolve_options("flow.py", {**flags, "on": on}, base)


def _check_name(name: str) -> str:
    if name not in (*_SETTINGS, "profile"):
        raise HeadgateError(
            "UNKNOWN_SETTING",
            f"cannot use setting {name!r}: there is no such setting",
            hint=did_you_mean(name, _SETTINGS),
        )
    return name.replace("_", "-")


def _plain(value: Any) -> Any:
    """Return the value of a setting as headgate.toml has it."""
    if isinstance(value, timedelta):
        return format_duration(value)
    return str(value) if isinstance(value, Path) else value


def parse_consent(open_batch: str | None, *, allow_repeats: bool) -> Consent:
    """Return what the user agrees to for one start."""
    try:
        choice = None if open_batch is None else OpenBatch(open_batch)
    except ValueError:
        raise HeadgateError(
            "BAD_SETTING",
            f"open_batch must be 'repeat' or 'skip', got {open_batch!r}",
            hint="open_batch='repeat'",
        ) from None
    return Consent(open_batch=choice, allow_repeats=allow_repeats)
