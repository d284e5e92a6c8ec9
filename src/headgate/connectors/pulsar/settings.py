"""From the Java client's options to what Python's clients of Pulsar are told.

The C++ client behind them and the admin API know a part of what the Java client knows: what has
a counterpart is translated, what only tunes the Java client is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.connectors.properties import read_properties
from headgate.connectors.pulsar.client import ClientSpec, bad_option
from headgate.connectors.pulsar.login import Login, parse_login
from headgate.connectors.references import resolve

_PREFIXES = ("reader.", "producer.")
_OPERATION_TIMEOUT_MS = 10_000
_CONNECT_TIMEOUT_MS = 2_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client is told. It may hold secrets: it is neither kept nor shown.

    Attributes:
        trust: A PEM file of the authorities that are trusted; None for the usual ones.
        insecure: Whether any certificate is taken.
        check_name: Whether the broker's certificate has to name its host; None where nothing is
            said: then that of the admin API has to, as for jobs, and the broker's own need not.
        operation_timeout_s: How long an operation is tried.
        connect_timeout_s: How long a connection is tried.
    """

    login: Login
    trust: str | None
    certificate: str | None
    key: str | None
    insecure: bool
    check_name: bool | None
    operation_timeout_s: float
    connect_timeout_s: float


def read_settings(client: ClientSpec, *, environment: Mapping[str, str] | None = None) -> Settings:
    """Return what Python's clients are told: the file's options and the client's own over them.

    Args:
        environment: Where references look; this process's, if left out.

    Raises:
        HeadgateError: CLIENT_CONFIG_UNREADABLE, SECRET_NOT_FOUND, BAD_CLIENT_OPTION.
    """
    options = read_options(client, environment=environment)
    general = {name: value for name, value in options.items() if not name.startswith(_PREFIXES)}
    login = parse_login(general)
    return Settings(
        login=login,
        trust=_trust(general),
        certificate=login.certificate or general.get("tlsCertificateFilePath") or None,
        key=login.key or general.get("tlsKeyFilePath") or None,
        insecure=bool(_is_true(general, "tlsAllowInsecureConnection")),
        check_name=_is_true(general, "tlsHostnameVerificationEnable", otherwise=None),
        operation_timeout_s=_seconds(general, "operationTimeoutMs", _OPERATION_TIMEOUT_MS),
        connect_timeout_s=_seconds(general, "connectionTimeoutMs", _CONNECT_TIMEOUT_MS),
    )


def read_options(
    client: ClientSpec, *, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the file's options and the client's own over them, references resolved."""
    file = {} if client.config is None else read_properties(Path(client.config), broker="Pulsar")
    chosen = {**file, **dict(client.options)}
    return {name: resolve(name, value, environment=environment) for name, value in chosen.items()}


def _trust(options: Mapping[str, str]) -> str | None:
    found = options.get("tlsTrustCertsFilePath") or None
    if found is None and _is_true(options, "useKeyStoreTls"):
        kind = options.get("tlsTrustStoreType", "JKS")
        store = options.get("tlsTrustStorePath", "truststore.jks")
        raise bad_option(
            "useKeyStoreTls",
            f"its stores are of type {kind}, and the verbs on topics read PEM",
            f"keytool -exportcert -rfc -keystore {store} -alias ALIAS -file ca.pem, then use "
            "tlsTrustCertsFilePath=ca.pem",
        )
    return found


def _is_true(
    options: Mapping[str, str], name: str, *, otherwise: bool | None = False
) -> bool | None:
    if name not in options:
        return otherwise
    text = options[name].strip().lower()
    if text not in ("true", "false"):
        raise bad_option(name, "it is neither true nor false", f"use {name}=true")
    return text == "true"


def _seconds(options: Mapping[str, str], name: str, default_ms: int) -> float:
    text = options.get(name, str(default_ms)).strip()
    if not text.isdecimal() or not int(text):
        raise bad_option(name, "it is no number of milliseconds", f"use {name}={default_ms}")
    return int(text) / 1000
