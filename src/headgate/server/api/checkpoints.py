"""REST on checkpoints and savepoints."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from headgate.checkpoints.checkpoint import AnyCheckpoint
from headgate.server.actions import verbs
from headgate.server.api import models
from headgate.server.api.models import CheckpointId, Job
from headgate.server.api.routing import Server, Who, make_router, reply

_SETTINGS = ("checkpoint-every", "min-pause", "retain", "retain-for", "on-cancel", "checkpoints")


def checkpoint_routes() -> APIRouter:
    """Return the routes on checkpoints."""
    router = make_router("checkpoints")

    @router.get("/jobs/{job}/checkpoints", response_model=models.Checkpoints)
    def list_checkpoints(
        server: Server,
        job: Job,
        every_run: Annotated[bool, Query(description="Those of the runs before, too.")] = False,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    ) -> Response:
        """List the checkpoints and savepoints of a job, newest first."""
        found = server.home.checkpoints(job, every_run=every_run)
        page = found[::-1][offset : offset + limit]
        told = {
            "total": len(found),
            "offset": offset,
            "checkpoints": page,
        }
        return reply(server, told, guess=False)

    @router.get("/jobs/{job}/checkpoints/{checkpoint}", response_model=AnyCheckpoint)
    def show_checkpoint(server: Server, job: Job, checkpoint: CheckpointId) -> Response:
        """Show one checkpoint, with what is wrong with its files."""
        found = server.home.checkpoint(job, checkpoint)
        return reply(server, found, guess=False)

    @router.put("/jobs/{job}/checkpoints/{checkpoint}/pin", response_model=AnyCheckpoint)
    def pin_checkpoint(server: Server, who: Who, job: Job, checkpoint: CheckpointId) -> Response:
        """Make a checkpoint stay whatever is retained."""
        done = verbs.pin(server, who, job, checkpoint, pinned=True)
        return reply(server, done.result, guess=False)

    @router.delete("/jobs/{job}/checkpoints/{checkpoint}/pin", response_model=AnyCheckpoint)
    def unpin_checkpoint(server: Server, who: Who, job: Job, checkpoint: CheckpointId) -> Response:
        """Let a checkpoint go when its time comes."""
        done = verbs.pin(server, who, job, checkpoint, pinned=False)
        return reply(server, done.result, guess=False)

    @router.get("/jobs/{job}/checkpoint-settings", response_model=models.CheckpointSettings)
    def show_checkpoint_settings(server: Server, job: Job) -> Response:
        """Show when checkpoints are kept, and for how long."""
        settings = server.home.details(job).settings
        chosen = {name: settings[name] for name in _SETTINGS if name in settings}
        return reply(server, models.CheckpointSettings(job, chosen))

    @router.get("/jobs/{job}/savepoints", response_model=models.Savepoints)
    def list_savepoints(server: Server, job: Job) -> Response:
        """List the savepoints of a job, newest first."""
        found = server.home.checkpoints(job)
        chosen = [each for each in reversed(found) if each.kind == "savepoint"]
        return reply(server, {"savepoints": chosen}, guess=False)

    return router
