"""The store's topics on Pulsar, read to their end."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pulsar

_NAMESPACE = "public/default"
_SILENCE_MS = 30_000
_QUEUE = 20_000

Place: TypeAlias = list[tuple[str, str, tuple[int, int] | None]]
"""By partition: the topic, the partition's own topic, ledger and entry before; None for none."""


@dataclass(frozen=True, slots=True)
class PulsarReader:
    """Reads topics on Pulsar to their end.

    Attributes:
        admin: The address of the broker's administration.
    """

    service: str
    admin: str

    def find_ends(self, topics: Sequence[str]) -> Place:
        """Return where topics end now."""
        return [
            (topic, part, self._last_of(part)) for topic in topics for part in self._parts(topic)
        ]

    def beginning(self, topic: str) -> Place:
        """Return where a topic begins."""
        return [(topic, part, None) for part in self._parts(topic)]

    def read(self, since: Place) -> Iterator[tuple[str, bytes]]:
        """Yield topic and value of all records up to the end."""
        client = pulsar.Client(self.service, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        try:
            for topic, part, before in since:
                for value in _read(client, f"persistent://{_NAMESPACE}/{part}", before):
                    yield topic, value
        finally:
            client.close()

    def _parts(self, topic: str) -> list[str]:
        return [f"{topic}-partition-{each}" for each in range(int(self._ask(topic, "partitions")))]

    def _last_of(self, part: str) -> tuple[int, int] | None:
        ledger, _, entry = str(self._ask(part, "internalStats")).partition(":")
        return None if int(entry) < 0 else (int(ledger), int(entry))

    def _ask(self, topic: str, what: str) -> int | str:
        """Return the one fact that is asked for: partitions, or the last entry."""
        path = f"{self.admin}/admin/v2/persistent/{_NAMESPACE}/{topic}/{what}"
        with urllib.request.urlopen(path) as answer:
            told = json.load(answer)
        found: int | str = told["partitions" if what == "partitions" else "lastConfirmedEntry"]
        return found


def _read(client: pulsar.Client, part: str, before: tuple[int, int] | None) -> Iterator[bytes]:
    start = pulsar.MessageId.earliest if before is None else pulsar.MessageId(-1, *before)
    reader = client.create_reader(part, start, receiver_queue_size=_QUEUE)
    try:
        while reader.has_message_available():
            yield reader.read_next(timeout_millis=_SILENCE_MS).data()
    finally:
        reader.close()
