"""Pulsar's admin API: requests over connections that are kept, and its errors in our words."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from headgate.connectors.pulsar.client import ClientSpec, bad_option
from headgate.connectors.pulsar.failures import failed, refused, unreachable, words
from headgate.connectors.pulsar.settings import Settings, read_settings
from headgate.connectors.references import MASK
from headgate.errors import HeadgateError

_JSON = "application/json"
_ANSWER_S = 20.0
_REDIRECTS = 5
_NOT_FOUND = 404
# A connection that was kept may have been closed by the other side meanwhile.
_STALE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the admin API said.

    Attributes:
        status: The code of HTTP.
        content: The JSON of the body; None where there is none, text where it is none.
        headers: By lower-case name.
    """

    status: int
    content: Any
    headers: Mapping[str, str]


class Admin:
    """The admin API of one cluster, for one thread; to be closed, as `with` does.

    Paths are those below `/admin/v2`, such as `persistent/public/default/orders/partitions`.

    Args:
        client: How Pulsar is reached.
        doing: What it is for, after the word cannot.

    Raises:
        HeadgateError: What is wrong with the client's options; from every request
            BROKER_UNREACHABLE, within 3 s where nobody listens, BROKER_REFUSED and BROKER_FAILED.
    """

    def __init__(self, client: ClientSpec, *, doing: str) -> None:
        self._base = f"{client.admin}/admin/v2/"
        self._where = client.admin
        self._doing = doing
        self._settings = read_settings(client)
        self._headers = _headers(self._settings)
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections; a later request opens new ones."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def get(self, path: str, *, query: Mapping[str, str] | None = None) -> Any:
        """Return what is at a path; what is not there is a failure."""
        return self.send("GET", path, query=query).content

    def find(self, path: str, *, query: Mapping[str, str] | None = None) -> Any | None:
        """Return what is at a path, or None where there is nothing."""
        answer = self.send("GET", path, query=query, accepts={_NOT_FOUND})
        return None if answer.status == _NOT_FOUND else answer.content

    def put(self, path: str, body: object = None, *, accepts: Collection[int] = ()) -> Any:
        """Put JSON, and return what is said to that."""
        return self.send("PUT", path, body, accepts=accepts).content

    def post(self, path: str, body: object = None, *, accepts: Collection[int] = ()) -> Any:
        """Post JSON, and return what is said to that."""
        return self.send("POST", path, body, accepts=accepts).content

    def delete(self, path: str, *, accepts: Collection[int] = ()) -> Any:
        """Delete what is at a path, and return what is said to that."""
        return self.send("DELETE", path, accepts=accepts).content

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        accepts: Collection[int] = (),
    ) -> Answer:
        """Return the answer to a request.

        Args:
            path: Escaped where it has to be, as `names.topic_path` does.
            body: JSON values; None for no body.
            query: What follows the question mark.
            accepts: Codes of HTTP that are answers too, such as 409 for what is there already.
        """
        url = self._base + path + (f"?{urlencode(query)}" if query else "")
        text = None if body is None else json.dumps(body).encode()
        for _ in range(_REDIRECTS):
            status, headers, content = self._exchange(method, urlsplit(url), text)
            if status not in (307, 308) or "location" not in headers:
                break
            # Only the broker that serves a topic answers for it.
            url = self._followed(url, headers["location"])
        answer = Answer(status, _parsed(content), headers)
        if status < 300 or status in accepts:
            return answer
        raise self._failure(answer)

    def _exchange(
        self, method: str, url: SplitResult, body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        headers = {**self._headers, **({} if body is None else {"Content-Type": _JSON})}
        target = url.path + (f"?{url.query}" if url.query else "")
        for _ in range(2):
            connection, kept = self._connection(url)
            try:
                connection.request(method, target, body, headers)
                response = connection.getresponse()
                content = response.read()
                names = {name.lower(): value for name, value in response.getheaders()}
                return response.status, names, content
            except _STALE as error:
                self._drop(url)
                if not kept:
                    raise unreachable(self._doing, self._where, words(error)) from error
            except (OSError, http.client.HTTPException) as error:
                self._drop(url)
                raise self._silence(error) from error
        raise unreachable(self._doing, self._where, "it closes every connection")

    def _connection(self, url: SplitResult) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it has been used before."""
        place = (url.scheme, url.netloc)
        kept = self._connections.get(place)
        if kept is not None and kept.sock is not None:
            return kept, True
        made = self._connect(url)
        self._connections[place] = made
        return made, False

    def _connect(self, url: SplitResult) -> http.client.HTTPConnection:
        host, wait = url.hostname or "", self._settings.connect_timeout_s
        made: http.client.HTTPConnection
        if url.scheme == "https":
            context = _tls(self._settings)
            made = http.client.HTTPSConnection(host, url.port, timeout=wait, context=context)
        else:
            made = http.client.HTTPConnection(host, url.port, timeout=wait)
        try:
            made.connect()
        except OSError as error:
            raise self._silence(error) from error
        assert made.sock is not None, "it is connected"
        made.sock.settimeout(_ANSWER_S)
        return made

    def _drop(self, url: SplitResult) -> None:
        connection = self._connections.pop((url.scheme, url.netloc), None)
        if connection is not None:
            connection.close()

    def _followed(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        if url.startswith("https:") and not target.startswith("https:"):
            raise failed(self._doing, self._where, "with a way off TLS", retryable=False)
        return target

    def _silence(self, error: Exception) -> HeadgateError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return refused(self._doing, self._where, error.verify_message)
        if isinstance(error, ssl.SSLError):
            return refused(self._doing, self._where, error.reason or "TLS failed")
        if isinstance(error, TimeoutError | socket.timeout):
            return unreachable(self._doing, self._where, "no answer in time")
        return unreachable(self._doing, self._where, getattr(error, "strerror", "") or words(error))

    def _failure(self, answer: Answer) -> HeadgateError:
        found = f"{answer.status} {_reason(answer)}"
        for secret in self._settings.login.secrets():
            found = found.replace(secret, MASK)
        if answer.status in (401, 403):
            return refused(self._doing, self._where, found)
        retryable = answer.status >= 500 or answer.status in (408, 429)
        return failed(self._doing, self._where, found, retryable=retryable)


def _headers(settings: Settings) -> dict[str, str]:
    headers = {"Accept": _JSON}
    if settings.login.token is not None:
        headers["Authorization"] = f"Bearer {settings.login.token}"
    elif settings.login.user is not None:
        pair = ":".join(settings.login.user).encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return headers


def _tls(settings: Settings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.trust)
        context.check_hostname = settings.check_name is not False and not settings.insecure
        if settings.insecure:
            context.verify_mode = ssl.CERT_NONE
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, settings.key)
    except (OSError, ssl.SSLError) as error:
        raise bad_option(
            "tlsTrustCertsFilePath",
            f"certificates cannot be read ({getattr(error, 'strerror', '') or words(error)})",
            "name PEM files that are there",
        ) from error
    return context


def _parsed(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


def _reason(answer: Answer) -> str:
    match answer.content:
        case {"reason": reason}:
            return str(reason)
        case str(text) if text and not text.lstrip().startswith("<"):
            return text
        case _:
            return http.client.responses.get(answer.status, "")
