"""REST on jobs: what they are, and what is asked of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.verbs import Loss
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.job import JobView
from headgate.jobs.views.logs import Log
from headgate.jobs.views.samples import Samples
from headgate.server.actions import verbs
from headgate.server.api import models
from headgate.server.api.models import Job
from headgate.server.api.routing import Server, Who, accepted, make_router, reply
from headgate.server.context import ServerContext
from headgate.server.operations import Operation

# The end of a log is all that is read; lines are cut, so that no answer is endless.
_LONGEST_LINE = 4_096


def job_routes() -> APIRouter:
    """Return the routes under /v1/jobs that are on jobs themselves."""
    router = make_router("jobs")

    @router.get("/jobs", response_model=models.Jobs)
    def list_jobs(server: Server) -> Response:
        """List the jobs of the server's home."""
        return reply(server, models.Jobs(_summaries(server)))

    @router.post("/jobs", response_model=Operation, status_code=202)
    def submit_job(server: Server, who: Who, body: models.Submit) -> Response:
        """Start a flow of the flows folder as a job in the background."""
        begun = verbs.submit(
            server,
            who,
            flow=body.flow,
            settings=body.settings,
            fresh=body.fresh,
            restore_from=body.restore_from,
            consent=body.consent(),
        )
        return accepted(server, begun)

    @router.get("/jobs/{job}", response_model=models.JobShown)
    def show_job(server: Server, job: Job) -> Response:
        """Show one job: its state, counts, lag, last failure and settings."""
        return reply(server, _details(server, job))

    @router.get("/jobs/{job}/config", response_model=models.Config)
    def show_config(server: Server, job: Job) -> Response:
        """Show how a job was last started."""
        shown = server.home.details(job)
        return reply(server, models.Config(job, shown.flow, shown.settings))

    _add_views(router)
    _add_logs(router)
    _add_verbs(router)
    _add_savepoints(router)
    return router


