"""Pulsar's admin API: requests over persistent connections, with its errors as HeadgateErrors.

httpx is loaded with the first request, so that commands and jobs without it start fast.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http.client import responses
from typing import TYPE_CHECKING, Any

from headgate._references import MASK
from headgate.connectors.pulsar.access.settings import Settings, read_settings
from headgate.connectors.pulsar.descriptor import PulsarLog, bad_option
from headgate.connectors.pulsar.failures import FAILURES, words
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    import httpx

_ANSWER_S = 20.0
_REDIRECTS = 5
_NOT_FOUND = 404
# Events of httpcore. A reused connection that the broker has closed fails before either of them;
# then the request is repeated.
_NOT_STALE = frozenset(
    {"connection.connect_tcp.started", "http11.receive_response_headers.complete"}
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the admin API.

    Attributes:
        status: The HTTP status.
        content: The JSON of the body; None without a body, text if it is not JSON.
        headers: By name, ignoring case.
    """

    status: int
    content: Any
    headers: Mapping[str, str]


class Admin:
    """The admin API of one cluster, for one thread; close it, or use `with`.

    Paths are those below `/admin/v2`, such as `persistent/public/default/orders/partitions`.

    Args:
        doing: The purpose, as in "cannot DOING".

    Raises:
        HeadgateError: Errors of the client's options; from every request BROKER_UNREACHABLE, within
            3 s if no server listens, BROKER_REFUSED and BROKER_FAILED.
    """

    def __init__(self, log: PulsarLog, *, doing: str) -> None:
        self._base = f"{log.admin}/admin/v2/"
        self._where = log.admin
        self._doing = doing
        self._settings = read_settings(log)
        # By scheme: only the client for TLS reads certificates.
        self._clients: dict[str, httpx.Client] = {}

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def get(self, path: str, *, query: Mapping[str, str] | None = None) -> Any:
        """Return the content at a path; a missing one is an error."""
        return self.send("GET", path, query=query).content

    def find(self, path: str, *, query: Mapping[str, str] | None = None) -> Any | None:
        """Return the content at a path, or None if there is none."""
        answer = self.send("GET", path, query=query, accepts={_NOT_FOUND})
        return None if answer.status == _NOT_FOUND else answer.content

    def put(self, path: str, body: object = None, *, accepts: Collection[int] = ()) -> Any:
        return self.send("PUT", path, body, accepts=accepts).content

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        accepts: Collection[int] = (),
    ) -> Answer:
        """Return the response to a request.

        Args:
            path: Escaped if needed, as `names.topic_path` does.
            body: JSON values; None for no body.
            query: The parameters after the question mark.
            accepts: Further valid HTTP statuses, such as 409 for an existing resource.
        """
        import httpx

        url = httpx.URL(self._base + path, params=query)
        for _ in range(_REDIRECTS):
            response = self._exchange(method, url, body)
            if response.status_code not in (307, 308) or "location" not in response.headers:
                break
            # Only the broker that serves a topic answers for it. It needs the login too, which
            # httpx does not send to another host.
            url = self._followed(url, response.headers["location"])
        answer = Answer(response.status_code, _parsed(response.content), response.headers)
        if answer.status < 300 or answer.status in accepts:
            return answer
        raise self._failure(answer)

    def _exchange(self, method: str, url: httpx.URL, body: object) -> httpx.Response:
        import httpx

        events: set[str] = set()
        trace = {"trace": lambda event, _: events.add(event)}
        try:
            return self._client(url.scheme).request(method, url, json=body, extensions=trace)
        except httpx.HTTPError as error:
            is_closed = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
            if is_closed and not events & _NOT_STALE:
                return self._exchange(method, url, body)
            raise self._silence(error) from error

    def _client(self, scheme: str) -> httpx.Client:
        import httpx

        if scheme not in self._clients:
            login = self._settings.login
            bearer = {} if login.token is None else {"Authorization": f"Bearer {login.token}"}
            self._clients[scheme] = httpx.Client(
                auth=login.user if login.token is None else None,
                headers={"Accept": "application/json", "Accept-Encoding": "identity", **bearer},
                timeout=httpx.Timeout(_ANSWER_S, connect=self._settings.connect_timeout_s),
                verify=_tls(self._settings) if scheme == "https" else False,
                trust_env=False,
            )
        return self._clients[scheme]

    def _followed(self, url: httpx.URL, location: str) -> httpx.URL:
        target = url.join(location)
        if url.scheme == "https" != target.scheme:
            problem = "with a redirect away from TLS"
            raise FAILURES.failed(self._doing, self._where, problem, retryable=False)
        return target

    def _silence(self, error: httpx.HTTPError) -> HeadgateError:
        match _root(error):
            case ssl.SSLCertVerificationError(verify_message=message):
                return FAILURES.refused(self._doing, self._where, message)
            case ssl.SSLError(reason=reason):
                return FAILURES.refused(self._doing, self._where, reason or "TLS failed")
            case TimeoutError():
                problem = "no response in time"
            case root:
                problem = self._masked(getattr(root, "strerror", "") or words(root))
        return FAILURES.unreachable(self._doing, self._where, problem)

    def _failure(self, answer: Answer) -> HeadgateError:
        problem = self._masked(f"{answer.status} {_reason(answer)}")
        if answer.status in (401, 403):
            return FAILURES.refused(self._doing, self._where, problem)
        retryable = answer.status >= 500 or answer.status in (408, 429)
        return FAILURES.failed(self._doing, self._where, problem, retryable=retryable)

    def _masked(self, text: str) -> str:
        for secret in self._settings.login.secrets():
            text = text.replace(secret, MASK)
        return text


def _root(error: BaseException) -> BaseException:
    """Return the system error behind an HTTP error, or the first error if there is none."""
    while not isinstance(error, OSError) and (inner := error.__cause__ or error.__context__):
        error = inner
    return error


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
            f"certificates are not readable ({getattr(error, 'strerror', '') or words(error)})",
            "use PEM files that exist",
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
            return responses.get(answer.status, "")
