"""What changes something: for REST and the console alike.

Each action checks the role, is counted against the client's rate, writes the audit log, and gives
an operation. What can be refused at once is refused by an error here; the rest goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from headgate._codec import encode
from headgate._units import format_duration
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.portable import PortableSavepoint
from headgate.jobs.control.requests import Patience
from headgate.jobs.control.verbs import Savepoint, Stopped
from headgate.jobs.dead_letters.replay import Replayed
from headgate.jobs.values import NO_CONSENT, Consent
from headgate.jobs.views.job import JobView
from headgate.server.actions.flow_folder import find_flow_file
from headgate.server.actions.request import Asked
from headgate.server.actions.upkeep import LetGo, StartAgain, find_dead, let_go
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
) -> Operation:
    """Start a flow of the flows folder as a job in the background.

    Args:
        flow: As `GET /v1/flows` names it.
        settings: By the names of headgate.toml; those of `names.SETTINGS`.
        restore_from: A checkpoint's id, `latest`, or a savepoint's name.
        consent: What the user agrees to this time.
    """
    given = {
        "flow": flow,
        "settings": dict(settings or {}),
        "fresh": fresh,
        "from": restore_from,
        **encode(consent),
    }
    with Asked(context, access, "submit", None, given) as asked:
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
        return asked.start(
            lambda _tell: asked.home.submit(
                file,
                on=context.settings.on,
                settings=chosen,
                fresh=fresh,
                restore_from=source,
                by=access.who,
                keep=context.keeps_up,
                consent=consent,
            )
        )


def stop(
    context: ServerContext,
    access: Access,
    job: str,
    *,
    drain: bool = False,
    savepoint: bool = False,
) -> Operation:
    """Stop a job between two batches; it is not kept up any more.

    One that died, and would be taken up again, is only kept up no more.
    """
    with Asked(context, access, "stop", job, {"drain": drain, "savepoint": savepoint}) as asked:
        view = None if drain or savepoint else find_dead(context, job, verb="stop")
        if view is not None:
            return asked.do(lambda: {**let_go(context, view), "savepoint": None})
        asked.home.check_running(job, verb="stop")

        def work(tell: Progress) -> Stopped:
            with LetGo(context, job):
                return asked.home.stop(
                    job,
                    savepoint="" if savepoint else None,
                    drain=drain,
                    patience=_patience(tell),
                )

        return asked.start(work)


def cancel(context: ServerContext, access: Access, job: str) -> Operation:
    """End a job at once; it is not kept up any more.

    One that died, and would be taken up again, is only kept up no more.
    """
    with Asked(context, access, "cancel", job) as asked:
        view = find_dead(context, job, verb="cancel")
        if view is not None:
            return asked.do(lambda: let_go(context, view))
        asked.home.check_running(job, verb="cancel")

        def work(tell: Progress) -> JobView:
            with LetGo(context, job):
                return asked.home.cancel(job, patience=_patience(tell))

        return asked.start(work)


def pause(context: ServerContext, access: Access, job: str) -> Operation:
    """Make a job read nothing until it is resumed."""
    return _run_verb(context, access, "pause", job, context.home.pause)


def resume(context: ServerContext, access: Access, job: str) -> Operation:
    """Let a paused job go on."""
    return _run_verb(context, access, "resume", job, context.home.resume)


def start(
    context: ServerContext, access: Access, job: str, *, consent: Consent = NO_CONSENT
) -> Operation:
    """Start a job as it was last run, in the background."""
    with Asked(context, access, "start", job, encode(consent)) as asked:
        asked.home.check_at_rest(job, verb="start")
        asked.home.last_start(job)
        return asked.start(
            lambda _tell: asked.home.start_kept(
                job, by=access.who, keep=context.keeps_up, consent=consent
            )
        )


def restart(
    context: ServerContext, access: Access, job: str, *, consent: Consent = NO_CONSENT
) -> Operation:
    """Stop a job between two batches and start it again."""
    with Asked(context, access, "restart", job, encode(consent)) as asked:
        asked.home.last_start(job)
        return asked.start(
            lambda _tell: asked.home.restart_kept(
                job, by=access.who, keep=context.keeps_up, consent=consent
            )
        )


def take_savepoint(
    context: ServerContext, access: Access, job: str, *, portable: bool = False
) -> Operation:
    """Take a savepoint of a job in the job's own folder, whether it is running or not."""
    with Asked(context, access, "savepoint", job, {"portable": portable}) as asked:
        asked.home.job(job, verb="take a savepoint of")

        def work(tell: Progress) -> Savepoint | PortableSavepoint:
            if portable:
                return asked.home.take_portable_savepoint(job, to=None)
            return asked.home.take_savepoint(job, patience=_patience(tell))

        return asked.start(work)