def _add_views(router: APIRouter) -> None:
    @router.get("/jobs/{job}/graph", response_model=GraphView)
    def show_graph(server: Server, job: Job) -> Response:
        """Show a job's graph: nodes with their facts, and edges with what moves on them."""
        return reply(server, server.home.graph(job))

    @router.get("/jobs/{job}/events", response_model=Events)
    def list_events(
        server: Server,
        job: Job,
        after: Annotated[
            int, Query(ge=0, le=2**53, description="Those with a greater number.")
        ] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> Response:
        """List what happened to a job, oldest first; each event has a number."""
        found = server.home.events(job, after=after, limit=limit)
        return reply(server, found)

    @router.get("/jobs/{job}/exceptions", response_model=Exceptions)
    def list_exceptions(server: Server, job: Job) -> Response:
        """List the failures of a job, newest first, and its attempts."""
        return reply(server, server.home.exceptions(job))

    @router.get("/jobs/{job}/samples", response_model=Samples)
    def read_samples(
        server: Server,
        job: Job,
        since: Annotated[
            datetime | None, Query(description="ISO 8601; UTC without a zone.")
        ] = None,
        points: Annotated[int, Query(ge=2, le=2000)] = 300,
    ) -> Response:
        """Read the series of a job's charts: rates, lag, batch times, latency, state."""
        moment = since.replace(tzinfo=UTC) if since and since.tzinfo is None else since
        found = server.home.samples(job, since=moment, points=points)
        return reply(server, found, guess=False)


def _add_logs(router: APIRouter) -> None:
    @router.get("/jobs/{job}/logs", response_model=models.LogLines)
    def read_log(
        server: Server,
        job: Job,
        log: Log = Log.SPARK,
        lines: models.LogLength = 200,
        after: models.LogPosition = None,
    ) -> Response:
        """Read the last lines of a job's log, or those that came after an answer before."""
        page = server.home.page_log(job, log, last=lines, after=after)
        cut = tuple(line[:_LONGEST_LINE] for line in page.lines)
        return reply(server, models.LogLines(job, log, replace(page, lines=cut)))


def _add_verbs(router: APIRouter) -> None:
    @router.post("/jobs/{job}/stop", response_model=Operation, status_code=202)
    def stop_job(server: Server, who: Who, job: Job, body: models.Stop | None = None) -> Response:
        """Stop a job between two batches."""
        asked = body or models.Stop()
        begun = verbs.stop(server, who, job, drain=asked.drain, savepoint=asked.savepoint)
        return accepted(server, begun)

    @router.post(
        "/jobs/{job}/cancel",
        response_model=Operation,
        status_code=202,
        responses={200: {"model": Loss, "description": "What a dry run tells."}},
    )
    def cancel_job(
        server: Server, who: Who, job: Job, body: models.Cancel | None = None
    ) -> Response:
        """End a job at once; its checkpoints stay or go as its settings say."""
        if body is not None and body.dry_run:
            return reply(server, server.home.preview_cancel(job))
        return accepted(server, verbs.cancel(server, who, job))

    @router.post("/jobs/{job}/pause", response_model=Operation, status_code=202)
    def pause_job(server: Server, who: Who, job: Job) -> Response:
        """Make a job read nothing until it is resumed."""
        return accepted(server, verbs.pause(server, who, job))

    @router.post("/jobs/{job}/resume", response_model=Operation, status_code=202)
    def resume_job(server: Server, who: Who, job: Job) -> Response:
        """Let a paused job go on."""
        return accepted(server, verbs.resume(server, who, job))

    @router.post("/jobs/{job}/start", response_model=Operation, status_code=202)
    def start_job(server: Server, who: Who, job: Job, body: models.Start | None = None) -> Response:
        """Start a job as it was last run."""
        asked = body or models.Start()
        return accepted(server, verbs.start(server, who, job, consent=asked.consent()))

    @router.post("/jobs/{job}/restart", response_model=Operation, status_code=202)
    def restart_job(
        server: Server, who: Who, job: Job, body: models.Start | None = None
    ) -> Response:
        """Stop a job between two batches and start it again."""
        asked = body or models.Start()
        return accepted(server, verbs.restart(server, who, job, consent=asked.consent()))


def _add_savepoints(router: APIRouter) -> None:
    @router.post("/jobs/{job}/savepoints", response_model=Operation, status_code=202)
    def take_savepoint(
        server: Server, who: Who, job: Job, body: models.TakeSavepoint | None = None
    ) -> Response:
        """Take a savepoint in the job's own folder."""
        asked = body or models.TakeSavepoint()
        begun = verbs.take_savepoint(server, who, job, portable=asked.portable)
        return accepted(server, begun)

    @router.post(
        "/jobs/{job}/restore",
        response_model=Operation,
        status_code=202,
        responses={200: {"model": RestorePlan, "description": "The plan of a dry run."}},
    )
    def restore_job(server: Server, who: Who, job: Job, body: models.Restore) -> Response:
        """Go back to a checkpoint and run on from there, in a new run."""
        if body.dry_run:
            plan = verbs.foresee_restore(
                server, who, job, source=body.source, at=body.at, drop=body.drop_state
            )
            return reply(server, plan)
        begun = verbs.restore(
            server,
            who,
            job,
            source=body.source,
            at=body.at,
            drop=body.drop_state,
            stop=body.stop,
        )
        return accepted(server, begun)


def _summaries(server: ServerContext) -> tuple[models.JobSummary, ...]:
    kept = _kept_up(server)
    return tuple(models.JobSummary(view, view.name in kept) for view in shown_jobs(server))


def shown_jobs(server: ServerContext) -> list[JobView]:
    """Return the jobs that a server shows, in short."""
    only = server.settings.only
    found = server.home.jobs()
    return [each for each in found if only is None or each.name == only]


def _kept_up(server: ServerContext) -> frozenset[str]:
    if not server.keeps_up:
        return frozenset()
    try:
        return frozenset(server.home.session.list())
    except HeadgateError:
        # /readyz tells of it; a list of jobs is worth more than this.
        return frozenset()


def _details(server: ServerContext, job: str) -> dict[str, Any]:
    told = server.home.details(job).to_json()
    told.pop("checkpoints")
    return {**told, "kept_up": job in _kept_up(server)}
