"""The page where a browser signs in: plain HTML, since nothing else is served before that."""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse

from headgate.server.console.parts.plain_page import plain_page


def add_login_page(app: FastAPI) -> None:
    """Serve the page; what it sends goes to `POST /login`."""

    @app.get("/login", include_in_schema=False)
    async def show(request: Request) -> HTMLResponse:
        asked = request.query_params
        return HTMLResponse(
            login_page(onward=asked.get("next", "/"), failed="failed" in asked),
            headers={"Cache-Control": "no-store"},
        )


def login_page(*, onward: str, failed: bool) -> str:
    """Return the page.

    Args:
        onward: Where to go once signed in.
        failed: Whether a token was refused just now.
    """
    return plain_page("login", onward=onward, failed=failed)
