"""Errors of Kafka and its client as HeadgateErrors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.connectors.broker.failures import BrokerFailures
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

FAILURES = BrokerFailures(
    "Kafka",
    start="headgate broker start kafka, or use running servers: --on kafka://HOST:9092",
    login="check security.protocol, sasl.mechanism, sasl.username, the reference in "
    "sasl.password, and the permissions of that user",
)

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
    is_silent = error.name() in _SILENT
    candidates = (error, *troubles) if is_silent else (error,)
    refusal = next((candidate for candidate in candidates if is_refused(candidate)), None)
    if refusal is not None:
        return FAILURES.refused(doing, servers, words(refusal))
    if is_silent:
        reasons = (trouble for trouble in troubles if trouble.name() != "_ALL_BROKERS_DOWN")
        return FAILURES.unreachable(doing, servers, words(next(reasons, error)))
    problem = f"{error.name()}: {words(error)}"
    return FAILURES.failed(doing, servers, problem, retryable=bool(error.retriable()))


def is_refused(error: KafkaError) -> bool:
    """Return True if a broker refused this client."""
    return error.name() in _REFUSED or _HANDSHAKE in str(error.str())


def is_final(error: KafkaError) -> bool:
    """Return True if retrying a failed connection at once would not help."""
    return is_refused(error) or "refused" in str(error.str()) or error.name() == "_RESOLVE"


def words(error: KafkaError) -> str:
    """Return the message of an error, without details that only a log needs."""
    text = _DURATION.sub("", _BROKER.sub("", str(error.str())))
    return text.replace("Local: ", "").replace("Broker: ", "").strip().rstrip(".: ")
