"""What all routes share: how they answer, and the errors they may answer with."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from headgate._codec import encode
from headgate.errors import HeadgateError
from headgate.server.api.models import Problem
from headgate.server.context import ServerContext, get_context
from headgate.server.operations import Operation
from headgate.server.security.access import Access, Role
from headgate.server.signed_in import access_of

_ERRORS = {
    400: "The request cannot be followed as it is.",
    401: "No token, or one that is not valid for this server.",
    403: "The role of the token does not allow it, or the request comes from another site.",
    404: "The job, checkpoint, operator or other resource does not exist.",
    409: "The job is not in a state for it.",
    413: "The request is too large.",
    421: "The server is not known by the host's name.",
    429: "Asked too often; Retry-After says how long to wait.",
    500: "A fault of the server's own.",
    503: "Something the server needs does not answer, or it has too much to do.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in _ERRORS.items()
}
_OF_USERS = "headgate_user_data"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


async def get_server() -> ServerContext:
    """Return the server's context, for a route."""
    return get_context()


async def get_access(request: Request) -> Access:
    """Return the client's access, for a route."""
    return access_of(request.scope)


Server = Annotated[ServerContext, Depends(get_server)]
Who = Annotated[Access, Depends(get_access)]


async def check_shown(request: Request) -> None:
    """Refuse a job that this server does not show."""
    job = request.path_params.get("job")
    if job is not None:
        get_context().check_shown(job)


async def check_query(request: Request) -> None:
    """Refuse query parameters that the route does not have."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            parameters = f"its parameters are {', '.join(known)}" if known else "it has none"
            raise HeadgateError(
                "BAD_REQUEST",
                f"cannot process the request: the path has no query parameter {name[:256]!r}; "
                f"{parameters}",
                hint="GET /v1/openapi.json describes the request",
            )


async def may_operate(who: Who) -> None:
    """Refuse a client that may only view."""
    who.check(Role.OPERATE, to="do this")


class Router(APIRouter):
    """Routes under /v1: what a route returns is answered as JSON, without secrets."""

    def __init__(self, tag: str) -> None:
        super().__init__(
            prefix="/v1",
            tags=[tag],
            responses=ERRORS,
            dependencies=[Depends(check_shown), Depends(check_query)],
        )

    def add_api_route(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        status_code: int | None = None,
        **options: Any,
    ) -> None:
        """Add a route."""
        guess = not hasattr(endpoint, _OF_USERS)

        @wraps(endpoint)
        def answer(*args: Any, **values: Any) -> Response:
            result = endpoint(*args, **values)
            if isinstance(result, Response):
                return result
            return reply(result, status=status_code or 200, guess=guess)

        super().add_api_route(path, answer, status_code=status_code, **options)


def user_data(endpoint: Endpoint) -> Endpoint:
    """Mark a route that returns a user's own data: texts that only look like secrets stay."""
    setattr(endpoint, _OF_USERS, True)
    return endpoint


def reply(value: Any, *, status: int = 200, guess: bool = True) -> Response:
    """Return a value as an answer in JSON, without secrets.

    Args:
        guess: Also hide texts that look like secrets; not for a user's own data.
    """
    content = get_context().hide_in(encode(value), guess=guess)
    text = json.dumps(content, default=str, allow_nan=False, ensure_ascii=False)
    body = text.encode("utf-8", "backslashreplace")
    response = Response(body, status, media_type="application/json")
    if isinstance(value, Operation) and status == 202:
        response.headers["Location"] = f"/v1/operations/{value.id}"
    return response
