"""REST on jobs: what they are, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from headgate._codec import encode
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.verbs import Loss
from headgate.jobs.removal.deletion import Deletion
from headgate.jobs.removal.pruning import Pruning
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.log_search import LogFilter
from headgate.jobs.views.logs import Log
from headgate.jobs.views.processes import Processes
from headgate.jobs.views.samples import Samples
from headgate.server.actions import verbs
from headgate.server.api import models
from headgate.server.api.models import Job
from headgate.server.api.paging import EventCursor, Limit, LogCursor
from headgate.server.api.routing import ERRORS, Router, Server, Who, reply, user_data
from headgate.server.context import ServerContext
from headgate.server.operations import Operation

# Lines of a log are cut, so that no answer is endless.
_LONGEST_LINE = 4_096
# A download is sent in pieces of about this many bytes.
_PIECE = 1 << 18


def job_routes() -> APIRouter:
    """Return the routes under /v1/jobs that are on jobs themselves."""
    router = Router("jobs")

    @router.get("/jobs")
    def list_jobs(server: Server) -> models.Jobs:
        """List the jobs of the server's home."""
        kept = _kept_up(server)
        return models.Jobs(
            tuple(models.JobSummary(view, view.name in kept) for view in server.shown_jobs())
        )

    @router.post("/jobs", status_code=202)
    def submit_job(
        server: Server,
        who: Who,
        body: models.Submit,
        idempotency_key: models.IdempotencyKey = None,
    ) -> Operation:
        """Start a flow of the flows folder as a job in the background."""
        return verbs.submit(
            server,
            who,
            flow=body.flow,
            settings=body.settings,
            fresh=body.fresh,
            restore_from=body.restore_from,
            consent=body.consent(),
            key=idempotency_key,
        )

    @router.get("/jobs/{job}", response_model=models.JobShown)
    def get_job(server: Server, job: Job) -> dict[str, Any]:
        """Show one job: its state, counts, lag, last failure and settings."""
        details = encode(server.home.details(job, listed=False))
        details.pop("checkpoints")
        return {**details, "kept_up": job in _kept_up(server)}

    @router.get("/jobs/{job}/config")
    def get_job_config(server: Server, job: Job) -> models.Config:
        """Show how a job was last started."""
        details = server.home.details(job, listed=False)
        return models.Config(job, details.flow, models.show_settings(details.settings))

    _add_views(router)
    _add_verbs(router)
    _add_savepoints(router)
    _add_removal(router)
    _add_log_search(router)
    return router


def _add_views(router: Router) -> None:
    @router.get("/jobs/{job}/graph")
    def get_graph(server: Server, job: Job) -> GraphView:
        """Show a job's graph: nodes with their facts, and edges with what moves on them."""
        return server.home.graph(job)

    @router.get("/jobs/{job}/processes")
    def get_processes(server: Server, job: Job) -> Processes:
        """Show the driver and the executors of a job: their tasks, memory, times and logs."""
        return server.home.processes(job)

    @router.get("/jobs/{job}/events")
    def list_events(
        server: Server,
        job: Job,
        after: EventCursor = None,
        limit: Limit = 200,
    ) -> Events:
        """List what happened to a job, oldest first; each event has a number."""
        seen = None if after is None else int(after)
        return server.home.events(job, after=seen, limit=limit)

    @router.get("/jobs/{job}/exceptions")
    def list_exceptions(server: Server, job: Job) -> Exceptions:
        """List the failures of a job, newest first, and its attempts."""
        return server.home.exceptions(job)

    @router.get("/jobs/{job}/samples")
    @user_data
    def get_samples(
        server: Server,
        job: Job,
        since: Annotated[
            datetime | None, Query(description="ISO 8601; UTC without a zone.")
        ] = None,
        points: Annotated[int, Query(ge=2, le=2000)] = 300,
    ) -> Samples:
        """Read the series of a job's charts: rates, lag, batch times, latency, state."""
        moment = since.replace(tzinfo=UTC) if since and since.tzinfo is None else since
        return server.home.samples(job, since=moment, points=points)

    @router.get("/jobs/{job}/logs")
    def get_log(
        server: Server,
        job: Job,
        log: Log = Log.SPARK,
        executor: models.LogExecutor = None,
        after: LogCursor = None,
        limit: models.LogLength = 200,
    ) -> models.LogLines:
        """Read the last lines of a job's log, or those that came after an answer before."""
        page = server.home.page_log(job, log, last=limit, after=after, executor=executor)
        cut = tuple(line[:_LONGEST_LINE] for line in page.lines)
        return models.LogLines(job, log, replace(page, lines=cut))


def _add_verbs(router: Router) -> None:
    post = partial(router.post, status_code=202)

    @post("/jobs/{job}/stop")
    def stop_job(server: Server, who: Who, job: Job, body: models.Stop | None = None) -> Operation:
        """Stop a job between two batches."""
        return verbs.stop(server, who, job, **(body or models.Stop()).model_dump())

    @post(
        "/jobs/{job}/cancel",
        response_model=Operation,
        responses={200: {"model": Loss, "description": "What a dry run tells."}},
    )
    def cancel_job(
        server: Server, who: Who, job: Job, body: models.Cancel | None = None
    ) -> Operation | Response:
        """End a job at once; its checkpoints stay or go as its settings say."""
        if body is not None and body.dry_run:
            return reply(server.home.preview_cancel(job))
        return verbs.cancel(server, who, job)

    @post("/jobs/{job}/pause")
    def pause_job(server: Server, who: Who, job: Job) -> Operation:
        """Make a job read nothing until it is resumed."""
        return verbs.pause(server, who, job)

    @post("/jobs/{job}/resume")
    def resume_job(server: Server, who: Who, job: Job) -> Operation:
        """Let a paused job go on."""
        return verbs.resume(server, who, job)

    @post("/jobs/{job}/start")
    def start_job(
        server: Server, who: Who, job: Job, body: models.Start | None = None
    ) -> Operation:
        """Start a job as it was last run."""
        return verbs.start(server, who, job, consent=(body or models.Start()).consent())

    @post("/jobs/{job}/restart")
    def restart_job(
        server: Server, who: Who, job: Job, body: models.Start | None = None
    ) -> Operation:
        """Stop a job between two batches and start it again."""
        return verbs.restart(server, who, job, consent=(body or models.Start()).consent())


