"""REST on the state of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from headgate.jobs import service
from headgate.server.api import models
from headgate.server.api.models import At, Job, Key, Uid
from headgate.server.api.routing import Server, make_router, reply


def state_routes() -> APIRouter:
    """Return the routes on state."""
    router = make_router("state")

    @router.get("/jobs/{job}/state", response_model=service.StateOverview)
    def list_state(server: Server, job: Job, at: At = None) -> Response:
        """List the operators that hold state: kind, variables, keys, rows, bytes."""
        return reply(server, service.list_state(server.settings.home, job, at=at))

    @router.get("/jobs/{job}/state/{uid}/value", response_model=service.StateValue)
    def look_up(server: Server, job: Job, uid: Uid, key: Key, at: At = None) -> Response:
        """Show the value of one key: now, or at a checkpoint."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.look_up(job, uid, key, at=at)
        return reply(server, found, guess=False)

    @router.get("/jobs/{job}/state/{uid}/history", response_model=service.StateHistory)
    def show_history(server: Server, job: Job, uid: Uid, key: Key) -> Response:
        """Show the value of one key at every retained checkpoint, and what changed."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.history(job, uid, key)
        return reply(server, found, guess=False)

    @router.get("/jobs/{job}/state/{uid}/rows", response_model=service.StateRows)
    def first_rows(
        server: Server,
        job: Job,
        uid: Uid,
        at: At = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        """Show the first rows of an operator's state."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.first_rows(job, uid, at=at, limit=limit)
        return reply(server, found, guess=False)

    @router.post("/jobs/{job}/state/sql", response_model=service.StateRows)
    def query_state(server: Server, job: Job, body: models.StateQuery) -> Response:
        """Ask an operator's state in SQL; the table is called `state`."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.query(job, body.sql, uid=body.uid, at=body.at, limit=body.limit)
        return reply(server, found, guess=False)

    return router
