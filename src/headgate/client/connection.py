"""A server over HTTP: requests with a token; every failure is a HeadgateError."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from headgate._codec import DecodeError, decode
from headgate.errors import Domain, HeadgateError

_CONNECT = timedelta(seconds=5)
_READ = timedelta(seconds=60)
# A reader of state starts Spark first, and a query may be large.
_LONG_READ = timedelta(minutes=8)
# Pauses before the second and third attempt of a request that may be repeated.
_PAUSES_S = (0.2, 0.8)
_LONGEST_PAUSE_S = 10.0
_PREFIX = "/v1"
# Responses of a proxy whose server is down.
_AWAY = (502, 503, 504)
_DOMAINS = {500: Domain.INTERNAL, 501: Domain.INTERNAL}

_Value = TypeVar("_Value")


class Connection:
    """A connection to one server, with one token; for one thread at a time.

    Args:
        url: Such as `http://localhost:8270`; a bad one raises BAD_SERVER.
        token: None if the server needs no token.

    Attributes:
        exposes_token: Whether the token travels over the network unencrypted.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        parsed = _parse(url)
        self.url = str(parsed).rstrip("/").removesuffix(_PREFIX)
        self._token = token
        self._client = httpx.Client(
            base_url=self.url + _PREFIX,
            headers={"Accept": "application/json"}
            | ({} if token is None else {"Authorization": f"Bearer {token}"}),
            # Loading the certificate authorities is slow, and plain HTTP needs none.
            verify=parsed.scheme == "https",
            # A proxy is not needed on this machine.
            trust_env=not is_loopback(parsed.host),
        )
        self.exposes_token = (
            token is not None and parsed.scheme == "http" and not is_loopback(parsed.host)
        )

    def get(self, *path: str, patient: bool = False, **query: Any) -> Any:
        """Return the response to a GET request as JSON values; lost requests are repeated.

        Args:
            path: The parts of the path, not quoted.
            patient: Wait for minutes.
            query: The parameters; None omits one.
        """
        request = self._client.build_request(
            "GET", _join(path), params=_given(query), timeout=_timeout(patient)
        )
        return self._repeat(request, patient=patient)

    def send(
        self,
        method: str,
        *path: str,
        body: Mapping[str, Any] | None = None,
        patient: bool = False,
        **query: Any,
    ) -> Any:
        """Send a request for a change, once, and return the response as JSON values.

        Args:
            query: The parameters; None omits one.
        """
        try:
            answer = self._client.request(
                method,
                _join(path),
                params=_given(query),
                json=dict(body or {}),
                timeout=_timeout(patient),
            )
        except httpx.TransportError as error:
            raise self._unreachable(error, changes=True) from error
        return self._read(answer)

    def send_once(self, method: str, *path: str, key: str, body: Mapping[str, Any]) -> Any:
        """Send a request that the server does once, however often it arrives; repeat a lost one.

        Args:
            key: The idempotency key, another one for each request.
        """
        request = self._client.build_request(
            method,
            _join(path),
            json=dict(body),
            timeout=_timeout(False),
            headers={"Idempotency-Key": key},
        )
        return self._repeat(request, changes=True)

    def parse(self, kind: type[_Value], answer: Any) -> _Value:
        """Return the value in a response; the server may be of another release.

        Raises:
            HeadgateError: SERVER_UNKNOWN if the response is not such a value.
        """
        try:
            return decode(kind, answer)
        except DecodeError as error:
            raise HeadgateError(
                "SERVER_UNKNOWN",
                f"cannot understand {self.url}: its response does not match this release "
                f"({error}); is this a headgate server of the same version?",
                hint="headgate --version, here and there",
                domain=Domain.EXTERNAL,
            ) from error

    def close(self) -> None:
        self._client.close()

    def _repeat(
        self, request: httpx.Request, *, patient: bool = False, changes: bool = False
    ) -> Any:
        """Return the response as JSON values; a lost request is sent again after a pause."""
        for pause in (*_PAUSES_S, None):
            try:
                answer = self._client.send(request)
            except httpx.TransportError as error:
                # A response that took this long would take as long again.
                if pause is None or (patient and isinstance(error, httpx.ReadTimeout)):
                    raise self._unreachable(error, changes=changes) from error
            else:
                if pause is None or answer.status_code not in (429, *_AWAY):
                    return self._read(answer)
                pause = max(pause, _asked_pause(answer))
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _read(self, answer: httpx.Response) -> Any:
        if answer.status_code == 401:
            raise self._refused()
        try:
            content = answer.json()
        except ValueError:
            content = None
        if answer.is_success and isinstance(content, dict | list):
            return content
        error = None if answer.is_success else find_error(content, answer.status_code)
        if error is not None:
            raise error
        if answer.status_code in _AWAY:
            raise self._unreachable(f"a proxy answered {answer.status_code}")
        raise HeadgateError(
            "SERVER_UNKNOWN",
            f"cannot understand {self.url}: it answered {answer.status_code} to "
            f"{answer.request.method} {answer.request.url.path}, which is not a headgate "
            "response; is this a headgate server?",
            hint=f"curl {self.url}/healthz",
            domain=Domain.EXTERNAL,
        )

    def _refused(self) -> HeadgateError:
        if self._token is None:
            return HeadgateError(
                "TOKEN_MISSING",
                f"cannot ask {self.url}: it needs a token, and none was given",
                hint="export HEADGATE_TOKEN=TOKEN, or add --token-file FILE",
            )
        return HeadgateError(
            "TOKEN_WRONG",
            f"cannot ask {self.url}: it refused this token",
            hint="use the server's token: export HEADGATE_TOKEN=TOKEN",
        )

    def _unreachable(self, why: Exception | str, *, changes: bool = False) -> HeadgateError:
        sent = changes and not isinstance(why, httpx.ConnectError | httpx.ConnectTimeout)
        perhaps = "; the request may have been done all the same" if sent else ""
        return HeadgateError(
            "SERVER_UNREACHABLE",
            f"cannot reach {self.url}: {_reason(why)}{perhaps}",
            hint=f"headgate jobs --server {self.url}"
            if sent
            else f"check that it runs: curl {self.url}/healthz; headgate serve starts one",
            domain=Domain.EXTERNAL,
            retryable=True,
        )


