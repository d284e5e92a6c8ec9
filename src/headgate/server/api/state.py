"""REST on the state of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from headgate.jobs.state.values import StateHistory, StateOverview, StateRows, StateValue
from headgate.server.api import models
from headgate.server.api.models import At, Job, Key, Uid
from headgate.server.api.routing import Server, make_router, reply


def state_routes() -> APIRouter:
    """Return the routes on state."""
    router = make_router("state")

    @router.get("/jobs/{job}/state", response_model=StateOverview)
    def list_state(server: Server, job: Job, at: At = None) -> Response:
        """List the operators that hold state: kind, variables, keys, rows, bytes."""
        return reply(server, server.home.operators(job, at=at))

    @router.get("/jobs/{job}/state/{uid}/value", response_model=StateValue)
    def look_up(server: Server, job: Job, uid: Uid, key: Key, at: At = None) -> Response:
        """Show the value of one key: now, or at a checkpoint."""
        server.home.job(job)
        with server.slow_read():
            found = server.home.state.look_up(job, uid, key, at=at)
        return reply(server, found, guess=False)

    @router.get("/jobs/{job}/state/{uid}/history", response_model=StateHistory)
    def show_history(server: Server, job: Job, uid: Uid, key: Key) -> Response:
        """Show the value of one key at every retained checkpoint, and what changed."""
        server.home.job(job)
        with server.slow_read():
            found = server.home.state.history(job, uid, key)
        return reply(server, found, guess=False)

    @router.get("/jobs/{job}/state/{uid}/rows", response_model=StateRows)
    def first_rows(
        server: Server,
        job: Job,
        uid: Uid,
        at: At = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        """Show the first rows of an operator's state."""
        server.home.job(job)
        with server.slow_read():
            found = server.home.state.first_rows(job, uid, at=at, limit=limit)
        return reply(server, found, guess=False)

    @router.post("/jobs/{job}/state/sql", response_model=StateRows)
    def query_state(server: Server, job: Job, body: models.StateQuery) -> Response:
        """Ask an operator's state in SQL; the table is called `state`."""
        server.home.job(job)
        with server.slow_read():
            found = server.home.state.query(
                job, body.sql, uid=body.uid, at=body.at, limit=body.limit
            )
        return reply(server, found, guess=False)

    return router
