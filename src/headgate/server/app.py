"""The server's app: REST, the console, and the gate in front of both."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from headgate.errors import HeadgateError
from headgate.server.api.checkpoints import checkpoint_routes
from headgate.server.api.health import health_routes
from headgate.server.api.jobs import job_routes
from headgate.server.api.outputs import output_routes
from headgate.server.api.replies import to_error, to_reply
from headgate.server.api.server import server_routes
from headgate.server.api.state import state_routes
from headgate.server.api.topics import topic_routes
from headgate.server.context import ServerContext, use_context
from headgate.server.gate import Gate
from headgate.server.login import add_login
from headgate.server.settings import ServerSettings

_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"]
_SETTLE = timedelta(seconds=3)
_ABOUT = """Long-lived stateful streaming jobs on Apache Spark, over HTTP.

Answers are JSON. Errors have a code, a message and a hint. Long work answers 202 with an
operation, which is polled at `/v1/operations/{id}`. Where the server has tokens, each request
needs the header `Authorization: Bearer TOKEN`; reads need the role `view`, the rest `operate`.
"""


def create_app(settings: ServerSettings) -> FastAPI:
    """Return the app of a server; it serves once it is run."""
    context = ServerContext(settings)
    use_context(context)
    app = FastAPI(
        title="Headgate",
        version=sys.modules["headgate"].__version__,
        description=_ABOUT,
        openapi_url="/v1/openapi.json",
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=lambda _app: _running(context),
    )
    routers = (
        job_routes(),
        checkpoint_routes(),
        state_routes(),
        output_routes(),
        topic_routes(),
        server_routes(),
        health_routes(),
    )
    for router in routers:
        app.include_router(router)
    add_login(app, context)
    _add_unknown(app, [route for router in routers for route in router.routes])
    _add_errors(app, context)
    _describe(app, settings)
    if settings.console:
        # NiceGUI takes a second to load, which REST alone does without.
        from headgate.server import console

        console.mount(app)
    # Last, so that it is in front of all the others.
    app.add_middleware(Gate, context=context)
    return app


@asynccontextmanager
async def _running(context: ServerContext) -> AsyncIterator[None]:
    use_context(context)
    if context.watch is not None:
        context.watch.start()
    yield
    await run_in_threadpool(context.operations.settle, _SETTLE)
    await run_in_threadpool(context.close)


def _add_unknown(app: FastAPI, known: Sequence[BaseRoute]) -> None:
    """Answer unknown paths under /v1 with an error in JSON, not with a page."""

    @app.api_route("/v1/{path:path}", methods=_METHODS, include_in_schema=False)
    async def unknown(request: Request) -> Response:
        allowed = {
            method
            for route in known
            if route.matches(request.scope)[0] is Match.PARTIAL
            for method in getattr(route, "methods", None) or ()
        }
        if "GET" in allowed:
            allowed.add("HEAD")
        if allowed:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        raise HTTPException(404)


def _add_errors(app: FastAPI, context: ServerContext) -> None:
    @app.exception_handler(HeadgateError)
    async def failed(_request: Request, error: HeadgateError) -> Response:
        return to_reply(await run_in_threadpool(context.hide_error, error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        return to_reply(_explain_request(error))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        path, hint = request.url.path[:256], "GET /v1/openapi.json lists all paths"
        if error.status_code == 404:
            message = f"cannot find {path!r}: there is no such path"
            return to_reply(HeadgateError("PATH_NOT_FOUND", message, hint=hint))
        message = f"cannot {request.method} {path!r}: {error.detail}"
        reply = to_reply(
            HeadgateError("BAD_REQUEST", message, hint=hint), headers=dict(error.headers or {})
        )
        reply.status_code = error.status_code
        return reply

    @app.exception_handler(OSError)
    async def refused_by_system(_request: Request, error: OSError) -> Response:
        return to_reply(to_error(error))


def _explain_request(error: RequestValidationError) -> HeadgateError:
    first: Mapping[str, Any] = next(iter(error.errors()), {})
    place = ".".join(map(str, first.get("loc", ())))
    problem = str(first.get("msg", "it is not what was expected"))
    return HeadgateError(
        "BAD_REQUEST",
        f"cannot process the request: {place[:256]}: {problem[:512]}",
        hint="GET /v1/openapi.json describes the request",
    )


def _describe(app: FastAPI, settings: ServerSettings) -> None:
    """Correct the description: errors are 400 instead of 422, and a token is needed."""
    describe_routes = app.openapi

    def describe() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        schema = describe_routes()
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        components = schema.setdefault("components", {})
        for name in ("HTTPValidationError", "ValidationError"):
            components.get("schemas", {}).pop(name, None)
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}] if settings.tokens else []
        app.openapi_schema = schema
        return schema

    app.openapi = describe  # type: ignore[method-assign]
