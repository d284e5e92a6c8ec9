"""Signing in with a browser: a token for a cookie that only this server gets back."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headgate.errors import HeadgateError
from headgate.server.api.replies import to_reply
from headgate.server.context import ServerContext
from headgate.server.gate import check_token, wait_of
from headgate.server.security.access import Access
from headgate.server.security.sessions import SESSION_COOKIE, SESSION_LASTS

_LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\s\x00-\x1f]*")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in · Headgate</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>Headgate</h1>
<form method="post" action="/login"><p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Sign in</button></p></form></main></body></html>
"""


def add_login(app: FastAPI, context: ServerContext) -> None:
    """Add what signs a browser in and out; where there is a console, the page is its own."""

    @app.post("/login", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        form = await _form(request)
        onward = _local(form.get("next", "/"))
        if not context.settings.tokens:
            return RedirectResponse(onward, 303)
        address = request.client.host if request.client else "local"
        try:
            token = check_token(context, form.get("token", "").strip(), address)
        except HeadgateError as error:
            wait = wait_of(error)
            if wait is not None:
                return to_reply(error, headers={"Retry-After": str(wait)})
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
            # Behind a proxy that speaks TLS the browser's side is told by its origin alone.
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

    if not context.settings.console:

        @app.get("/login", include_in_schema=False)
        async def show() -> Response:
            return HTMLResponse(_PAGE)


async def _form(request: Request) -> dict[str, Any]:
    # The gate has read the body already, and it is small.
    text = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qs(text, max_num_fields=8)
    except ValueError:
        # More fields than the form of ours has.
        return {}
    return {name: values[0] for name, values in fields.items()}


def _local(path: str) -> str:
    """Return where to go on; another site is not."""
    return path if _LOCAL_PATH.fullmatch(path) else "/"
