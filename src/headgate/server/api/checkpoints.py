"""REST on checkpoints and savepoints."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.checkpoints.checkpoint import AnyCheckpoint
from headgate.server.actions import verbs
from headgate.server.api import models
from headgate.server.api.models import CheckpointId, Job
from headgate.server.api.routing import Router, Server, Who, user_data

_SETTINGS = ("checkpoint-every", "min-pause", "retain", "retain-for", "on-cancel", "checkpoints")


def checkpoint_routes() -> APIRouter:
    """Return the routes on checkpoints."""
    router = Router("checkpoints")

    @router.get("/jobs/{job}/checkpoints", response_model=models.Checkpoints)
    @user_data
    def list_checkpoints(
        server: Server,
        job: Job,
        every_run: Annotated[bool, Query(description="Those of the runs before, too.")] = False,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    ) -> dict[str, Any]:
        """List the checkpoints and savepoints of a job, newest first."""
        checkpoints = server.home.checkpoints(job, every_run=every_run)
        page = checkpoints[::-1][offset : offset + limit]
        return {"total": len(checkpoints), "offset": offset, "checkpoints": page}

    @router.get("/jobs/{job}/checkpoints/{checkpoint}")
    @user_data
    def show_checkpoint(server: Server, job: Job, checkpoint: CheckpointId) -> AnyCheckpoint:
        """Show one checkpoint, with what is wrong with its files."""
        return server.home.checkpoint(job, checkpoint)

    @router.put("/jobs/{job}/checkpoints/{checkpoint}/pin", response_model=AnyCheckpoint)
    @user_data
    def pin_checkpoint(server: Server, who: Who, job: Job, checkpoint: CheckpointId) -> Any:
        """Make a checkpoint stay whatever is retained."""
        return verbs.pin(server, who, job, checkpoint, pinned=True).result

    @router.delete("/jobs/{job}/checkpoints/{checkpoint}/pin", response_model=AnyCheckpoint)
    @user_data
    def unpin_checkpoint(server: Server, who: Who, job: Job, checkpoint: CheckpointId) -> Any:
        """Let a checkpoint go when its time comes."""
        return verbs.pin(server, who, job, checkpoint, pinned=False).result

    @router.get("/jobs/{job}/checkpoint-settings")
    def show_checkpoint_settings(server: Server, job: Job) -> models.CheckpointSettings:
        """Show when checkpoints are kept, and for how long."""
        settings = server.home.details(job).settings
        chosen = {name: settings[name] for name in _SETTINGS if name in settings}
        return models.CheckpointSettings(job, chosen)

    @router.get("/jobs/{job}/savepoints", response_model=models.Savepoints)
    @user_data
    def list_savepoints(server: Server, job: Job) -> dict[str, Any]:
        """List the savepoints of a job, newest first."""
        checkpoints = server.home.checkpoints(job)[::-1]
        return {"savepoints": [point for point in checkpoints if point.kind == "savepoint"]}

    return router
