"""REST on the outputs and dead letters of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.server.actions import verbs
from headgate.server.api import models
from headgate.server.api.models import Job
from headgate.server.api.routing import Server, Who, accepted, make_router, reply
from headgate.server.operations import Operation


def output_routes() -> APIRouter:
    """Return the routes on outputs and dead letters."""
    router = make_router("outputs")

    @router.get("/jobs/{job}/outputs", response_model=models.Outputs)
    def list_outputs(server: Server, job: Job) -> Response:
        """List the outputs of a job: side outputs first, dead letters last."""
        with server.slow_read():
            found = server.home.outputs(job)
        return reply(server, models.Outputs(found))

    @router.get("/jobs/{job}/outputs/{output}/records", response_model=models.OutputRecords)
    def tail_output(
        server: Server, job: Job, output: models.OutputId, lines: models.Lines = 20
    ) -> Response:
        """Show the last records of an output."""
        with server.slow_read():
            found = server.home.output_records(job, output, lines=lines)
        return reply(server, models.OutputRecords(output, found), guess=False)

    @router.get("/jobs/{job}/dead-letters", response_model=DeadLetters)
    def list_dead_letters(
        server: Server,
        job: Job,
        reason: Annotated[str | None, Query(max_length=256)] = None,
        limit: Annotated[int, Query(ge=0, le=1000)] = 100,
    ) -> Response:
        """List the newest dead letters, and how many there are by topic and reason."""
        with server.slow_read():
            found = server.home.dead_letters(job, reason=reason, limit=limit)
        return reply(server, found, guess=False)

    @router.get("/jobs/{job}/dead-letters/{letter}", response_model=DeadLetter)
    def show_dead_letter(server: Server, job: Job, letter: models.LetterId) -> Response:
        """Show one dead letter with its raw record."""
        with server.slow_read():
            found = server.home.dead_letter(job, letter)
        return reply(server, found, guess=False)

    @router.post(
        "/jobs/{job}/dead-letters/replay",
        response_model=Operation,
        status_code=202,
    )
    def replay_dead_letters(
        server: Server, who: Who, job: Job, body: models.Replay | None = None
    ) -> Response:
        """Send dead letters to their topics again, after what was wrong is mended."""
        asked = body or models.Replay()
        begun = verbs.replay(server, who, job, **asked.model_dump())
        return accepted(server, begun)

    return router
