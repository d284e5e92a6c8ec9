"""Positions on Pulsar in the kernel's format: the next entry of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from headgate.connectors.connector import Mark
from headgate.connectors.positions import parse_topics
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.message_ids import BEGINNING, EntryId, find_entry_id


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """The position in one topic.

    Attributes:
        partitioned: True if it consists of one plain topic per partition.
        next: The next entry, by partition.
    """

    partitioned: bool
    next: tuple[EntryId, ...]


def parse_position(text: str) -> dict[str, TopicPosition]:
    """Return a position's topics by full name.

    Raises:
        HeadgateError: POSITION_UNREADABLE.
    """
    return parse_topics(text, _topic, on="Pulsar")


def count_between(_topic: Pulsar, start: str | None, end: str | None) -> int | None:
    """Return the number of entries between two positions, or None if unknown.

    It is known within one ledger only: the broker knows the size of other ledgers. An entry may
    hold many messages, so this is a lower bound.

    Args:
        start: None for the unknown start of each topic.
    """
    if end is None:
        return None
    before = {} if start is None else parse_position(start)
    total = 0
    for name, topic in parse_position(end).items():
        known = before.get(name)
        begun = () if known is None else known.next
        for first, last in _paired(begun, topic.next):
            if last <= first:
                continue
            if first.ledger != last.ledger:
                return None
            total += last.entry - first.entry
    return total


def has_reached(position: str, target: str | None) -> bool:
    """Return True if a position is at or after another in every partition.

    An unknown target counts as reached.
    """
    if target is None:
        return True
    at = parse_position(position)
    return all(
        have >= want
        for name, wanted in parse_position(target).items()
        for have, want in _paired(at[name].next if name in at else (), wanted.next)
    )


def find_mark(topic: Pulsar, job: str) -> Mark:
    """Return the subscription named after a job."""
    # It imports this module.
    from headgate.connectors.pulsar.subscriptions import Subscription

    return Subscription(topic.client, job)


def _paired(first: tuple[EntryId, ...], last: tuple[EntryId, ...]) -> list[tuple[EntryId, EntryId]]:
    """Return the partitions of two positions in pairs; a topic may have gained some."""
    return [*zip_longest(first, last, fillvalue=BEGINNING)]


def _topic(content: Mapping[str, Any]) -> TopicPosition:
    entries = [find_entry_id(entry) for entry in content["next"]]
    known = tuple(entry for entry in entries if entry is not None)
    if len(known) < len(entries) or not isinstance(content["partitioned"], bool):
        raise ValueError("an entry must have the form ledger:entry")
    return TopicPosition(content["partitioned"], known)
