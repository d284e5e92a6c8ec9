"""What Pulsar, its client and its admin API say went wrong, in our words."""

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
# What another try may not meet again.
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
    """Return an error of Pulsar's client as one of ours.

    Args:
        doing: What could not be done, after the word cannot.
        error: What ended it.
        service: Who was asked.
    """
    name = type(error).__name__
    if name in _SILENT:
        return unreachable(doing, service, words(error))
    if name in _REFUSED:
        return refused(doing, service, words(error))
    return failed(doing, service, f"{name}: {words(error)}", retryable=name in _PASSING)


def unreachable(doing: str, where: str, found: str) -> HeadgateError:
    """Return the error for a service that does not answer."""
    return HeadgateError(
        "BROKER_UNREACHABLE",
        f"cannot {doing}: no Pulsar answers at {where} ({one_line(found)})",
        hint="headgate broker start pulsar, or name one that runs: "
        "--on pulsar://HOST:6650?admin=http://HOST:8080",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def refused(doing: str, where: str, found: str) -> HeadgateError:
    """Return the error for a broker that answered that this client may not do so."""
    return HeadgateError(
        "BROKER_REFUSED",
        f"cannot {doing}: Pulsar at {where} refused this client: {one_line(found)}",
        hint="check token or authPluginClassName and authParams, what their references stand "
        "for, tlsTrustCertsFilePath, and the rights of that role",
        domain=Domain.EXTERNAL,
    )


def failed(doing: str, where: str, found: str, *, retryable: bool) -> HeadgateError:
    """Return the error for a broker that answered with one of its own."""
    return HeadgateError(
        "BROKER_FAILED",
        f"cannot {doing}: Pulsar at {where} answered {one_line(found)}",
        hint="look into the log of the broker",
        domain=Domain.EXTERNAL,
        retryable=retryable,
    )


def words(error: BaseException) -> str:
    """Return what an error says."""
    return _PREFIX.sub("", str(error)) or type(error).__name__


def one_line(text: str) -> str:
    """Return the first line of a text that says something, cut where it is long."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    return (first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…").rstrip(".: ")
