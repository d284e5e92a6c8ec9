"""Options of the Java client, translated for Python's clients of Pulsar.

The C++ client behind them and the admin API support a part of the Java client's options: options
with a counterpart are translated, options that only tune the Java client are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate._references import resolve
from headgate.connectors.broker.properties import read_properties
from headgate.connectors.pulsar.descriptor import PulsarLog, bad_option
from headgate.connectors.pulsar.login import Login, parse_login

_PREFIXES = ("reader.", "producer.")
_OPERATION_TIMEOUT_MS = 10_000
_CONNECT_TIMEOUT_MS = 2_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a client. They may hold secrets: never store or print them.

    Attributes:
        trust: A PEM file of trusted authorities; None for the system's.
        insecure: True if any certificate is accepted.
        check_name: True if the broker's certificate must name its host; None if not set: then only
            the certificate of the admin API must, as for jobs.
        operation_timeout_s: The timeout of an operation.
        connect_timeout_s: The timeout of a connection.
    """

    login: Login
    trust: str | None
    certificate: str | None
    key: str | None
    insecure: bool
    check_name: bool | None
    operation_timeout_s: float
    connect_timeout_s: float


def read_settings(log: PulsarLog, *, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of Python's clients: the file's options, overridden by the client's own.

    Args:
        environment: The variables for references; by default this process's.

    Raises:
        HeadgateError: CLIENT_CONFIG_UNREADABLE, SECRET_NOT_FOUND, BAD_CLIENT_OPTION.
    """
    file = {} if log.config is None else read_properties(Path(log.config), broker="Pulsar")
    options = {
        name: resolve(name, value, environment=environment)
        for name, value in {**file, **dict(log.options)}.items()
    }
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


def _trust(options: Mapping[str, str]) -> str | None:
    trust = options.get("tlsTrustCertsFilePath") or None
    if trust is None and _is_true(options, "useKeyStoreTls"):
        kind = options.get("tlsTrustStoreType", "JKS")
        store = options.get("tlsTrustStorePath", "truststore.jks")
        raise bad_option(
            "useKeyStoreTls",
            f"its stores are of type {kind}, and the commands on topics support PEM only",
            f"keytool -exportcert -rfc -keystore {store} -alias ALIAS -file ca.pem, then use "
            "tlsTrustCertsFilePath=ca.pem",
        )
    return trust


def _is_true(
    options: Mapping[str, str], name: str, *, otherwise: bool | None = False
) -> bool | None:
    if name not in options:
        return otherwise
    text = options[name].strip().lower()
    if text not in ("true", "false"):
        raise bad_option(name, "it must be true or false", f"use {name}=true")
    return text == "true"


def _seconds(options: Mapping[str, str], name: str, default_ms: int) -> float:
    text = options.get(name, str(default_ms)).strip()
    if not text.isdecimal() or not int(text):
        raise bad_option(name, "it must be a number of milliseconds", f"use {name}={default_ms}")
    return int(text) / 1000
