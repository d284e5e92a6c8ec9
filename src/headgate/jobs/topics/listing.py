"""Topics as a user sees them: which there are, what is in them, their last records."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from headgate._clock import Clock, SystemClock
from headgate.connectors.files.topics import FilesTopics
from headgate.connectors.kafka.log import KafkaLog
from headgate.connectors.logs import FilesLog, Log, parse_log
from headgate.connectors.pulsar.log import PulsarLog
from headgate.connectors.topics import (
    MadeTopic,
    TopicDetails,
    Topics,
    TopicSummary,
    WantedTopic,
    parse_retention,
)
from headgate.errors import HeadgateError


def list_topics(on: str, *, count: bool = False) -> list[TopicSummary]:
    """Return the topics of a log by name.

    Args:
        on: The log, as `--on` names it.
        count: Count records too, which reads them all.
    """
    return open_topics(parse_log(on)).list_topics(count=count)


def show_topic(on: str, name: str, *, count: bool = False, last_files: int = 10) -> TopicDetails:
    """Return all about one topic, or raise TOPIC_NOT_FOUND."""
    return open_topics(parse_log(on)).show(name, count=count, last_files=last_files)


def create_topic(
    on: str,
    name: str,
    *,
    partitions: int | None = None,
    retention: str | None = None,
    compact: bool = False,
    replication: int | None = None,
    deduplicate: bool = False,
) -> MadeTopic:
    """Make a topic unless it is there; what is not said is left to the log.

    Args:
        on: The log, as `--on` names it.
        name: The topic's name.
        partitions: How many; on embedded topics 1 by default.
        retention: A duration, or `infinite`.
        compact: Keep the last record of each key, whatever its age.
        replication: How many brokers keep a copy.
        deduplicate: Let the brokers drop what a producer sends again.

    Raises:
        HeadgateError: TOPIC_EXISTS: it is there, and not like that.
    """
    wanted = WantedTopic(
        name=name,
        partitions=partitions,
        retention=None if retention is None else parse_retention(retention),
        compact=compact,
        replication=replication,
        deduplicate=deduplicate,
    )
    topic = open_topics(parse_log(on)).make(wanted)
    if topic.differences:
        raise HeadgateError(
            "TOPIC_EXISTS",
            f"cannot create topic '{topic.name}': it exists, and {', '.join(topic.differences)}",
            hint="choose another name, or leave it: "
            f"headgate topics show {topic.name} --on {shlex.quote(on)}",
        )
    return topic


def tail_topic(on: str, name: str, *, last: int) -> list[bytes]:
    """Return the last records of a topic, without their newlines."""
    return open_topics(parse_log(on)).tail(name, last=last)


def follow_topic(on: str, name: str, *, last: int, clock: Clock | None = None) -> Iterator[bytes]:
    """Yield the last records of a topic, then every new one, for ever."""
    return open_topics(parse_log(on)).follow(name, last=last, clock=clock or SystemClock())


def open_topics(log: Log) -> Topics:
    """Return the topics of a log; nothing is asked of it yet."""
    match log:
        case FilesLog(root):
            return FilesTopics(root)
        case KafkaLog(client):
            # Kafka's client is a library that embedded topics do without.
            from headgate.connectors.kafka.topics import KafkaTopics

            return KafkaTopics(client)
        case PulsarLog(client, namespace):
            from headgate.connectors.pulsar.topics import PulsarTopics

            return PulsarTopics(client, namespace)
        case _:
            raise HeadgateError(
                "LOG_UNSUPPORTED",
                f"cannot look into {log}: its topics cannot be listed, read and filled from here",
                hint="use --on files:DIR, --on kafka://HOST:9092 or --on pulsar://HOST:6650",
            )
