"""The page where a browser signs in: plain HTML, since nothing else is served before that."""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse

from headgate.server.console.parts.markup import element
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
    refused = element(
        "p",
        "That token is none of this server's. Look at HEADGATE_TOKEN, or at the token file it was "
        "started with.",
        class_="hg-login-refused",
        role="alert",
        id="refused",
    )
    form = element(
        "form",
        element("input", type="hidden", name="next", value=onward),
        element("label", "Token", for_="token"),
        element(
            "input", id="token", name="token", type="password", autocomplete="current-password",
            required=True, autofocus=True, aria_describedby="refused" if failed else None,
        ),
        element("button", "Sign in", type="submit", class_="hg-act hg-login-go"),
        method="post",
        action="/login",
    )  # fmt: skip
    body = element(
        "main",
        element("h1", "Headgate"),
        element("p", "This server needs a token.", class_="hg-quiet"),
        refused if failed else None,
        form,
        class_="hg-panel hg-login",
    )
    return plain_page("Sign in", body)
