"""REST on checkpoints and savepoints."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.checkpoints.checkpoint import AnyCheckpoint
from headgate.server.actions import verbs
from headgate.server.api import models
from headgate.server.api.models import CheckpointId, Job, RunName
from headgate.server.api.paging import (
    CheckpointCursor,
    Checkpoints,
    Limit,
    page_checkpoints,
)
from headgate.server.api.routing import Router, Server, Who, user_data

_SETTINGS = ("checkpoint-every", "min-pause", "retain", "retain-for", "on-cancel", "checkpoints")


def checkpoint_routes() -> APIRouter:
    """Return the routes on checkpoints."""
    router = Router("checkpoints")

    @router.get("/jobs/{job}/checkpoints")
    @user_data
    def list_checkpoints(
        server: Server,
        job: Job,
        every_run: Annotated[bool, Query(description="Those of the runs before, too.")] = False,
        after: CheckpointCursor = None,
        limit: Limit = 100,
    ) -> Checkpoints:
        """List the checkpoints and savepoints of a job, newest first."""
        checkpoints = server.home.checkpoints(job, every_run=every_run)
        return page_checkpoints(checkpoints, after=after, limit=limit)

    @router.get("/jobs/{job}/checkpoints/{checkpoint}")
    @user_data
    def get_checkpoint(
        server: Server, job: Job, checkpoint: CheckpointId, run: RunName = None
    ) -> AnyCheckpoint:
        """Show one checkpoint, with what is wrong with its files."""
        return server.home.checkpoint(job, _named(checkpoint, run))

    @router.put("/jobs/{job}/checkpoints/{checkpoint}/pin", response_model=AnyCheckpoint)
    @user_data
    def pin_checkpoint(
        server: Server, who: Who, job: Job, checkpoint: CheckpointId, run: RunName = None
    ) -> Any:
        """Make a checkpoint stay whatever is retained."""
        return verbs.pin(server, who, job, _named(checkpoint, run), pinned=True).result

    @router.delete("/jobs/{job}/checkpoints/{checkpoint}/pin", response_model=AnyCheckpoint)
    @user_data
    def unpin_checkpoint(
        server: Server, who: Who, job: Job, checkpoint: CheckpointId, run: RunName = None
    ) -> Any:
        """Let a checkpoint go when its time comes."""
        return verbs.pin(server, who, job, _named(checkpoint, run), pinned=False).result

    @router.get("/jobs/{job}/checkpoint-settings")
    def get_checkpoint_settings(server: Server, job: Job) -> models.CheckpointSettings:
        """Show when checkpoints are kept, and for how long."""
        settings = server.home.details(job).settings
        chosen = {name: settings[name] for name in _SETTINGS if name in settings}
        return models.CheckpointSettings(job, models.show_settings(chosen))

    @router.get("/jobs/{job}/savepoints", response_model=models.Savepoints)
    @user_data
    def list_savepoints(server: Server, job: Job) -> dict[str, Any]:
        """List the savepoints of a job, newest first."""
        checkpoints = server.home.checkpoints(job)[::-1]
        return {"savepoints": [point for point in checkpoints if point.kind == "savepoint"]}

    return router


def _named(checkpoint: str, run: str | None) -> str:
    return checkpoint if run is None else f"{run}/{checkpoint}"
