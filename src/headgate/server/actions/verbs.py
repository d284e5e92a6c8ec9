"""What a client may change, the same for REST and the console.

Each function checks the role, counts against the client's rate limit, writes the audit log, and
returns an operation. What can be refused at once raises here; the operation reports the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from headgate._codec import encode
from headgate._units import format_duration
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.control.requests import Patience
from headgate.jobs.dead_letters.replay import ReplayRequest
from headgate.jobs.values import NO_CONSENT, Consent, RunOptions
from headgate.jobs.views.job import JobView
from headgate.server.actions.action import Action
from headgate.server.actions.flow_folder import find_flow_file, find_job_name
from headgate.server.actions.upkeep import Recovery, find_dead, let_go, letting_go
from headgate.server.context import ServerContext
from headgate.server.operations import Operation, Progress
from headgate.server.security import names
from headgate.server.security.access import Access, Role

_MOST_IDS = 10_000


def submit(
    context: ServerContext,
    access: Access,
    *,
    flow: str,
    settings: Mapping[str, Any] | None = None,
    fresh: bool = False,
    restore_from: str | None = None,
    consent: Consent = NO_CONSENT,
    key: str | None = None,
) -> Operation:
    """Start a flow of the flows folder as a job in the background.

    Args:
        flow: As `GET /v1/flows` names it.
        settings: By their names in headgate.toml; only those of `names.SETTINGS`.
        restore_from: A checkpoint's id, `latest`, or a savepoint's name.
        consent: What the user agrees to, for this start alone.
        key: Repeating a request with the same key returns the operation of the first one.
    """
    details = {
        "flow": flow,
        "settings": dict(settings or {}),
        "fresh": fresh,
        "from": restore_from,
        **encode(consent),
    }
    with (
        Action(context, access, "submit", None, details) as action,
        context.submissions.hold(access.who, key, details) as keyed,
    ):
        if keyed.answer is not None:
            return action.repeat(keyed.answer)
        file, options = _check_submit(
            action, flow, settings, fresh=fresh, restore_from=restore_from, consent=consent
        )
        by, keep = access.who, context.keeps_up
        return action.start(
            lambda _report: action.home.submit(file, options, by=by, keep=keep),
            begun=keyed.begin,
            ended=keyed.end,
        )


def stop(
    context: ServerContext,
    access: Access,
    job: str,
    *,
    drain: bool = False,
    savepoint: bool = False,
) -> Operation:
    """Stop a job between two batches; the server does not start it again."""
    details = {"drain": drain, "savepoint": savepoint}
    with Action(context, access, "stop", job, details) as action:
        end = partial(action.home.stop, job, savepoint="" if savepoint else None, drain=drain)
        return _end(action, job, end, must_run=drain or savepoint, more={"savepoint": None})


def cancel(context: ServerContext, access: Access, job: str) -> Operation:
    """End a job at once; the server does not start it again."""
    with Action(context, access, "cancel", job) as action:
        return _end(action, job, partial(action.home.cancel, job))


def delete(
    context: ServerContext, access: Access, job: str, *, keep_savepoints: bool = False
) -> Operation:
    """Delete a job that is not running, with its checkpoints; the server forgets it."""
    details = {"keep_savepoints": keep_savepoints}
    with Action(context, access, "delete", job, details) as action:
        action.home.check_deletable(job)
        return action.start(
            lambda _report: action.home.delete(job, keep_savepoints=keep_savepoints)
        )


def prune(
    context: ServerContext, access: Access, job: str, *, drop_checkpoints: bool = False
) -> Operation:
    """Remove the files of a job's old runs that nothing needs."""
    details = {"drop_checkpoints": drop_checkpoints}
    with Action(context, access, "prune", job, details) as action:
        action.home.job(job, verb="prune")
        return action.start(
            lambda _report: action.home.prune(job, drop_checkpoints=drop_checkpoints)
        )


def pause(context: ServerContext, access: Access, job: str) -> Operation:
    """Make a job read nothing until it is resumed."""
    with Action(context, access, "pause", job) as action:
        action.home.check_request(job, verb="pause")
        return _ask(action, partial(action.home.pause, job))


