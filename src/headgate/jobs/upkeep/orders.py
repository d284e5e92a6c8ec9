"""Orders of a server, each followed by a process of its own.

Flows are the user's code: a file that is executed must not affect the server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate._clock import SystemClock
from headgate._codec import decode, encode
from headgate.errors import Domain, HeadgateError
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.control.restore_start import get_restore_options, resolve_start
from headgate.jobs.control.verbs import get_start, restart_job
from headgate.jobs.flow_file import load_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.processes.child import ChildDiedError, open_output, spawn
from headgate.jobs.processes.parent import Parent
from headgate.jobs.settings import resolve_options
from headgate.jobs.startup.background import start_detached
from headgate.jobs.upkeep.kept_jobs import KeptJob, Session
from headgate.jobs.values import NO_CONSENT, Consent, RunOptions

# Fetching a connector's jars takes minutes, the first time.
LONGEST_START = timedelta(minutes=15)
# A dry run loads a flow and reads small files.
_LONGEST_PLAN = timedelta(seconds=60)


def resolve_submit(
    root: Path,
    flow: str,
    *,
    on: str,
    settings: Mapping[str, Any],
    fresh: bool,
    restore_from: str | None,
    consent: Consent = NO_CONSENT,
) -> RunOptions:
    """Return the options of a flow that is submitted; the flow's file is not executed.

    Args:
        flow: As `load_flow` takes it.
        on: The log of topics that are known by name alone, unless a headgate.toml names one.
        settings: By the names of headgate.toml.
        consent: What the user agrees to this time.

    Raises:
        HeadgateError: BAD_SETTING, or what is wrong with the headgate.toml.
    """
    base = RunOptions(home=root, fresh=fresh, restore_from=restore_from, consent=consent)
    options = resolve_options(flow, settings, base)
    if options.settings["on"]["from"] == "default":
        options = resolve_options(flow, {**settings, "on": on}, base)
    return options


def submit_flow(flow: str, options: RunOptions, *, by: str, keep: bool) -> dict[str, Any]:
    """Start a flow as a job in the background; return what it said of itself, as JSON values.

    Args:
        options: As `resolve_submit` returned them.
        keep: Whether the job is to be up from now on.

    Raises:
        HeadgateError: What a start refuses.
    """
    return follow_apart(_order("start", flow, options, by=by, keep=keep))


def start_kept(
    home: JobFolder, *, by: str, keep: bool, consent: Consent = NO_CONSENT
) -> dict[str, Any]:
    """Start a job as it was last run, in the background."""
    flow, options = get_start(home, consent=consent)
    return follow_apart(_order("start", flow, options, by=by, keep=keep))


def restart_kept(
    home: JobFolder, *, by: str, keep: bool, consent: Consent = NO_CONSENT
) -> dict[str, Any]:
    """Stop a job between two batches and start it again; start a job that is not running."""
    flow, options = get_start(home, consent=consent)
    return follow_apart(_order("restart", flow, options, by=by, keep=keep))


def restore_kept(
    home: JobFolder, sealed: SealedPlan, *, drop: Collection[str], by: str, keep: bool
) -> dict[str, Any]:
    """Follow a plan: go back to its checkpoint and run on from there, in the background.

    Args:
        sealed: As `resolve_apart` returned it.
        drop: Uids whose state is left behind, as it was resolved with.

    Raises:
        HeadgateError: What a restore refuses; JOB_RUNNING among it.
    """
    flow, options = get_restore_options(home, source=str(sealed.plan.folder), at=None, drop=drop)
    order = _order("start", flow, options, by=by, keep=keep)
    return follow_apart({**order, "restore": encode(sealed)})


def resolve_apart(
    home: JobFolder, *, source: str | None, at: str | None, drop: Collection[str]
) -> SealedPlan:
    """Return what a restore does; the job may be running."""
    flow, options = get_restore_options(home, source=source, at=at, drop=drop)
    return decode(SealedPlan, follow_apart(_order("plan", flow, options)))


def _order(
    do: str, flow: str, options: RunOptions, *, by: str = "", keep: bool = False
) -> dict[str, Any]:
    # Nobody looks at the terminal of a job in the background.
    quiet = replace(options, home=options.home.absolute(), print_rows=0, verbose=False)
    return {"do": do, "flow": flow, "options": encode(quiet), "by": by, "keep": keep}


def follow_apart(order: Mapping[str, Any]) -> dict[str, Any]:
    """Have an order followed by a process of its own, and return its answer or raise it."""
    longest = _LONGEST_PLAN if order["do"] == "plan" else LONGEST_START
    what = f"cannot {order['do']} flow {order['flow']!r}"
    # The output takes what the user's file prints; its last lines explain a missing answer.
    process = spawn("headgate.jobs.upkeep.orders", output=open_output())
    try:
        return process.ask(order, longest.total_seconds())
    except ChildDiedError as error:
        raise HeadgateError(
            "FLOW_BROKEN",
            f"{what}: the process that read it {error}",
            hint=f"python {str(order['flow']).partition(':')[0]}",
        ) from error
    except TimeoutError as error:
        raise HeadgateError(
            "WAITED_TOO_LONG",
            f"{what}: it did not respond for {longest}",
            hint="headgate jobs",
            domain=Domain.EXTERNAL,
            retryable=True,
        ) from error


def main() -> None:
    """Follow the order of the parent, even if the parent ends meanwhile."""
    parent = Parent()
    order = parent.receive()
    try:
        parent.answer({"answer": _follow(order)})
    except HeadgateError as error:
        parent.answer({"error": error.to_json()})


def _follow(order: Mapping[str, Any]) -> Any:
    flow, options = str(order["flow"]), decode(RunOptions, order["options"])
    if order["do"] == "plan":
        return encode(resolve_start(flow, options).sealed)
    restore = order.get("restore")
    sealed = None if restore is None else decode(SealedPlan, restore)
    name = load_flow(flow).graph.name if sealed is None else sealed.job
    session = Session(options.home)
    # What the user agrees to is for this start, and not for one after a crash.
    how = {
        "flow": flow,
        "options": encode(replace(options, consent=NO_CONSENT)),
        **({} if restore is None else {"restore": restore}),
    }
    kept = KeptJob(name, SystemClock().now(), str(order["by"]), how)
    with session.starting(name), _keeping(session, kept) if order["keep"] else nullcontext():
        if order["do"] == "restart":
            return encode(restart_job(JobFolder(options.home, name), consent=options.consent))
        return encode(start_detached(flow, options, job=name, restore=sealed))


@contextmanager
def _keeping(session: Session, kept: KeptJob) -> Iterator[None]:
    """Keep a job up that is started; if the start is refused, do with it as before."""
    # First, so that a job that was started is kept up whatever dies in between.
    before = session.keep(kept)
    try:
        yield
    except HeadgateError:
        session.put_back(kept.job, before)
        raise
    # A restart is a stop in between, and a job that was stopped is let go.
    session.keep(kept)


if __name__ == "__main__":
    main()
