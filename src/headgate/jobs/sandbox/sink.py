"""Where made-up data goes: topics that are made if they are missing, and a way into them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

from headgate.connectors.files.topic import TopicFolder
from headgate.connectors.kafka.client import ClientSpec as KafkaClient
from headgate.connectors.kafka.log import KafkaLog
from headgate.connectors.logs import FilesLog, Log
from headgate.connectors.pulsar.client import ClientSpec as PulsarClient
from headgate.connectors.pulsar.log import PulsarLog
from headgate.connectors.topics import MadeTopic
from headgate.jobs.topics.listing import open_topics
from headgate.jobs.topics.setup import SetupOptions, TopicRole, wanted_on_pulsar, wanted_topic

Sink: TypeAlias = Callable[[str, bytes, int], None]
"""Takes a topic, lines with their newlines and how many; returns when they are acknowledged."""

KeyValues: TypeAlias = Callable[[str, bytes], Iterable[tuple[bytes | None, bytes | None]]]
"""Gives the keys and values of a topic's lines, for logs that have keys."""


def make_topics(
    log: Log, roles: Mapping[str, TopicRole], partitions: int | None
) -> tuple[MadeTopic, ...]:
    """Make the topics that are missing, and return those where that is more than a folder.

    Args:
        partitions: Of streams on embedded topics, of all topics elsewhere; None is the default.
    """
    if isinstance(log, FilesLog):
        for name, role in roles.items():
            folder = TopicFolder(log.root / name)
            asked = partitions if role is TopicRole.STREAM else None
            is_missing = folder.find_meta() is None
            folder.create(asked if asked is not None and is_missing else folder.partitions)
        return ()
    topics = open_topics(log)
    options = SetupOptions(partitions=partitions)
    wanted = wanted_on_pulsar if isinstance(log, PulsarLog) else wanted_topic
    made = (topics.make(wanted(name, role, options)) for name, role in roles.items())
    return tuple(topic for topic in made if not topic.existed)


@contextmanager
def open_sink(log: Log, roles: Mapping[str, TopicRole], key_values: KeyValues) -> Iterator[Sink]:
    """Give the way into topics that are there.

    On embedded topics changelogs go to partition 0, so that the changes of a key stay in order,
    and slices of a stream take its partitions in turn.
    """
    match log:
        case KafkaLog(client):
            with _kafka_sink(client, key_values) as sink:
                yield sink
        case PulsarLog(client, namespace):
            with _pulsar_sink(client, namespace, key_values) as sink:
                yield sink
        case FilesLog(root):
            yield _files_sink(root, roles)
        case _:
            # Refused before, where its topics were to be made.
            raise AssertionError(f"{log} has no topics")


def _files_sink(root: Path, roles: Mapping[str, TopicRole]) -> Sink:
    topics = {name: TopicFolder(root / name) for name in roles}
    turns = {
        name: itertools.cycle(range(topics[name].partitions if role is TopicRole.STREAM else 1))
        for name, role in roles.items()
    }

    def publish(topic: str, lines: bytes, _records: int) -> None:
        topics[topic].publish(lines, partition=next(turns[topic]))

    return publish


@contextmanager
def _kafka_sink(client: KafkaClient, key_values: KeyValues) -> Iterator[Sink]:
    from headgate.connectors.kafka.producing import KafkaSender

    with KafkaSender(client) as sender:
        yield _sender_sink(sender, key_values)


@contextmanager
def _pulsar_sink(client: PulsarClient, namespace: str, key_values: KeyValues) -> Iterator[Sink]:
    from headgate.connectors.pulsar.producing import PulsarSender

    with PulsarSender(client, namespace) as sender:
        yield _sender_sink(sender, key_values)


class _Sender(Protocol):
    def send(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> int: ...


def _sender_sink(sender: _Sender, key_values: KeyValues) -> Sink:
    def send(topic: str, lines: bytes, records: int) -> None:
        acknowledged = sender.send(topic, key_values(topic, lines))
        assert acknowledged == records, f"{acknowledged} of {records} records"

    return send
