"""REST on the state of jobs."""

from __future__ import annotations

from fastapi import APIRouter

from headgate.jobs.state.values import StateHistory, StateOverview, StateRows, StateValue
from headgate.server.api import models
from headgate.server.api.models import At, Job, Key, Uid
from headgate.server.api.paging import Limit
from headgate.server.api.routing import Router, Server, user_data


def state_routes() -> APIRouter:
    """Return the routes on state."""
    router = Router("state")

    @router.get("/jobs/{job}/state")
    def list_operators(server: Server, job: Job, at: At = None) -> StateOverview:
        """List the operators that hold state: kind, variables, keys, rows, bytes."""
        return server.home.operators(job, at=at)

    @router.get("/jobs/{job}/state/{uid}/value")
    @user_data
    def get_state_value(server: Server, job: Job, uid: Uid, key: Key, at: At = None) -> StateValue:
        """Show the value of one key: now, or at a checkpoint."""
        server.home.job(job)
        with server.slow_read():
            return server.home.state.look_up(job, uid, key, at=at)

    @router.get("/jobs/{job}/state/{uid}/history")
    @user_data
    def get_state_history(server: Server, job: Job, uid: Uid, key: Key) -> StateHistory:
        """Show the value of one key at every retained checkpoint, and what changed."""
        server.home.job(job)
        with server.slow_read():
            return server.home.state.history(job, uid, key)

    @router.get("/jobs/{job}/state/{uid}/rows")
    @user_data
    def list_state_rows(
        server: Server,
        job: Job,
        uid: Uid,
        at: At = None,
        limit: Limit = 50,
    ) -> StateRows:
        """Show the first rows of an operator's state."""
        server.home.job(job)
        with server.slow_read():
            return server.home.state.first_rows(job, uid, at=at, limit=limit)

    @router.post("/jobs/{job}/state/sql")
    @user_data
    def query_state(server: Server, job: Job, body: models.StateQuery) -> StateRows:
        """Ask an operator's state in SQL; the table is called `state`."""
        server.home.job(job)
        with server.slow_read():
            return server.home.state.query(
                job, body.sql, uid=body.uid, at=body.at, limit=body.limit
            )

    return router
