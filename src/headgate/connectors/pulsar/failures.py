"""Errors of Pulsar, its client and its admin API as HeadgateErrors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.connectors.broker.failures import BrokerFailures
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pulsar import PulsarException

FAILURES = BrokerFailures(
    "Pulsar",
    start="headgate broker start pulsar, or use a running one: --on "
    "pulsar://HOST:6650?admin=http://HOST:8080",
    login="check token or authPluginClassName and authParams, their references, "
    "tlsTrustCertsFilePath, and the permissions of that role",
)

_SILENT = frozenset({"ConnectError", "NotConnected", "Timeout", "ReadError"})
_REFUSED = frozenset(
    {"AuthenticationError", "AuthorizationError", "ErrorGettingAuthenticationData"}
)
# Errors that may not occur on the next try.
_PASSING = frozenset(
    {
        "BrokerMetadataError",
        "BrokerPersistenceError",
        "ConsumerBusy",
        "LookupError",
        "MemoryBufferIsFull",
        "ProducerBlockedQuotaExceededError",
        "ProducerBusy",
        "ProducerQueueIsFull",
        "ServiceUnitNotReady",
        "TooManyLookupRequestException",
    }
)
_PREFIX = re.compile(r"^Pulsar error: ")


def explain(doing: str, error: PulsarException, *, service: str) -> HeadgateError:
    """Return an error of Pulsar's client as a HeadgateError.

    Args:
        doing: What could not be done, as in "cannot DOING".
        error: The final error.
        service: The service of the request.
    """
    name = type(error).__name__
    if name in _SILENT:
        return FAILURES.unreachable(doing, service, words(error))
    if name in _REFUSED:
        return FAILURES.refused(doing, service, words(error))
    return FAILURES.failed(doing, service, f"{name}: {words(error)}", retryable=name in _PASSING)


def words(error: BaseException) -> str:
    """Return the message of an error."""
    return _PREFIX.sub("", str(error)) or type(error).__name__
