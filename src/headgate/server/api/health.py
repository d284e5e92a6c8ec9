"""REST for probes and Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from headgate.errors import HeadgateError
from headgate.server.api import models
from headgate.server.api.routing import ERRORS, Server, reply
from headgate.server.context import ServerContext
from headgate.server.metrics.exposition import read_metrics


def health_routes() -> APIRouter:
    """Return the routes for probes and Prometheus, which are not under /v1."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz", response_model=models.Health)
    async def get_health() -> Response:
        """Tell that the server answers."""
        return reply(models.Health("ok", []), guess=False)

    @router.get("/readyz", response_model=models.Health, responses={503: {"model": models.Health}})
    def get_readiness(server: Server) -> Response:
        """Tell whether the server can do its work; 503 with the reasons if not."""
        problems = find_problems(server)
        health = models.Health("not ready" if problems else "ok", problems)
        return reply(health, status=503 if problems else 200)

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            **{status: ERRORS[status] for status in (401, 421, 429)},
            200: {
                "content": {"text/plain": {"schema": {"type": "string"}}},
                "description": "Prometheus text.",
            },
        },
    )
    def get_metrics(server: Server) -> Response:
        """Give the metrics of all jobs in Prometheus' text format."""
        body, kind = read_metrics(server)
        return Response(body, media_type=kind)

    return router


def find_problems(server: ServerContext) -> list[str]:
    """Return what keeps the server from its work, without any path of the machine."""
    problems = []
    try:
        if server.settings.home.exists():
            server.home.names()
    except (OSError, HeadgateError):
        problems.append("the home cannot be read")
    if server.watch is not None and server.watch.problem:
        problems.append("jobs are not looked after")
    return problems
