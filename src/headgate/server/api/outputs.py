"""REST on the outputs and dead letters of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from headgate._codec import decode
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import ReplayRequest
from headgate.server.actions import verbs
from headgate.server.api import models
from headgate.server.api.models import Job
from headgate.server.api.paging import Newest
from headgate.server.api.routing import Router, Server, Who, user_data
from headgate.server.operations import Operation


def output_routes() -> APIRouter:
    """Return the routes on outputs and dead letters."""
    router = Router("outputs")

    @router.get("/jobs/{job}/outputs")
    def list_outputs(server: Server, job: Job) -> models.Outputs:
        """List the outputs of a job: side outputs first, dead letters last."""
        with server.slow_read():
            return models.Outputs(server.home.outputs(job))

    @router.get("/jobs/{job}/outputs/{output}/records")
    @user_data
    def list_output_records(
        server: Server, job: Job, output: models.OutputId, limit: Newest = 20
    ) -> models.OutputRecords:
        """Show the last records of an output."""
        with server.slow_read():
            records = server.home.output_records(job, output, lines=limit)
        return models.OutputRecords(output, records)

    @router.get("/jobs/{job}/dead-letters")
    @user_data
    def list_dead_letters(
        server: Server,
        job: Job,
        reason: Annotated[str | None, Query(max_length=256)] = None,
        limit: Newest = 100,
    ) -> DeadLetters:
        """List the newest dead letters, and how many there are by topic and reason."""
        with server.slow_read():
            return server.home.dead_letters(job, reason=reason, limit=limit)

    @router.get("/jobs/{job}/dead-letters/{letter}")
    @user_data
    def get_dead_letter(server: Server, job: Job, letter: models.LetterId) -> DeadLetter:
        """Show one dead letter with its raw record."""
        with server.slow_read():
            return server.home.dead_letter(job, letter)

    @router.post("/jobs/{job}/dead-letters/replay", status_code=202)
    def replay_dead_letters(
        server: Server, who: Who, job: Job, body: models.Replay | None = None
    ) -> Operation:
        """Send dead letters to their topics again, after what was wrong is mended."""
        request = decode(ReplayRequest, (body or models.Replay()).model_dump())
        return verbs.replay(server, who, job, request)

    return router