def restore(
    context: ServerContext,
    access: Access,
    job: str,
    *,
    source: str | None = None,
    at: str | None = None,
    drop: Collection[str] = (),
    stop: bool = False,
) -> Operation:
    """Go back to a checkpoint and run on from there.

    Args:
        source: A checkpoint's id, `latest`, a savepoint's name, or `LINEAGE/chk-17`.
        at: A moment instead: `2026-11-15 10:05` or `10m ago`.
        drop: Uids whose state is left behind.
        stop: Stop the job first if it is running; else one that runs is refused.
    """
    given = {"from": source, "at": at, "drop_state": list(drop), "stop": stop}
    with Asked(context, access, "restore", job, given) as asked:
        place, uids = _check_restore(source, at, drop)
        if stop:
            asked.home.job(job, verb="restore")
        else:
            asked.home.check_at_rest(job, verb="restore")
        asked.home.last_start(job)

        def work(tell: Progress) -> dict[str, Any]:
            # Before anything is stopped: what cannot be restored is better left running.
            sealed = asked.home.resolve_apart(job, source=place, at=at, drop=uids)
            # A stop adds a checkpoint, and the oldest one makes room for it.
            with asked.home.hold_checkpoint(job, sealed.plan.folder):
                again = None
                before = asked.home.job(job)
                if stop and before.is_alive:
                    again = StartAgain(context, access, before, tell)
                    asked.home.stop(job, patience=_patience(tell))
                tell("starting")
                try:
                    started = asked.home.restore_kept(
                        job, sealed, drop=uids, by=access.who, keep=context.keeps_up
                    )
                except Exception as error:
                    if again is not None:
                        again.start_after(error)
                    raise
            return {**started, "restored": encode(sealed.plan)}

        return asked.start(work)


def foresee_restore(
    context: ServerContext,
    access: Access,
    job: str,
    *,
    source: str | None = None,
    at: str | None = None,
    drop: Collection[str] = (),
) -> dict[str, Any]:
    """Return what a restore would do, as JSON values; nothing is done, and the job may run on."""
    access.check(Role.VIEW, to="foresee a restore")
    names.check_job(job)
    context.check_shown(job)
    place, uids = _check_restore(source, at, drop)
    with context.slow_read():
        sealed = context.home.resolve_apart(job, source=place, at=at, drop=uids)
        plan: dict[str, Any] = encode(sealed.plan)
        return plan


def pin(
    context: ServerContext, access: Access, job: str, checkpoint: str, *, pinned: bool
) -> Operation:
    """Make a checkpoint stay whatever is retained, or let it go when its time comes."""
    what = "pin" if pinned else "unpin"
    with Asked(context, access, what, job, {"checkpoint": checkpoint}) as asked:
        names.check_checkpoint(checkpoint)
        return asked.do(lambda: asked.home.pin(job, checkpoint, pinned=pinned))


def replay(
    context: ServerContext,
    access: Access,
    job: str,
    *,
    ids: Collection[str] = (),
    reason: str | None = None,
    again: bool = False,
    without_key: bool = False,
    into_tables: bool = False,
    dry_run: bool = False,
) -> Operation:
    """Send dead letters to their topics again.

    Args:
        ids: Those; empty for all, or for all of one reason.
        reason: All that were refused for this reason.
        again: Those too that were sent before, or may have been.
        without_key: Where a record is not kept any more, send its value without a key.
        into_tables: Those of tables without a version too, where an old row replaces a newer one.
        dry_run: Count what would be sent, and send nothing.
    """
    flags = {"again": again, "without_key": without_key, "dry_run": dry_run}
    given = {"ids": list(ids), "reason": reason, "into_tables": into_tables, **flags}
    with Asked(context, access, "replay", job, given) as asked:
        if len(ids) > _MOST_IDS:
            raise HeadgateError(
                "BAD_REQUEST",
                f"cannot replay {len(ids)} dead letters by their ids: the maximum is {_MOST_IDS}",
                hint="give a reason instead",
            )
        chosen = tuple(names.check_letter(each) for each in ids)
        asked.home.job(job, verb="replay dead letters of")

        def work(_tell: Progress) -> Replayed:
            return asked.home.replay_dead_letters(
                job,
                ids=chosen,
                reason=reason,
                by=access.who,
                again=again,
                without_key=without_key,
                into_tables=into_tables,
                dry_run=dry_run,
            )

        return asked.start(work)


def _run_verb(
    context: ServerContext,
    access: Access,
    verb: str,
    job: str,
    run: Callable[..., JobView],
) -> Operation:
    with Asked(context, access, verb, job) as asked:
        asked.home.check_running(job, verb=verb)
        return asked.start(lambda tell: run(job, patience=_patience(tell)))


def _check_restore(
    source: str | None, at: str | None, drop: Collection[str]
) -> tuple[str | None, tuple[str, ...]]:
    if source is not None and at is not None:
        raise HeadgateError(
            "BAD_REQUEST",
            "cannot restore with both from and at",
            hint="omit from or at",
        )
    return names.check_place(source), tuple(names.check_uid(each) for each in drop)


def _patience(tell: Progress) -> Patience:
    def told(view: JobView, waited: Any) -> None:
        tell(f"job {view.name} is {view.state} after {format_duration(_whole(waited))}")

    return Patience(told=told)


def _whole(waited: Any) -> Any:
    return type(waited)(seconds=round(waited.total_seconds()))