def resume(context: ServerContext, access: Access, job: str) -> Operation:
    """Let a paused job go on."""
    with Action(context, access, "resume", job) as action:
        action.home.check_request(job, verb="resume")
        return _ask(action, partial(action.home.resume, job))


def start(
    context: ServerContext, access: Access, job: str, *, consent: Consent = NO_CONSENT
) -> Operation:
    """Start a job as it was last run, in the background."""
    with Action(context, access, "start", job, encode(consent)) as action:
        action.home.check_at_rest(job, verb="start")
        return _start(action, job, action.home.start_kept, consent)


def restart(
    context: ServerContext, access: Access, job: str, *, consent: Consent = NO_CONSENT
) -> Operation:
    """Stop a job between two batches and start it again."""
    with Action(context, access, "restart", job, encode(consent)) as action:
        return _start(action, job, action.home.restart_kept, consent)


def take_savepoint(
    context: ServerContext, access: Access, job: str, *, portable: bool = False
) -> Operation:
    """Take a savepoint of a job in the job's own folder, whether it is running or not."""
    with Action(context, access, "savepoint", job, {"portable": portable}) as action:
        home = action.home
        home.job(job, verb="take a savepoint of")
        if portable:
            return action.start(lambda _report: home.take_portable_savepoint(job, to=None))
        return action.start(lambda report: home.take_savepoint(job, patience=_patience(report)))


def restore(
    context: ServerContext,
    access: Access,
    job: str,
    *,
    source: str | None = None,
    at: str | None = None,
    drop: Collection[str] = (),
    stop: bool = False,
    resolved: SealedPlan | None = None,
) -> Operation:
    """Go back to a checkpoint and run on from there.

    Args:
        source: A checkpoint's id, `latest`, a savepoint's name, or `LINEAGE/chk-17`.
        at: A moment instead: `2026-11-15 10:05` or `10m ago`.
        drop: Uids whose state is left behind.
        stop: Stop the job first if it is running; otherwise a running job is refused.
        resolved: The plan that `plan_restore` returned for the same arguments; resolved here if
            left out.
    """
    details = {"from": source, "at": at, "drop_state": list(drop), "stop": stop}
    with Action(context, access, "restore", job, details) as action:
        place, uids = _check_restore(source, at, drop)
        if stop:
            action.home.job(job, verb="restore")
        else:
            action.home.check_at_rest(job, verb="restore")
        action.home.last_start(job)

        def work(report: Progress) -> dict[str, Any]:
            # Before anything is stopped: a job that cannot be restored is better left running.
            sealed = resolved or action.home.resolve_apart(job, source=place, at=at, drop=uids)
            # A stop adds a checkpoint, and retention may remove the oldest one for it.
            with action.home.hold_checkpoint(job, sealed.plan.folder):
                recovery = None
                before = action.home.job(job)
                if stop and before.is_alive:
                    recovery = Recovery(action, before, report)
                    action.home.stop(job, patience=_patience(report))
                report("starting")
                try:
                    started = action.home.restore_kept(
                        job, sealed, drop=uids, by=access.who, keep=context.keeps_up
                    )
                except Exception as error:
                    if recovery is not None:
                        recovery.start_after(error)
                    raise
            return {**started, "restored": encode(sealed.plan)}

        return action.start(work)


def plan_restore(
    context: ServerContext,
    access: Access,
    job: str,
    *,
    source: str | None = None,
    at: str | None = None,
    drop: Collection[str] = (),
) -> SealedPlan:
    """Return what a restore would do; nothing is done, and the job may be running."""
    access.check(Role.VIEW, to="foresee a restore")
    names.check_job(job)
    context.check_shown(job)
    place, uids = _check_restore(source, at, drop)
    with context.slow_read():
        return context.home.resolve_apart(job, source=place, at=at, drop=uids)


