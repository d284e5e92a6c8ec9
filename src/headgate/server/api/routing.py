"""What all routes share: how they answer, and the errors they may answer with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from headgate._codec import encode
from headgate.server.api.models import Problem
from headgate.server.api.replies import to_json
from headgate.server.context import ServerContext
from headgate.server.operations import Operation
from headgate.server.security.access import Access, Role
from headgate.server.signed_in import access_of

_ERRORS = {
    400: "The request cannot be followed as it is.",
    401: "No token, or none of this server's.",
    403: "The role of the token does not allow it, or the request comes from another site.",
    404: "There is no such thing.",
    409: "The job is not in a state for it.",
    413: "The request is too large.",
    421: "The server is not known by the host's name.",
    429: "Asked too often; Retry-After says how long to wait.",
    500: "A fault of the server's own.",
    503: "Something the server needs does not answer, or it has too much to do.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": told} for status, told in _ERRORS.items()
}


async def get_server(request: Request) -> ServerContext:
    """Return the server's context, for a route."""
    return _context(request)


async def get_access(request: Request) -> Access:
    """Return who asks, for a route."""
    return access_of(request.scope)


Server = Annotated[ServerContext, Depends(get_server)]
Who = Annotated[Access, Depends(get_access)]


async def check_shown(request: Request) -> None:
    """Refuse a job that this server does not show."""
    job = request.path_params.get("job")
    if job is not None:
        _context(request).check_shown(job)


async def may_operate(who: Who) -> None:
    """Refuse whoever may only look."""
    who.check(Role.OPERATE, to="do this")


def make_router(tag: str) -> APIRouter:
    """Return an empty router under /v1."""
    return APIRouter(
        prefix="/v1",
        tags=[tag],
        responses=ERRORS,
        dependencies=[Depends(check_shown)],
    )


def reply(server: ServerContext, value: Any, *, status: int = 200, guess: bool = True) -> Response:
    """Return a value as an answer in JSON, without secrets.

    Args:
        guess: Also leave out what looks like a secret; not for a user's own records.
    """
    body = to_json(server.hide_in(encode(value), guess=guess))
    return Response(body, status, media_type="application/json")


def accepted(server: ServerContext, operation: Operation) -> Response:
    """Return an operation that was begun, and where to look at it."""
    answer = reply(server, operation, status=202)
    answer.headers["Location"] = f"/v1/operations/{operation.id}"
    return answer


def _context(request: Request) -> ServerContext:
    context = request.app.state.headgate
    assert isinstance(context, ServerContext)
    return context
