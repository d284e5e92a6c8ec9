"""Schema registries as values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from urllib.parse import unquote

from headgate._references import check_secret, has_reference
from headgate.errors import HeadgateError

_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")
_EXAMPLE = "use http://localhost:8081, or https://registry?user=NAME&password=${env:PASSWORD}"


@dataclass(frozen=True, slots=True)
class Registry:
    """A schema registry with Confluent's REST API.

    Each part may be or contain a reference, `${env:NAME}` or `${file:PATH}`, which is resolved
    where the registry is asked; secrets must be references.

    Attributes:
        url: Its address, http:// or https://.
        user: A name to log in with; needs a password.
        password: The password.
        token: A bearer token, in place of a name and a password.
    """

    url: str
    user: str | None = None
    password: str | None = None
    token: str | None = None

    def __post_init__(self) -> None:
        if not has_reference(self.url) and not _URL.fullmatch(self.url):
            # The text may have a password in front of the host.
            raise _bad("its address must be a http:// or https:// URL without a user name")
        if (self.user is None) != (self.password is None):
            raise _bad("user and password must be set together")
        if self.user is not None and self.token is not None:
            raise _bad("it has both a user and a token")
        for name, value in (("password", self.password), ("token", self.token)):
            if value is not None:
                check_secret(f"registry {name}", value, broker="registry")

    @classmethod
    def parse(cls, text: str) -> Registry:
        """Return the registry of a text: its address, then `?user=…&password=…` or `?token=…`.

        Raises:
            HeadgateError: BAD_REGISTRY, SECRET_IN_PLAIN.
        """
        url, _, query = text.partition("?")
        parts = dict(_pairs(query))
        return cls(url, **parts)


def as_registry(value: str | Registry) -> Registry:
    """Return a registry, of its text or as it is."""
    return Registry.parse(value) if isinstance(value, str) else value


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    known = [field.name for field in fields(Registry) if field.name != "url"]
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if name not in known or not equals:
            raise _bad(f"it has no option {name!r}, only {', '.join(known)}")
        yield name, unquote(value)


def _bad(problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_REGISTRY", f"cannot use the schema registry: {problem}", hint=_EXAMPLE
    )