def pin(
    context: ServerContext, access: Access, job: str, checkpoint: str, *, pinned: bool
) -> Operation:
    """Keep a checkpoint whatever the retention says, or return it to the retention."""
    verb = "pin" if pinned else "unpin"
    with Action(context, access, verb, job, {"checkpoint": checkpoint}) as action:
        names.check_place(checkpoint)
        return action.do(lambda: action.home.pin(job, checkpoint, pinned=pinned))


def replay(context: ServerContext, access: Access, job: str, request: ReplayRequest) -> Operation:
    """Send dead letters to their topics again."""
    with Action(context, access, "replay", job, encode(request)) as action:
        if len(request.ids) > _MOST_IDS:
            raise HeadgateError(
                "BAD_REQUEST",
                f"cannot replay {len(request.ids)} dead letters by their ids: the maximum is "
                f"{_MOST_IDS}",
                hint="give a reason instead",
            )
        for letter in request.ids:
            names.check_letter(letter)
        action.home.job(job, verb="replay dead letters of")
        return action.start(
            lambda _report: action.home.replay_dead_letters(job, request, by=access.who)
        )


def _check_submit(
    action: Action,
    flow: str,
    settings: Mapping[str, Any] | None,
    *,
    fresh: bool,
    restore_from: str | None,
    consent: Consent,
) -> tuple[str, RunOptions]:
    """Return the flow's file and the options of a submit, or refuse it."""
    context = action.context
    if context.settings.only is not None:
        raise HeadgateError(
            "FLOWS_NOT_SERVED",
            f"cannot submit a flow: this server serves only job {context.settings.only!r}",
            hint="headgate serve --flows DIR",
        )
    file = find_flow_file(context.settings.flows, flow)
    chosen = names.check_settings(settings or {})
    source = names.check_place(restore_from)
    if fresh and source is not None:
        raise HeadgateError(
            "BAD_REQUEST",
            "cannot submit a flow with both fresh and restore_from",
            hint="omit fresh or restore_from",
        )
    job = find_job_name(file)
    if job in action.home.names():
        action.home.check_at_rest(str(job), verb="submit")
    options = action.home.resolve_submit(
        file,
        on=context.settings.on,
        settings=chosen,
        fresh=fresh,
        restore_from=source,
        consent=consent,
    )
    return file, options


def _end(
    action: Action,
    job: str,
    end: Callable[..., Any],
    *,
    must_run: bool = False,
    more: Mapping[str, Any] | None = None,
) -> Operation:
    """End a job that the server does not start again from now on.

    A job that died, and that the server would start again, is only let go of.

    Args:
        must_run: Refuse such a job instead.
        more: Further fields of the result for such a job.
    """
    dead = None if must_run else find_dead(action.context, job, verb=action.verb)
    if dead is not None:
        return action.do(lambda: {**let_go(action.context, dead), **(more or {})})

    def end_for_good(patience: Patience) -> Any:
        with letting_go(action.context, job):
            return end(patience=patience)

    action.home.check_running(job, verb=action.verb)
    return _ask(action, end_for_good)


def _ask(action: Action, ask: Callable[..., Any]) -> Operation:
    return action.start(lambda report: ask(patience=_patience(report)))


def _start(action: Action, job: str, start: Callable[..., Any], consent: Consent) -> Operation:
    action.home.last_start(job)
    by, keep = action.access.who, action.context.keeps_up
    return action.start(lambda _report: start(job, by=by, keep=keep, consent=consent))


def _check_restore(
    source: str | None, at: str | None, drop: Collection[str]
) -> tuple[str | None, tuple[str, ...]]:
    if source is not None and at is not None:
        raise HeadgateError(
            "BAD_REQUEST", "cannot restore with both from and at", hint="omit from or at"
        )
    return names.check_place(source), tuple(names.check_uid(uid) for uid in drop)


def _patience(report: Progress) -> Patience:
    def tell(view: JobView, waited: timedelta) -> None:
        seconds = timedelta(seconds=round(waited.total_seconds()))
        report(f"job {view.name} is {view.state} after {format_duration(seconds)}")

    return Patience(on_wait=tell)
