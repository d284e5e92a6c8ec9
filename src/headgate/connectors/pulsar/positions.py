"""Positions on Pulsar, as the kernel's source writes them: the next entry of each partition."""

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
    """How far one topic was read.

    Attributes:
        partitioned: Whether it is made of plain topics, one for each partition.
        next: The entry that comes next, by partition.
    """

    partitioned: bool
    next: tuple[EntryId, ...]


def parse_position(text: str) -> dict[str, TopicPosition]:
    """Return a position's topics by their whole names.

    Raises:
        HeadgateError: POSITION_UNREADABLE.
    """
    return parse_topics(text, _topic, on="Pulsar")


def count_between(_topic: Pulsar, start: str | None, end: str | None) -> int | None:
    """Return how many entries lie between two positions, or None where that cannot be told.

    It can within one ledger alone: how many entries another had is known to the broker. An entry
    may hold many messages, so that these are at least so many.

    Args:
        start: None for the beginning of each topic, of which nothing is known but that.
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
    """Tell whether a position lies at or behind another in every partition.

    A target that is not known is no hurdle.
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
    """Return the subscription that is named after a job."""
    # It reads positions itself.
    from headgate.connectors.pulsar.subscriptions import Subscription

    return Subscription(topic.client, job)


def _paired(first: tuple[EntryId, ...], last: tuple[EntryId, ...]) -> list[tuple[EntryId, EntryId]]:
    """Return the partitions of two positions side by side; a topic may have gained some."""
    return [*zip_longest(first, last, fillvalue=BEGINNING)]


def _topic(content: Mapping[str, Any]) -> TopicPosition:
    entries = [find_entry_id(each) for each in content["next"]]
    known = tuple(each for each in entries if each is not None)
    if len(known) < len(entries) or not isinstance(content["partitioned"], bool):
        raise ValueError("an entry is written ledger:entry")
    return TopicPosition(content["partitioned"], known)