def find_error(content: Any, status: int = 500) -> HeadgateError | None:
    """Return the error in a server's response, or None if the response is not one of ours.

    Args:
        content: JSON values: code, message, hint, and maybe the command and the domain.
        status: Decides the domain if the response does not name it.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("code"), str):
        return None
    fallback = _DOMAINS.get(status, Domain.USER if status < 500 else Domain.EXTERNAL)
    domain = content.get("domain")
    return HeadgateError(
        content["code"],
        str(content.get("message") or ""),
        # The hint itself names requests.
        hint=str(content.get("command") or content.get("hint") or ""),
        domain=Domain(domain) if domain in tuple(Domain) else fallback,
    )


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _parse(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise _bad_url(url, str(error)) from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise _bad_url(url, "it must begin with http:// or https://")
    if parsed.userinfo:
        raise _bad_url(str(parsed.copy_with(userinfo=b"")), "it must not contain a secret")
    if parsed.query or parsed.fragment:
        raise _bad_url(url, "it must be a host, a port and a path only")
    return parsed


def _bad_url(url: str, problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SERVER",
        f"cannot connect to server {url!r}: {problem}",
        hint="write --server http://localhost:8270",
    )


def _timeout(patient: bool) -> httpx.Timeout:
    read = _LONG_READ if patient else _READ
    return httpx.Timeout(read.total_seconds(), connect=_CONNECT.total_seconds())


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _join(path: tuple[str, ...]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in path)


def _asked_pause(answer: httpx.Response) -> float:
    try:
        return min(float(answer.headers.get("Retry-After", "0")), _LONGEST_PAUSE_S)
    except ValueError:
        return 0.0


def _reason(why: Exception | str) -> str:
    if isinstance(why, httpx.ConnectTimeout):
        return f"it did not answer within {_CONNECT.total_seconds():.0f} s"
    if isinstance(why, httpx.TimeoutException):
        return "it did not answer in time"
    return str(why) or type(why).__name__
