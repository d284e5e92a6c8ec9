"""Errors of Kafka and its client as HeadgateErrors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.errors import Domain, HeadgateError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_SILENT = frozenset(
    {
        "_ALL_BROKERS_DOWN",
        "_MSG_TIMED_OUT",
        "_RESOLVE",
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        "_WAIT_COORD",
        "REQUEST_TIMED_OUT",
    }
)
_REFUSED = frozenset(
    {
        "_AUTHENTICATION",
        "_SSL",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "ILLEGAL_SASL_STATE",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNSUPPORTED_SASL_MECHANISM",
    }
)
_HANDSHAKE = "SSL handshake failed"
# librdkafka begins with the broker and ends with the duration.
_BROKER = re.compile(r"^(?:\w+://)?[\w.\[\]:%-]+/(?:bootstrap|[0-9]+): ")
_DURATION = re.compile(r" \(after [0-9]+ms in state \w+[^)]*\)")


def explain(
    doing: str, error: KafkaError, *, servers: str, troubles: Sequence[KafkaError] = ()
) -> HeadgateError:
    """Return an error of Kafka as a HeadgateError.

    Args:
        doing: What could not be done, as in "cannot DOING".
        error: The final error.
        servers: The servers of the request.
        troubles: Background errors, oldest first: a refused login appears only there; the request
            itself just times out.
    """
    if is_silent(error):
        refused = next((trouble for trouble in troubles if is_refused(trouble)), None)
        if refused is not None:
            return _refusal(doing, refused, servers)
        reason = next(
            (trouble for trouble in troubles if trouble.name() != "_ALL_BROKERS_DOWN"), error
        )
        return unreachable(doing, servers, words(reason))
    if is_refused(error):
        return _refusal(doing, error, servers)
    return HeadgateError(
        "BROKER_FAILED",
        f"cannot {doing}: Kafka at {servers} answered {error.name()}: {words(error)}",
        hint="see the broker's log",
        domain=Domain.EXTERNAL,
        retryable=bool(error.retriable()),
    )


def is_silent(error: KafkaError) -> bool:
    """Return True if no broker responded."""
    return error.name() in _SILENT and not is_refused(error)


def is_refused(error: KafkaError) -> bool:
    """Return True if a broker refused this client."""
    return error.name() in _REFUSED or _HANDSHAKE in str(error.str())


def is_final(error: KafkaError) -> bool:
    """Return True if retrying a failed connection at once would not help."""
    return is_refused(error) or "refused" in str(error.str()) or error.name() == "_RESOLVE"


def unreachable(doing: str, servers: str, problem: str) -> HeadgateError:
    """Return the error for servers that do not respond."""
    return HeadgateError(
        "BROKER_UNREACHABLE",
        f"cannot {doing}: no Kafka broker responds at {servers} ({problem})",
        hint="headgate broker start kafka, or use running servers: --on kafka://HOST:9092",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def words(error: KafkaError) -> str:
    """Return the message of an error, without details that only a log needs."""
    text = _DURATION.sub("", _BROKER.sub("", str(error.str())))
    return text.replace("Local: ", "").replace("Broker: ", "").strip().rstrip(".: ")


def _refusal(doing: str, error: KafkaError, servers: str) -> HeadgateError:
    return HeadgateError(
        "BROKER_REFUSED",
        f"cannot {doing}: Kafka at {servers} refused this client: {words(error)}",
        hint="check security.protocol, sasl.mechanism, sasl.username, the reference in "
        "sasl.password, and the permissions of that user",
        domain=Domain.EXTERNAL,
    )
