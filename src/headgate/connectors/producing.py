"""Sinks for generated data in topics on brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeAlias

from headgate.connectors.setup import SetupOptions, TopicRole
from headgate.connectors.topics import MadeTopic, Topics, WantedTopic

Sink: TypeAlias = Callable[[str, bytes, int], None]
"""Takes a topic, lines with newlines and their number; returns when they are acknowledged."""

KeyValues: TypeAlias = Callable[[str, bytes], Iterable[tuple[bytes | None, bytes | None]]]
"""Returns the keys and values of a topic's lines, for logs with keys."""


class Sender(Protocol):
    """Sends records to the topics of a broker."""

    def send(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> int:
        """Send records, and return the number of acknowledged records."""


def make_missing(
    topics: Topics,
    wanted: Callable[[str, TopicRole, SetupOptions], WantedTopic],
    roles: Mapping[str, TopicRole],
    partitions: int | None,
) -> tuple[MadeTopic, ...]:
    """Create the missing topics, and return the new ones."""
    options = SetupOptions(partitions=partitions)
    made = (topics.make(wanted(name, role, options)) for name, role in roles.items())
    return tuple(topic for topic in made if not topic.existed)


@contextmanager
def sink_of(opened: AbstractContextManager[Sender], key_values: KeyValues) -> Iterator[Sink]:
    """Open a sink for topics through a sender."""
    with opened as sender:

        def send(topic: str, lines: bytes, records: int) -> None:
            acknowledged = sender.send(topic, key_values(topic, lines))
            assert acknowledged == records, f"{acknowledged} of {records} records"

        yield send
