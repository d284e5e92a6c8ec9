"""Logins to Pulsar: the plugins of the Java client and their parameters."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headgate.connectors.broker.options import bad_client_option
from headgate.errors import HeadgateError

PLUGIN = "authPluginClassName"
PARAMS = "authParams"
TOKEN = "token"

_CERTIFICATE = "tlsCertFile"
_KEY = "tlsKeyFile"
_FILE = "file:"
_SECRET = re.compile(r"password|secret|token|key", re.IGNORECASE)

_bad_login = functools.partial(bad_client_option, "Pulsar")


@dataclass(frozen=True, slots=True)
class Login:
    """The identity of a client; all None for an anonymous client. Never shown.

    Attributes:
        token: A JSON web token.
        user: A name and a password.
        certificate: A PEM file with the client's certificate; its key is in another file.
    """

    token: str | None = field(default=None, repr=False)
    user: tuple[str, str] | None = field(default=None, repr=False)
    certificate: str | None = None
    key: str | None = None

    def secrets(self) -> list[str]:
        password = None if self.user is None else self.user[1]
        return [secret for secret in (self.token, password) if secret]


def parse_login(options: Mapping[str, str]) -> Login:
    """Return the login in options with resolved references.

    Raises:
        HeadgateError: BAD_CLIENT_OPTION: the commands on topics do not support the login.
            SECRET_NOT_FOUND.
    """
    if TOKEN in options:
        if not options[TOKEN].strip():
            hint = "put the address in single quotes: otherwise the shell expands ${env:NAME}"
            raise _bad_login(TOKEN, "it is empty", hint)
        if PLUGIN in options or PARAMS in options:
            raise _bad_login(TOKEN, f"{PLUGIN} or {PARAMS} is set too", f"use only {TOKEN}")
        return Login(token=options[TOKEN].strip())
    plugin = options.get(PLUGIN, "").rpartition(".")[2]
    params = options.get(PARAMS, "").strip()
    match plugin:
        case "" | "AuthenticationDisabled":
            return Login()
        case "AuthenticationToken" | "token":
            return Login(token=_read_token(params))
        case "AuthenticationTls" | "tls":
            pairs = _pairs(params)
            return Login(certificate=pairs.get(_CERTIFICATE), key=pairs.get(_KEY))
        case "AuthenticationBasic" | "basic":
            return Login(user=_parse_user(params))
        case _:
            raise _bad_login(
                PLUGIN,
                f"it names {plugin}, and the commands on topics support a token, a "
                "certificate, or a user name and password",
                "use token=${env:PULSAR_TOKEN}",
            )


def find_secrets(name: str, value: str) -> list[str] | None:
    """Return the secrets in the parameters of a login, or None if the whole value is secret."""
    if name.rpartition(".")[2] != PARAMS:
        return None
    text = value.strip()
    if text.startswith("{"):
        return _find_json_secrets(text)
    if _CERTIFICATE in text or _KEY in text:
        return []
    token = text.removeprefix("token:")
    return [] if token.startswith(_FILE) else [token]


def _find_json_secrets(text: str) -> list[str] | None:
    try:
        content = json.loads(text)
    except ValueError:
        return None
    return [
        str(value)
        for name, value in content.items()
        if _SECRET.search(name) and not str(value).startswith(_FILE)
    ]


def _read_token(params: str) -> str:
    token = params.removeprefix("token:")
    if not token.startswith(_FILE):
        return token
    path = Path(unquote(urlsplit(token).path))
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise HeadgateError(
            "SECRET_NOT_FOUND", f"cannot resolve {token} for {PARAMS}: {why}", hint=f"ls -l {path}"
        ) from error


def _pairs(params: str) -> dict[str, str]:
    pairs = (pair.partition(":") for pair in params.split(","))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _parse_user(params: str) -> tuple[str, str]:
    try:
        content = json.loads(params)
        return str(content["userId"]), str(content["password"])
    except (ValueError, KeyError, TypeError):
        # The cause would quote the password.
        raise _bad_login(
            PARAMS,
            'a user name and password must have the form {"userId": …, "password": …}',
            'use authParams={"userId":"me","password":"${env:PULSAR_SECRET}"}',
        ) from None
