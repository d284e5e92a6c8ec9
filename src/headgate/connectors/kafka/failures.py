"""What Kafka and its client say went wrong, in our words."""

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
# librdkafka begins with the broker it means and ends with how long it took.
_BROKER = re.compile(r"^(?:\w+://)?[\w.\[\]:%-]+/(?:bootstrap|[0-9]+): ")
_DURATION = re.compile(r" \(after [0-9]+ms in state \w+[^)]*\)")


def explain(
    doing: str, error: KafkaError, *, servers: str, troubles: Sequence[KafkaError] = ()
) -> HeadgateError:
    """Return an error of Kafka's as one of ours.

    Args:
        doing: What could not be done, after the word cannot.
        error: What ended it.
        servers: Who was asked.
        troubles: What went wrong in the background, oldest first: a login that is refused shows
            there, and is mere silence to whoever waits.
    """
    if is_silent(error):
        refused = next((each for each in troubles if is_refused(each)), None)
        if refused is not None:
            return _refusal(doing, refused, servers)
        reason = next((each for each in troubles if each.name() != "_ALL_BROKERS_DOWN"), error)
        return unreachable(doing, servers, words(reason))
    if is_refused(error):
        return _refusal(doing, error, servers)
    return HeadgateError(
        "BROKER_FAILED",
        f"cannot {doing}: Kafka at {servers} answered {error.name()}: {words(error)}",
        hint="look into the log of the broker",
        domain=Domain.EXTERNAL,
        retryable=bool(error.retriable()),
    )


def is_silent(error: KafkaError) -> bool:
    """Tell whether nobody answered."""
    return error.name() in _SILENT and not is_refused(error)


def is_refused(error: KafkaError) -> bool:
    """Tell whether a broker answered that this client may not do so."""
    return error.name() in _REFUSED or _HANDSHAKE in str(error.str())


def is_final(error: KafkaError) -> bool:
    """Tell whether a failed connection will hardly do better in a second."""
    return is_refused(error) or "refused" in str(error.str()) or error.name() == "_RESOLVE"


def unreachable(doing: str, servers: str, found: str) -> HeadgateError:
    """Return the error for servers that do not answer."""
    return HeadgateError(
        "BROKER_UNREACHABLE",
        f"cannot {doing}: no Kafka answers at {servers} ({found})",
        hint="headgate broker start kafka, or name servers that run: --on kafka://HOST:9092",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def words(error: KafkaError) -> str:
    """Return what an error says, without what its own log would need."""
    text = _DURATION.sub("", _BROKER.sub("", str(error.str())))
    return text.replace("Local: ", "").replace("Broker: ", "").strip().rstrip(".: ")


def _refusal(doing: str, error: KafkaError, servers: str) -> HeadgateError:
    return HeadgateError(
        "BROKER_REFUSED",
        f"cannot {doing}: Kafka at {servers} refused this client: {words(error)}",
        hint="check security.protocol, sasl.mechanism, sasl.username, what the reference of "
        "sasl.password stands for, and the rights of that user",
        domain=Domain.EXTERNAL,
    )
