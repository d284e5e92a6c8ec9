"""Errors of Pulsar, its client and its admin API as HeadgateErrors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.errors import Domain, HeadgateError

if TYPE_CHECKING:
    from pulsar import PulsarException

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
_LONGEST = 300


def explain(doing: str, error: PulsarException, *, service: str) -> HeadgateError:
    """Return an error of Pulsar's client as a HeadgateError.

    Args:
        doing: What could not be done, as in "cannot DOING".
        error: The final error.
        service: The service of the request.
    """
    name = type(error).__name__
    if name in _SILENT:
        return unreachable(doing, service, words(error))
    if name in _REFUSED:
        return refused(doing, service, words(error))
    return failed(doing, service, f"{name}: {words(error)}", retryable=name in _PASSING)


def unreachable(doing: str, where: str, problem: str) -> HeadgateError:
    """Return the error for a service that does not respond."""
    return HeadgateError(
        "BROKER_UNREACHABLE",
        f"cannot {doing}: no Pulsar broker responds at {where} ({one_line(problem)})",
        hint="headgate broker start pulsar, or use a running one: --on "
        "pulsar://HOST:6650?admin=http://HOST:8080",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def refused(doing: str, where: str, problem: str) -> HeadgateError:
    """Return the error for a broker that refused this client."""
    return HeadgateError(
        "BROKER_REFUSED",
        f"cannot {doing}: Pulsar at {where} refused this client: {one_line(problem)}",
        hint="check token or authPluginClassName and authParams, their references, "
        "tlsTrustCertsFilePath, and the permissions of that role",
        domain=Domain.EXTERNAL,
    )


def failed(doing: str, where: str, problem: str, *, retryable: bool) -> HeadgateError:
    """Return the error for a broker that responded with an error of its own."""
    return HeadgateError(
        "BROKER_FAILED",
        f"cannot {doing}: Pulsar at {where} answered {one_line(problem)}",
        hint="see the broker's log",
        domain=Domain.EXTERNAL,
        retryable=retryable,
    )


def words(error: BaseException) -> str:
    """Return the message of an error."""
    return _PREFIX.sub("", str(error)) or type(error).__name__


def one_line(text: str) -> str:
    """Return the first line of a text that is not blank, truncated if it is long."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    return (first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…").rstrip(".: ")
