"""Topics as a user sees them: which there are, what is in them, their last records."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from headgate._clock import Clock, SystemClock
from headgate.connectors.logs import parse_log
from headgate.connectors.topics import (
    MadeTopic,
    TopicDetails,
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
    return parse_log(on).open_topics().list_topics(count=count)


def show_topic(on: str, name: str, *, count: bool = False, last_files: int = 10) -> TopicDetails:
    """Return all about one topic, or raise TOPIC_NOT_FOUND."""
    return parse_log(on).open_topics().show(name, count=count, last_files=last_files)


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
    topic = parse_log(on).open_topics().make(wanted)
    if topic.differences:
        raise HeadgateError(
            "TOPIC_EXISTS",
            f"cannot create topic '{topic.name}': it exists, and {', '.join(topic.differences)}",
            hint=f"choose another name, or keep it: headgate topics show {topic.name} --on "
            f"{shlex.quote(on)}",
        )
    return topic


def tail_topic(on: str, name: str, *, last: int) -> list[bytes]:
    """Return the last records of a topic, without their newlines."""
    return parse_log(on).open_topics().tail(name, last=last)


def follow_topic(on: str, name: str, *, last: int, clock: Clock | None = None) -> Iterator[bytes]:
    """Yield the last records of a topic, then every new one, for ever."""
    return parse_log(on).open_topics().follow(name, last=last, clock=clock or SystemClock())
