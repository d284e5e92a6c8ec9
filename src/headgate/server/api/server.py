"""REST on the server itself: flows, operations, audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from headgate.server.actions import flow_folder
from headgate.server.api import models
from headgate.server.api.models import OperationId
from headgate.server.api.paging import Newest
from headgate.server.api.routing import Router, Server, may_operate
from headgate.server.operations import Operation
from headgate.server.security import names


def server_routes() -> APIRouter:
    """Return the routes on flows, operations and the audit log."""
    router = Router("server")

    @router.get("/flows")
    def list_flows(server: Server) -> models.Flows:
        """List the flows that can be submitted."""
        return models.Flows(flow_folder.list_flows(server.settings.flows), names.SETTINGS)

    @router.get("/operations")
    def list_operations(
        server: Server, job: Annotated[str | None, Query(pattern=names.JOB)] = None
    ) -> models.OperationList:
        """List operations: those that go on, and the last ones that ended."""
        return models.OperationList(server.operations.list(job))

    @router.get("/operations/{operation}")
    def get_operation(server: Server, operation: OperationId) -> Operation:
        """Show one operation as it is now."""
        return server.operations.get(operation)

    @router.get("/audit", dependencies=[Depends(may_operate)])
    def list_audit_lines(server: Server, limit: Newest = 100) -> models.AuditLines:
        """Show the newest lines of the audit log; needs the role operate."""
        return models.AuditLines(server.audit.tail(limit))

    return router
