"""Python's clients of Kafka: without output on the terminal, with short timeouts.

librdkafka is loaded with the first client, so that commands without Kafka start fast.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from headgate._references import MASK, is_secret
from headgate.connectors.kafka.access.librdkafka import Role, read_settings
from headgate.connectors.kafka.descriptor import KafkaLog, bad_option
from headgate.connectors.kafka.failures import FAILURES, explain, is_final
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin._metadata import ClusterMetadata

PATIENCE_S = 10.0

# A broker that refuses connections may be starting; after this long it counts as down.
_FIRST_LOOK_S = 2.0
_LOOK_S = 1.0
_PAUSE_S = 0.1
_UNKNOWN = re.compile(r'No such configuration property: "([^"]+)"')
# The likely options if librdkafka names none.
_SUSPECTS = ("sasl.mechanisms", "security.protocol", "acks")
_GUARDS = ("sasl.", "ssl.", "security.")
_KEPT_TROUBLES = 50
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Troubles:
    """Errors that a client reported in the background, oldest first."""

    servers: str
    errors: list[KafkaError] = field(default_factory=list)

    def add(self, error: KafkaError) -> None:
        """Keep an error; of many, the first ones."""
        if len(self.errors) < _KEPT_TROUBLES:
            self.errors.append(error)

    def explain(self, doing: str, raised: KafkaException | KafkaError) -> HeadgateError:
        """Return the reason of a failed call as a HeadgateError."""
        error = raised.args[0] if isinstance(raised, Exception) else raised
        return explain(doing, error, servers=self.servers, troubles=self.errors)


def open_admin(log: KafkaLog, *, doing: str) -> tuple[AdminClient, Troubles]:
    """Return a client that is connected to a broker.

    Args:
        doing: The purpose, as in "cannot DOING".

    Raises:
        HeadgateError: BROKER_UNREACHABLE, within 10 s; BROKER_REFUSED; errors of the client's
            options.
    """
    from confluent_kafka.admin import AdminClient

    admin, troubles = _open(AdminClient, log, Role.ADMIN, {})
    read_metadata(admin, troubles, doing=doing)
    return admin, troubles


def open_consumer(log: KafkaLog, own: Mapping[str, Any]) -> tuple[Consumer, Troubles]:
    """Return a consumer without a group: partitions are assigned, nothing is committed.

    It reads committed records, unless the client's options change that.

    Args:
        own: Options that override all others.
    """
    from confluent_kafka import Consumer

    settings = {
        "group.id": "headgate-reader",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        **own,
    }
    tuning = {"isolation.level": "read_committed"}
    return _open(Consumer, log, Role.CONSUMER, settings, tuning=tuning)


def open_producer(
    log: KafkaLog,
    own: Mapping[str, Any] | None = None,
    *,
    tuning: Mapping[str, Any] | None = None,
) -> tuple[Producer, Troubles]:
    """Return a producer.

    Args:
        own: Options that override all others.
        tuning: Defaults that the client's options override.
    """
    from confluent_kafka import Producer

    return _open(Producer, log, Role.PRODUCER, own or {}, tuning=tuning)


def read_metadata(
    of: AdminClient | Consumer | Producer,
    troubles: Troubles,
    *,
    doing: str,
    patience_s: float = PATIENCE_S,
) -> ClusterMetadata:
    """Return brokers and topics; give up early if the broker is down or refuses the client.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED.
    """
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + patience_s
    look_s = min(_FIRST_LOOK_S, patience_s)
    while True:
        try:
            return of.list_topics(timeout=look_s)
        except KafkaException as error:
            # Background errors are reported while the client is polled.
            of.poll(0)
            left = deadline - time.monotonic()
            if left <= 0 or any(is_final(trouble) for trouble in troubles.errors):
                raise troubles.explain(doing, error) from error
            look_s = min(_LOOK_S, left)


def ask(
    question: Callable[[], C],
    troubles: Troubles,
    *,
    doing: str,
    passing: Collection[str],
    raised: str = "",
    patience_s: float = PATIENCE_S,
) -> C:
    """Return the response to a question; repeat it after temporary errors.

    Args:
        passing: The names of temporary errors.
        raised: The name of an error that the caller handles; it is raised unchanged.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + patience_s
    while True:
        try:
            return question()
        except KafkaException as error:
            name = error.args[0].name()
            if name not in passing or time.monotonic() > deadline:
                if name == raised:
                    raise
                raise troubles.explain(doing, error) from error
        except TimeoutError as error:
            if time.monotonic() > deadline:
                problem = f"no response in {patience_s:g}s"
                raise FAILURES.unreachable(doing, troubles.servers, problem) from error
        time.sleep(_PAUSE_S)


def _open(
    make: Callable[[dict[str, Any]], C],
    log: KafkaLog,
    role: Role,
    own: Mapping[str, Any],
    *,
    tuning: Mapping[str, Any] | None = None,
) -> tuple[C, Troubles]:
    from confluent_kafka import KafkaException

    troubles = Troubles(log.servers)
    given = read_settings(log, role)
    settings: dict[str, Any] = {**(tuning or {}), **given, **own}
    quiet = {"error_cb": troubles.add, "logger": _silence(), "log.connection.close": "false"}
    while True:
        try:
            return make({**settings, **quiet}), troubles
        except KafkaException as error:
            problem = str(error.args[0].str())
            unknown = _UNKNOWN.search(problem)
            if unknown is None or unknown[1].startswith(_GUARDS):
                raise _refuse(problem, given) from None
            # Options that only tune the Java client.
            del settings[unknown[1]]


def _refuse(problem: str, given: Mapping[str, str]) -> HeadgateError:
    for name, value in given.items():
        if value and is_secret(name):
            problem = problem.replace(value, MASK)
    named = re.search(r'property:? "([^"]+)"', problem)
    name = (
        named[1] if named else next((option for option in _SUSPECTS if option in given), "options")
    )
    return bad_option(
        name,
        f"librdkafka, which everything except jobs uses, reports: {problem}",
        "use security.protocol, sasl.mechanism=SCRAM-SHA-512, sasl.username, sasl.password "
        "and ssl.ca.location, which all clients support",
    )


def _silence() -> logging.Logger:
    """Return a logger for output that librdkafka would print on the terminal."""
    logger = logging.getLogger("headgate.kafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger
