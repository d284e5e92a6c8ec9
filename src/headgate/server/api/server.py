"""REST on the server itself: flows, operations, audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from headgate.server.actions.flow_folder import list_flows
from headgate.server.api import models
from headgate.server.api.models import OperationId
from headgate.server.api.routing import Router, Server, may_operate
from headgate.server.operations import Operation
from headgate.server.security import names


def server_routes() -> APIRouter:
    """Return the routes on flows, operations and the audit log."""
    router = Router("server")

    @router.get("/flows")
    def list_flows_(server: Server) -> models.Flows:
        """List the flows that can be submitted."""
        return models.Flows(list_flows(server.settings.flows), names.SETTINGS)

    @router.get("/operations")
    def list_operations(
        server: Server, job: Annotated[str | None, Query(pattern=names.JOB)] = None
    ) -> models.OperationList:
        """List operations: those that go on, and the last ones that ended."""
        return models.OperationList(server.operations.list(job))

    @router.get("/operations/{operation}")
    def show_operation(server: Server, operation: OperationId) -> Operation:
        """Show one operation as it is now."""
        return server.operations.get(operation)

    @router.get("/audit", dependencies=[Depends(may_operate)])
    def read_audit(server: Server, lines: models.Lines = 100) -> models.AuditLines:
        """Show the newest lines of the audit log; needs the role operate."""
        return models.AuditLines(server.audit.tail(lines))

    return router
