"""REST on the server itself: flows, operations, audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from headgate.server.actions.flow_folder import list_flows
from headgate.server.api import models
from headgate.server.api.models import OperationId
from headgate.server.api.routing import Server, make_router, may_operate, reply
from headgate.server.operations import Operation
from headgate.server.security import names


def server_routes() -> APIRouter:
    """Return the routes on flows, operations and the audit log."""
    router = make_router("server")

    @router.get("/flows", response_model=models.Flows)
    def list_flows_(server: Server) -> Response:
        """List the flows that can be submitted."""
        return reply(server, models.Flows(list_flows(server.settings.flows), names.SETTINGS))

    @router.get("/operations", response_model=models.OperationList)
    def list_operations(
        server: Server, job: Annotated[str | None, Query(pattern=names.JOB)] = None
    ) -> Response:
        """List operations: those that go on, and the last ones that ended."""
        return reply(server, models.OperationList(server.operations.list(job)))

    @router.get("/operations/{operation}", response_model=Operation)
    def show_operation(server: Server, operation: OperationId) -> Response:
        """Show one operation as it is now."""
        return reply(server, server.operations.get(operation))

    @router.get("/audit", response_model=models.AuditLines, dependencies=[Depends(may_operate)])
    def read_audit(server: Server, lines: models.Lines = 100) -> Response:
        """Show the newest lines of the audit log; needs the role operate."""
        return reply(server, models.AuditLines(server.audit.tail(lines)))

    return router
