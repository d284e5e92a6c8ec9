"""Python's clients of Pulsar: without output on the terminal, with short timeouts.

The C++ client is loaded with the first client, so that commands without Pulsar start fast.
"""

from __future__ import annotations

import math
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from headgate.connectors.pulsar.access.settings import read_settings
from headgate.connectors.pulsar.descriptor import PulsarLog, bad_option
from headgate.connectors.pulsar.failures import FAILURES, words
from headgate.connectors.pulsar.login import Login

if TYPE_CHECKING:
    from pulsar import Client

_REACH_S = 2.0


def open_client(log: PulsarLog, *, doing: str) -> Client:
    """Return a client of a service that accepts connections; the caller closes it.

    It raises `pulsar.PulsarException`s, which `failures.explain` translates.

    Args:
        doing: The purpose, as in "cannot DOING".

    Raises:
        HeadgateError: BROKER_UNREACHABLE, within 2 s; errors of the client's options.
    """
    arguments = _arguments(log)
    connect(log, doing=doing)
    import pulsar

    try:
        return pulsar.Client(**arguments)
    except (ValueError, pulsar.PulsarException) as error:
        raise bad_option(
            "options",
            f"the C++ client, which everything except jobs uses, reports: {words(error)}",
            "use token, tlsTrustCertsFilePath, tlsCertificateFilePath and tlsKeyFilePath, "
            "which all clients support",
        ) from None


def connect(log: PulsarLog, *, doing: str) -> None:
    """Return when a host of the service accepts a connection; give up after 2 s.

    The C++ client itself would retry for the whole operation timeout.

    Raises:
        HeadgateError: BROKER_UNREACHABLE.
    """
    deadline = time.monotonic() + _REACH_S
    problem = "no server responds"
    for address in log.hosts():
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            with socket.create_connection(address, timeout=left):
                return
        except OSError as error:
            problem = error.strerror or words(error)
    raise FAILURES.unreachable(doing, log.service, problem)


def _arguments(log: PulsarLog) -> dict[str, Any]:
    settings = read_settings(log)
    return {
        "service_url": log.service,
        "authentication": _authentication(settings.login),
        "operation_timeout_seconds": math.ceil(settings.operation_timeout_s),
        "connection_timeout_ms": round(settings.connect_timeout_s * 1000),
        "stats_interval_in_seconds": 0,
        "tls_trust_certs_file_path": settings.trust,
        "tls_allow_insecure_connection": settings.insecure,
        "tls_validate_hostname": bool(settings.check_name),
        "tls_certificate_file_path": settings.certificate,
        "tls_private_key_file_path": settings.key,
        "logger": _silence(),
    }


def _authentication(login: Login) -> Any:
    import pulsar

    if login.token is not None:
        return pulsar.AuthenticationToken(login.token)
    if login.user is not None:
        return pulsar.AuthenticationBasic(*login.user)
    if login.certificate is not None and login.key is not None:
        return pulsar.AuthenticationTLS(login.certificate, login.key)
    return None


def _silence() -> Any:
    """Return a logger for output that the C++ client would print on the terminal.

    A Python logger would be called for each record sent, which takes as long as sending (seen in
    pulsar-client 3.13).
    """
    import pulsar

    return pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
