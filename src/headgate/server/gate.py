"""The gate: every request passes it first, to REST, to pages, to their files and their websocket.

It checks in this order: the host's name, the client, the rate, the site that the request comes
from, and the size of its body.
"""

from __future__ import annotations

import asyncio
import re
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.errors import HeadgateError
from headgate.server.api.replies import to_error, to_reply
from headgate.server.context import ServerContext, use_context
from headgate.server.security.access import LOCAL, Access, Role
from headgate.server.security.limits import Buckets, RateLimitedError
from headgate.server.security.sessions import SESSION_COOKIE
from headgate.server.security.tokens import Token, find_token
from headgate.server.signed_in import let_in, not_signed_in

# Open to every client: whether the server is alive, and where to sign in.
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/login"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST_BODY_S = 30.0
_POLICY_CLOSED = 1008
# The substitute for the pages' websocket: a GET there is more than a read.
_SOCKET_PATH = "/_nicegui_ws"

# NiceGUI's pages carry their own scripts and styles, and compile templates in the browser.
_PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
_HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
)
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>\d{1,5}))?", re.ASCII)


class Gate:
    """A pure ASGI layer; it puts the client's access into the scope of a request."""

    def __init__(self, app: ASGIApp, *, context: ServerContext) -> None:
        self._app = app
        self._context = context
        self._requests = Buckets(context.settings.limits.requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        use_context(self._context)
        connection = HTTPConnection(scope)
        try:
            self._check_host(connection.headers)
            access = self._find_access(connection)
            self._check_rate(connection, access)
            _check_site(scope, connection.headers, access)
            if scope["type"] == "http":
                receive = await self._read_body(scope, connection.headers, receive)
        except HeadgateError as error:
            await _refuse(error, scope, receive, send)
            return
        if access is None and scope["path"] not in OPEN_PATHS:
            await _turn_away(scope, connection.headers, receive, send)
            return
        if access is not None:
            let_in(scope, access)
        if scope["type"] == "websocket":
            await self._app(scope, self._while_signed_in(access, receive, send), send)
        elif scope["method"] == "HEAD":
            as_get = {**scope, "method": "GET"}
            await self._serve(as_get, receive, _without_body(_with_headers(scope, send)))
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

    def _check_host(self, headers: Headers) -> None:
        host = _only(headers, "host")
        match = _HOST.fullmatch(host) if host else None
        if match is None:
            raise HeadgateError(
                "BAD_REQUEST", "cannot answer: the request does not name a host", hint="send Host"
            )
        name = match["name"].strip("[]")
        if not self._context.settings.allows_host(name):
            raise HeadgateError(
                "WRONG_HOST",
                f"cannot answer for host {name[:256]!r}: this server does not have that name",
                hint=f"headgate serve --allow-host {name[:256]}",
            )

    def _find_access(self, connection: HTTPConnection) -> Access | None:
        """Return the client's access; None for an unknown client."""
        address = address_of(connection)
        if not self._context.settings.tokens:
            return Access(LOCAL.who, LOCAL.role, address)
        bearer = _bearer(connection.headers)
        if bearer is not None:
            token = check_token(self._context, bearer, address)
            return Access(token.who, token.role, address)
        session = connection.cookies.get(SESSION_COOKIE)
        signed_in = self._context.sessions.find(session)
        if signed_in is None:
            return None
        return Access(signed_in.who, signed_in.role, address, session)

    def _check_rate(self, connection: HTTPConnection, access: Access | None) -> None:
        who = "nobody" if access is None else access.who
        wait = self._requests.take(f"{who} {address_of(connection)}")
        if wait:
            raise RateLimitedError("answer", wait)

    async def _read_body(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Read the whole body, and return a function that gives it again."""
        length = _only(headers, "content-length")
        has_body = "transfer-encoding" in headers or length not in (None, "0")
        if scope["method"] in _SAFE and not has_body:
            return receive
        most = self._context.settings.limits.body
        if length is not None and length.isdigit() and int(length) > most:
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


def check_token(context: ServerContext, secret: str, address: str) -> Token:
    """Return the token that a client sends.

    After too many wrong ones from an address, the next wrong ones must wait. A right one never
    waits: behind a proxy all clients have one address, and none may lock out the others.

    Raises:
        HeadgateError: NOT_SIGNED_IN or RATE_LIMITED; the secret is not in it.
    """
    token = find_token(context.settings.tokens, secret)
    if token is not None:
        return token
    wait = context.failures.take(address)
    if wait:
        raise RateLimitedError("answer", wait)
    context.audit.add(Access("nobody", Role.VIEW, address), "sign-in", outcome="NOT_SIGNED_IN")
    raise HeadgateError(
        "NOT_SIGNED_IN",
        "access denied: the token is not valid for this server",
        hint="check HEADGATE_TOKEN or the token file of the server",
    )


def address_of(connection: HTTPConnection) -> str:
    """Return the address that a request comes from."""
    return connection.client.host if connection.client else "local"


def _only(headers: Headers, name: str) -> str | None:
    """Return a header that may occur once; a second one is ambiguous, and is refused."""
    values = headers.getlist(name)
    if len(values) > 1:
        raise HeadgateError(
            "BAD_REQUEST", f"cannot answer: the header {name} occurs twice", hint="send one"
        )
    return values[0] if values else None


def _bearer(headers: Headers) -> str | None:
    kind, _, secret = (_only(headers, "authorization") or "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" and secret.strip() else None


def _check_site(scope: Scope, headers: Headers, access: Access | None) -> None:
    """Refuse what a page of another site makes a browser do in the user's name."""
    is_read = scope["type"] == "http" and scope["method"] in _SAFE
    is_socket = scope["path"].startswith(_SOCKET_PATH)
    if (is_read and not is_socket) or _bearer(headers) is not None:
        return
    site, origin = _only(headers, "sec-fetch-site"), _only(headers, "origin")
    if site is not None and site not in ("same-origin", "none"):
        raise _cross_site(origin or site)
    if origin is not None:
        if _host_of(origin) != _normal(_only(headers, "host") or "", origin):
            raise _cross_site(origin)
    elif site is None and not is_read and access is not None and access.session is not None:
        # Only browsers send the cookie, and a browser names the origin of every request but of
        # reads without TLS by a page of this server.
        raise _cross_site("nowhere")


async def _refuse(error: HeadgateError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await _close(receive, send)
        return
    more = {}
    if isinstance(error, RateLimitedError):
        more["Retry-After"] = str(error.wait)
    if error.code == "TOO_LARGE":
        # The rest of the body is not read.
        more["Connection"] = "close"
    await to_reply(error, headers=more)(scope, receive, _with_headers(scope, send))


async def _turn_away(scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await _close(receive, send)
        return
    reply: Response = to_reply(not_signed_in())
    wants_page = "text/html" in ", ".join(headers.getlist("accept"))
    if wants_page and scope["method"] in _SAFE and not _is_data(scope["path"]):
        query = scope["query_string"].decode("latin-1")
        path = f"{scope['path']}?{query}" if query else scope["path"]
        reply = RedirectResponse(f"/login?next={quote(path, safe='')}", 303)
    await reply(scope, receive, _with_headers(scope, send))


def _with_headers(scope: Scope, send: Send) -> Send:
    is_data = _is_data(scope["path"])

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message.setdefault("headers", [])
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS:
                headers.append(name, value)
            headers.append("content-security-policy", _DATA_POLICY if is_data else _PAGE_POLICY)
            headers.setdefault("cache-control", "no-store" if is_data else "no-cache")
        await send(message)

    return sent


def _without_body(send: Send) -> Send:
    """Return a function that sends the head of an answer: HEAD is GET without the body."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return sent


def _is_data(path: str) -> bool:
    return path.startswith("/v1") or path in ("/metrics", "/healthz", "/readyz")


def _replay(first: Message, receive: Receive) -> Receive:
    pending = [first]

    async def received() -> Message:
        return pending.pop() if pending else await receive()

    return received


async def _close(receive: Receive, send: Send) -> None:
    await receive()
    # Before it was accepted: the browser sees a 403.
    await send({"type": "websocket.close", "code": _POLICY_CLOSED})


def _host_of(origin: str) -> str | None:
    try:
        host = urlsplit(origin).netloc
    except ValueError:
        return None
    return _normal(host, origin) if host else None


def _normal(host: str, origin: str) -> str:
    """Return a host with its port; without one, the default port of the origin's scheme."""
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
    )
