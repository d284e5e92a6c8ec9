"""Signing in with a browser: a token is exchanged for a session cookie."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headgate.errors import HeadgateError
from headgate.server.api.replies import to_reply
from headgate.server.console.parts.templates import plain_page
from headgate.server.context import ServerContext
from headgate.server.gate import address_of, check_token
from headgate.server.security.access import Access
from headgate.server.security.limits import RateLimitedError
from headgate.server.security.sessions import SESSION_COOKIE, SESSION_LASTS

_LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\s\x00-\x1f]*")


def add_login(app: FastAPI, context: ServerContext) -> None:
    """Add the routes that sign a browser in and out."""

    @app.post("/login", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        form = await _form(request)
        onward = _local(form.get("next", "/"))
        if not context.settings.tokens:
            return RedirectResponse(onward, 303)
        address = address_of(request)
        try:
            token = check_token(context, form.get("token", "").strip(), address)
        except RateLimitedError as error:
            return to_reply(error, headers={"Retry-After": str(error.wait)})
        except HeadgateError:
            return RedirectResponse(f"/login?failed=1&next={quote(onward, safe='/')}", 303)
        context.sessions.end(request.cookies.get(SESSION_COOKIE))
        session = context.sessions.begin(token)
        context.audit.add(Access(token.who, token.role, address), "sign-in", outcome="DONE")
        reply = RedirectResponse(onward, 303)
        reply.set_cookie(
            SESSION_COOKIE,
            session,
            max_age=round(SESSION_LASTS.total_seconds()),
            path="/",
            httponly=True,
            samesite="strict",
            # Behind a proxy that ends TLS, only the origin shows that the browser uses it.
            secure=request.url.scheme == "https"
            or request.headers.get("origin", "").startswith("https:"),
        )
        return reply

    @app.post("/logout", include_in_schema=False)
    async def sign_out(request: Request) -> Response:
        context.sessions.end(request.cookies.get(SESSION_COOKIE))
        reply = RedirectResponse("/login", 303)
        reply.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict")
        return reply

    @app.get("/login", include_in_schema=False)
    async def show(request: Request) -> Response:
        query = request.query_params
        page = login_page(onward=query.get("next", "/"), failed="failed" in query)
        return HTMLResponse(page, headers={"Cache-Control": "no-store"})


def login_page(*, onward: str, failed: bool) -> str:
    """Return the page where a browser signs in: plain HTML, since scripts are not served yet.

    Args:
        onward: Where to go after signing in.
        failed: Whether a token was refused just now.
    """
    return plain_page("login", onward=onward, failed=failed)


async def _form(request: Request) -> dict[str, Any]:
    # The gate has read the body already, and it is small.
    text = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qs(text, max_num_fields=8)
    except ValueError:
        # More fields than the login form has.
        return {}
    return {name: values[0] for name, values in fields.items()}


def _local(path: str) -> str:
    """Return a path of this server; anything else becomes `/`."""
    return path if _LOCAL_PATH.fullmatch(path) else "/"
