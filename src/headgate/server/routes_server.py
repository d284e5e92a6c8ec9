"""REST on the server itself: flows, operations, audit log, health."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from headgate.errors import HeadgateError
from headgate.jobs import service
from headgate.server import models, names
from headgate.server.context import ServerContext
from headgate.server.flows import list_flows
from headgate.server.metrics import read_metrics
from headgate.server.models import OperationId
from headgate.server.routes import ERRORS, Server, make_router, may_operate, reply


def server_routes() -> APIRouter:
    """Return the routes on flows, operations and the audit log."""
    router = make_router("server")

    @router.get("/flows", response_model=models.Flows)
    def list_flows_(server: Server) -> Response:
        """List the flows that can be submitted."""
        found = [each.to_json() for each in list_flows(server.settings.flows)]
        return reply(server, {"flows": found, "settings": list(names.SETTINGS)})

    @router.get("/operations", response_model=models.OperationList)
    def list_operations(
        server: Server, job: Annotated[str | None, Query(pattern=names.JOB)] = None
    ) -> Response:
        """List operations: those that go on, and the last ones that ended."""
        found = [each.to_json() for each in server.operations.list(job)]
        return reply(server, {"operations": found})

    @router.get("/operations/{operation}", response_model=models.OperationShown)
    def show_operation(server: Server, operation: OperationId) -> Response:
        """Show one operation as it is now."""
        return reply(server, server.operations.get(operation).to_json())

    @router.get("/audit", response_model=models.AuditLines, dependencies=[Depends(may_operate)])
    def read_audit(server: Server, lines: models.Lines = 100) -> Response:
        """Show the newest lines of the audit log; needs the role operate."""
        return reply(server, {"lines": server.audit.tail(lines)})

    return router


def health_routes() -> APIRouter:
    """Return the routes for probes and Prometheus, which are not under /v1."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz", response_model=models.Health)
    async def is_alive(server: Server) -> Response:
        """Tell that the server answers."""
        return reply(server, {"status": "ok", "problems": []}, guess=False)

    @router.get("/readyz", response_model=models.Health, responses={503: {"model": models.Health}})
    def is_ready(server: Server) -> Response:
        """Tell whether the server can do its work; 503 with the reasons if not."""
        problems = find_problems(server)
        told = {"status": "not ready" if problems else "ok", "problems": problems}
        return reply(server, told, status=503 if problems else 200)

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            **{status: ERRORS[status] for status in (401, 421, 429)},
            200: {"content": {"text/plain": {}}, "description": "Prometheus text."},
        },
    )
    def metrics(server: Server) -> Response:
        """Give the figures of all jobs in Prometheus' text format."""
        body, kind = read_metrics(server)
        return Response(body, media_type=kind)

    return router


def find_problems(server: ServerContext) -> list[str]:
    """Return what keeps the server from its work, without naming any place of the machine."""
    found = []
    try:
        home = server.settings.home
        if home.exists():
            service.list_names(home)
    except (OSError, HeadgateError):
        found.append("the home cannot be read")
    if server.watch is not None and server.watch.problem:
        found.append("jobs are not looked after")
    return found
