"""The gate: every request passes it before anything else looks at it.

It stands in front of REST, the pages, their files and their websocket. In this order it looks at
the host that was asked for, at who asks, at how often, at where the request comes from, and at
its size.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.responses import RedirectResponse, Response

from headgate.errors import Domain, HeadgateError
from headgate.server.actions.request import rate_limited
from headgate.server.api.replies import to_error, to_reply
from headgate.server.context import ServerContext, use_context
from headgate.server.security.access import LOCAL, Access, Role
from headgate.server.security.limits import Buckets
from headgate.server.security.sessions import SESSION_COOKIE
from headgate.server.security.tokens import Token, find_token
from headgate.server.signed_in import let_in, not_signed_in

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Open to whoever reaches the server: whether it is alive, and where to sign in.
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/login"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST_BODY_S = 30.0
_POLICY_CLOSED = 1008
# What the pages' websocket does where there is none: a GET there is more than a read.
_SOCKET_PATH = "/_nicegui_ws"

# NiceGUI's pages carry their own scripts and styles, and its templates are made in the browser.
_PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>\d{1,5}))?", re.ASCII)


class Gate:
    """A pure ASGI layer; whoever is let in is in the request's scope for the others."""

    def __init__(self, app: App, *, context: ServerContext) -> None:
        self._app = app
        self._context = context
        self._requests = Buckets(context.settings.limits.requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        use_context(self._context)
        headers = _Headers(scope)
        try:
            self._check_host(headers)
            access = self._find_access(scope, headers)
            self._check_rate(scope, access)
            self._check_site(scope, headers, access)
            if scope["type"] == "http":
                receive = await self._read_body(scope, headers, receive)
        except HeadgateError as error:
            await self._refuse(error, scope, receive, send)
            return
        if access is None and scope["path"] not in OPEN_PATHS:
            await self._turn_away(scope, headers, receive, send)
            return
        if access is not None:
            let_in(scope, access)  # type: ignore[arg-type]
        if scope["type"] == "websocket":
            await self._app(scope, self._while_signed_in(access, receive, send), send)
        else:
            await self._serve(scope, receive, _with_headers(scope, send))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            if begun:
                raise
            await to_reply(to_error(error))(scope, receive, send)

    # Whom.

    def _check_host(self, headers: _Headers) -> None:
        asked = headers.only("host")
        match = _HOST.fullmatch(asked) if asked else None
        if match is None:
            raise HeadgateError(
                "BAD_REQUEST", "cannot answer: the request names no host", hint="send Host"
            )
        name = match["name"].strip("[]")
        if not self._context.settings.allows_host(name):
            raise HeadgateError(
                "WRONG_HOST",
                f"cannot answer for host {name[:256]!r}: this server does not have that name",
                hint=f"headgate serve --allow-host {name[:256]}",
            )

    def _find_access(self, scope: Scope, headers: _Headers) -> Access | None:
        """Return who asks; None for nobody that is known."""
        address = _address(scope)
        settings = self._context.settings
        if not settings.tokens:
            return Access(LOCAL.who, LOCAL.role, address)
        session = headers.cookie(SESSION_COOKIE)
        bearer = headers.bearer()
        if bearer is None:
            token = self._context.sessions.find(session)
            return None if token is None else Access(token.who, token.role, address, session)
        return self.check_token(bearer, address)

    def check_token(self, secret: str, address: str) -> Access:
        """Return who has a token.

        Raises:
            HeadgateError: NOT_SIGNED_IN for one that is none, RATE_LIMITED after too many.
        """
        token = check_token(self._context, secret, address)
        return Access(token.who, token.role, address)

    # How often.

    def _check_rate(self, scope: Scope, access: Access | None) -> None:
        who = "nobody" if access is None else access.who
        wait = self._requests.take(f"{who} {_address(scope)}")
        if wait:
            raise _TooOftenError(wait)

    # From where.

    def _check_site(self, scope: Scope, headers: _Headers, access: Access | None) -> None:
        """Refuse what a page of another site has a browser do in the user's name."""
        is_read = scope["type"] == "http" and scope["method"] in _SAFE
        is_pages = scope["path"].startswith(_SOCKET_PATH)
        if (is_read and not is_pages) or headers.bearer() is not None:
            return
        site, origin = headers.only("sec-fetch-site"), headers.only("origin")
        if site is not None and site not in ("same-origin", "none"):
            raise _cross_site(origin or site)
        if origin is not None:
            if _host_of(origin) != _normal(headers.only("host") or "", origin):
                raise _cross_site(origin)
        elif site is None and not is_read and access is not None and access.session is not None:
            # A cookie is a browser's, and a browser says where a request comes from; only of a
            # read without TLS by a page of this server's own it says nothing.
            raise _cross_site("nowhere")

    # How large.

    async def _read_body(self, scope: Scope, headers: _Headers, receive: Receive) -> Receive:
        """Read the body whole, and return it to be received again."""
        if scope["method"] in _SAFE and not headers.has_body():
            return receive
        most = self._context.settings.limits.body
        told = headers.only("content-length")
        if told is not None and told.isdigit() and int(told) > most:
            raise _too_large(most)
        pieces, size = [], 0
        try:
            async with asyncio.timeout(_LONGEST_BODY_S):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return _replay(message, receive)
                    pieces.append(message.get("body", b""))
                    size += len(pieces[-1])
                    if size > most:
                        raise _too_large(most)
                    if not message.get("more_body"):
                        break
        except TimeoutError as error:
            raise HeadgateError(
                "BAD_REQUEST",
                "cannot read the request: its body did not arrive in time",
                hint="send it again",
            ) from error
        whole = {"type": "http.request", "body": b"".join(pieces), "more_body": False}
        return _replay(whole, receive)

    # What becomes of it.

    async def _refuse(
        self, error: HeadgateError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if scope["type"] == "websocket":
            await _close(receive, send)
            return
        more = {}
        if isinstance(error, _TooOftenError):
            more["Retry-After"] = str(error.seconds)
        if error.code == "TOO_LARGE":
            # What is left of the body is not read.
            more["Connection"] = "close"
        reply = to_reply(error, headers=more)
        await reply(scope, receive, _with_headers(scope, send))

    async def _turn_away(
        self, scope: Scope, headers: _Headers, receive: Receive, send: Send
    ) -> None:
        if scope["type"] == "websocket":
            await _close(receive, send)
            return
        reply: Response = to_reply(not_signed_in())
        wants_page = "text/html" in headers.every("accept")
        if wants_page and scope["method"] in _SAFE and not _is_data(scope["path"]):
            path = scope["path"] + (
                f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
            )
            reply = RedirectResponse(f"/login?next={quote(path, safe='')}", 303)
        await reply(scope, receive, _with_headers(scope, send))

    def _while_signed_in(self, access: Access | None, receive: Receive, send: Send) -> Receive:
        """Return a websocket's messages up to the end of its session."""
        if access is None or access.session is None:
            return receive

        async def received() -> Message:
            message = await receive()
            if self._context.sessions.find(access.session) is not None:
                return message
            if message["type"] == "websocket.receive":
                await send({"type": "websocket.close", "code": _POLICY_CLOSED})
            return {"type": "websocket.disconnect", "code": _POLICY_CLOSED}

        return received


class _TooOftenError(HeadgateError):
    """Too often; carries the seconds to wait."""

    def __init__(self, seconds: int) -> None:
        told = rate_limited("answer", seconds)
        super().__init__(told.code, told.message, hint=told.hint, retryable=True)
        self.seconds = seconds


def check_token(context: ServerContext, secret: str, address: str) -> Token:
    """Return the token that somebody shows.

    Too many wrong ones from an address have the next wrong ones wait. A right one never does:
    behind a proxy all come from one address, and nobody shall shut out the others.

    Raises:
        HeadgateError: NOT_SIGNED_IN or RATE_LIMITED; the secret is not in it.
    """
    token = find_token(context.settings.tokens, secret)
    if token is not None:
        return token
    wait = context.failures.take(address)
    if wait:
        raise _TooOftenError(wait)
    context.audit.add(Access("nobody", Role.VIEW, address), "sign-in", outcome="NOT_SIGNED_IN")
    raise HeadgateError(
        "NOT_SIGNED_IN",
        "access denied: the token is not valid for this server",
        hint="check HEADGATE_TOKEN or the token file of the server",
    )


def wait_of(error: HeadgateError) -> int | None:
    """Return the seconds that a refusal asks to wait; None where it asks for none."""
    return error.seconds if isinstance(error, _TooOftenError) else None


class _Headers:
    """The headers of a request, by name."""

    def __init__(self, scope: Scope) -> None:
        self._found: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self._found.setdefault(name.decode("latin-1").lower(), []).append(
                value.decode("latin-1")
            )

    def only(self, name: str) -> str | None:
        """Return a header that may be there once; two are no answer, and are refused."""
        found = self._found.get(name, [])
        if len(found) > 1:
            raise HeadgateError(
                "BAD_REQUEST", f"cannot answer: the header {name} occurs twice", hint="send one"
            )
        return found[0] if found else None

    def every(self, name: str) -> str:
        """Return a header that may be there several times, as one."""
        return ", ".join(self._found.get(name, []))

    def bearer(self) -> str | None:
        """Return the token of a request's own; None where it has none."""
        kind, _, secret = (self.only("authorization") or "").partition(" ")
        return secret.strip() if kind.lower() == "bearer" and secret.strip() else None

    def cookie(self, name: str) -> str | None:
        """Return a cookie; None where there is none, or none that can be read."""
        jar = SimpleCookie()
        try:
            jar.load("; ".join(self._found.get("cookie", [])))
        except CookieError:
            return None
        return jar[name].value if name in jar else None

    def has_body(self) -> bool:
        """Tell whether a body follows."""
        length = self.only("content-length")
        return "transfer-encoding" in self._found or length not in (None, "0")


def _with_headers(scope: Scope, send: Send) -> Send:
    is_data = _is_data(scope["path"])
    policy = (_DATA_POLICY if is_data else _PAGE_POLICY).encode()

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", []), *_HEADERS, (b"content-security-policy", policy)]
            if not any(name.lower() == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store" if is_data else b"no-cache"))
            message = {**message, "headers": headers}
        await send(message)

    return sent


def _is_data(path: str) -> bool:
    return path.startswith("/v1") or path in ("/metrics", "/healthz", "/readyz")


def _replay(first: Message, receive: Receive) -> Receive:
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return first

    return received


async def _close(receive: Receive, send: Send) -> None:
    await receive()
    # Before it was accepted: the browser sees a 403.
    await send({"type": "websocket.close", "code": _POLICY_CLOSED})


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "local"


def _host_of(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return None if not parts.netloc else _normal(parts.netloc, origin)


def _normal(host: str, origin: str) -> str:
    """Return a host with its port, which is left out where it is the usual one."""
    match = _HOST.fullmatch(host)
    if match is None:
        return host.lower()
    usual = "443" if origin.startswith("https:") else "80"
    return f"{match['name'].lower()}:{match['port'] or usual}"


def _cross_site(origin: str) -> HeadgateError:
    return HeadgateError(
        "CROSS_SITE",
        f"cannot do this for a page of {origin[:256]!r}: it belongs to another server",
        hint="open the console of this server, or use a token",
    )


def _too_large(most: int) -> HeadgateError:
    return HeadgateError(
        "TOO_LARGE",
        f"cannot accept the request: its body is larger than {most} bytes",
        hint="send less at once",
        domain=Domain.USER,
    )