def _add_savepoints(router: Router) -> None:
    @router.post("/jobs/{job}/savepoints", status_code=202)
    def take_savepoint(
        server: Server, who: Who, job: Job, body: models.TakeSavepoint | None = None
    ) -> Operation:
        """Take a savepoint in the job's own folder."""
        return verbs.take_savepoint(server, who, job, portable=body is not None and body.portable)

    @router.post(
        "/jobs/{job}/restore",
        response_model=Operation,
        status_code=202,
        responses={200: {"model": RestorePlan, "description": "The plan of a dry run."}},
    )
    def restore_job(
        server: Server, who: Who, job: Job, body: models.Restore
    ) -> Operation | Response:
        """Go back to a checkpoint and run on from there, in a new run."""
        target: dict[str, Any] = {"source": body.source, "at": body.at, "drop": body.drop_state}
        if body.dry_run:
            return reply(verbs.plan_restore(server, who, job, **target).plan)
        return verbs.restore(server, who, job, **target, stop=body.stop)


def _add_removal(router: Router) -> None:
    @router.delete(
        "/jobs/{job}",
        response_model=Operation,
        status_code=202,
        responses={200: {"model": Deletion, "description": "What a dry run tells."}},
    )
    def delete_job(
        server: Server,
        who: Who,
        job: Job,
        keep_savepoints: Annotated[
            bool, Query(description="Leave the savepoints in the job's folder.")
        ] = False,
        dry_run: Annotated[
            bool, Query(description="Answer 200 with what would be removed, and what stays.")
        ] = False,
    ) -> Operation | Response:
        """Delete a job that is not running: its runs, checkpoints, savepoints and logs."""
        if dry_run:
            with server.slow_read():
                return reply(server.home.preview_delete(job, keep_savepoints=keep_savepoints))
        return verbs.delete(server, who, job, keep_savepoints=keep_savepoints)

    @router.post(
        "/jobs/{job}/prune",
        status_code=202,
        response_model=Operation,
        responses={200: {"model": Pruning, "description": "What a dry run tells."}},
    )
    def prune_job(
        server: Server, who: Who, job: Job, body: models.Prune | None = None
    ) -> Operation | Response:
        """Remove the files of a job's old runs that nothing needs; the job may be running."""
        wanted = body or models.Prune()
        if wanted.dry_run:
            with server.slow_read():
                return reply(server.home.prune(job, **wanted.model_dump()))
        return verbs.prune(server, who, job, drop_checkpoints=wanted.drop_checkpoints)


def _add_log_search(router: Router) -> None:
    @router.get("/jobs/{job}/logs/search")
    def search_log(
        server: Server,
        job: Job,
        log: Log = Log.SPARK,
        executor: models.LogExecutor = None,
        text: models.LogText = "",
        level: models.LeastLevel = None,
        limit: models.LogLength = 200,
    ) -> models.LogFound:
        """Search a job's whole log, also rolled files; return the last matching lines."""
        wanted = LogFilter(text=text, level=level)
        with server.slow_read():
            matches = server.home.search_log(job, log, wanted, last=limit, executor=executor)
        cut = tuple(line[:_LONGEST_LINE] for line in matches.lines)
        return models.LogFound(job, log, replace(matches, lines=cut))

    @router.get(
        "/jobs/{job}/logs/download",
        response_class=Response,
        responses={
            **{status: _as_json(error) for status, error in ERRORS.items()},
            200: {
                "description": "The lines.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
        },
    )
    def download_log(
        server: Server,
        job: Job,
        log: Log = Log.SPARK,
        executor: models.LogExecutor = None,
        text: models.LogText = "",
        level: models.LeastLevel = None,
    ) -> Response:
        """Download a job's whole log, also rolled files, or its matching lines, as text."""
        wanted = LogFilter(text=text, level=level)
        lines = server.home.filter_log(job, log, wanted, executor=executor)
        name = f"{job}-{log.value}{f'-{executor}' if log is Log.EXECUTOR else ''}.log"
        return StreamingResponse(
            _pieces(lines, server.hide),
            media_type="text/plain; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _as_json(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of an error whose route does not answer in JSON otherwise."""
    schema = {"$ref": "#/components/schemas/Problem"}
    content = {"application/json": {"schema": schema}}
    return {"description": error["description"], "content": content}


def _pieces(lines: Iterable[bytes], hide: Callable[[str], str]) -> Iterator[str]:
    """Yield lines without secrets as large pieces: a secret is looked for once in each."""
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line.decode("utf-8", errors="backslashreplace"))
        size += len(line)
        if size >= _PIECE:
            yield hide("\n".join(piece)) + "\n"
            piece, size = [], 0
    if piece:
        yield hide("\n".join(piece)) + "\n"


def _kept_up(server: ServerContext) -> frozenset[str]:
    if not server.keeps_up:
        return frozenset()
    try:
        return frozenset(server.home.session.list())
    except HeadgateError:
        # /readyz reports it; a list of jobs is worth more than this.
        return frozenset()
