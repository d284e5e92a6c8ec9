"""The topics of a log: listed, shown, created, and their last records."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from headgate._clock import Clock, SystemClock
from headgate.connectors.contract.topics import (
    MadeTopic,
    TopicDetails,
    TopicSummary,
    WantedTopic,
    parse_retention,
)
from headgate.connectors.logs import parse_log
from headgate.errors import HeadgateError


def list_topics(on: str, *, count: bool = False) -> list[TopicSummary]:
    """Return the topics of a log by name.

    Args:
        on: The log, as `--on` names it.
        count: Count records too, which reads them all.
    """
    return parse_log(on).open_topics().list_topics(count=count)


def show_topic(on: str, name: str, *, count: bool = False, last_files: int = 10) -> TopicDetails:
    """Return the details of a topic, or raise TOPIC_NOT_FOUND."""
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
    """Create a topic unless it exists; `WantedTopic` describes the parameters.

    Args:
        on: The log, as `--on` names it.
        retention: A duration, or `infinite`.

    Raises:
        HeadgateError: TOPIC_EXISTS if the topic exists and differs.
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
    """Yield the last records of a topic, then every new one, without end."""
    return parse_log(on).open_topics().follow(name, last=last, clock=clock or SystemClock())
