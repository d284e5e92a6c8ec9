"""Positions on Pulsar in the kernel's format: the next entry of each partition.

A job's position is also a subscription, so that Pulsar's own tools show its backlog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from headgate.connectors.broker.positions import find_unread, parse_topics
from headgate.connectors.broker.topic import has_name
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.pulsar.access.admin import Admin
from headgate.connectors.pulsar.descriptor import Pulsar, PulsarLog
from headgate.connectors.pulsar.names import (
    BEGINNING,
    PERSISTENT,
    EntryId,
    find_entry_id,
    partition_name,
    topic_path,
)
from headgate.connectors.pulsar.runs.counting import EntryRange, count_messages
from headgate.errors import HeadgateError

_CONFLICT = 409
_NOT_FOUND = 404
# The subscription's position, if it is at the start of a ledger: the kernel needs it if a ledger
# was deleted (OwnSubscription).
_PLACE = "headgate.next"
# The response of a broker without subscription properties.
_UNKNOWN = 405
# The subscription has a consumer, or was created in the meantime: the next checkpoint moves it.
_BUSY = frozenset({_CONFLICT, 412})


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


def count_between(topic: Pulsar, start: str | None, end: str | None) -> RecordCount | None:
    """Return the number of messages between two positions, or None if unknown.

    The broker is asked how many messages the entries hold. The number is unknown if it does not
    answer, or if entries were deleted since.

    Args:
        start: None for the unknown start of each topic. Partitions that a known position does not
            have are counted from their first entry.
    """
    if end is None:
        return None
    ranges = list(_ranges({} if start is None else parse_position(start), parse_position(end)))
    if not ranges:
        return RecordCount(0)
    if start is None:
        return None
    try:
        with Admin(topic.log, doing="count messages") as admin:
            return count_messages(admin, ranges)
    except HeadgateError:
        # The number only informs: what needs the broker reports that it does not answer.
        return None


def _ranges(
    before: Mapping[str, TopicPosition], after: Mapping[str, TopicPosition]
) -> Iterator[EntryRange]:
    for name, topic in after.items():
        begun = before[name].next if name in before else ()
        for number, (first, end) in enumerate(_paired(begun, topic.next)):
            if first < end:
                yield EntryRange(
                    partition_name(name, number) if topic.partitioned else name, first, end
                )


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


def find_mismatch(topic: Pulsar, position: str, job: str) -> str | None:
    """Return why a position does not hold in a topic.

    Entries are numbered alike on all clusters, and topics have no ids: the job's subscription is
    where the job has read.
    """
    topics = parse_position(position)
    read = {name: at for name, at in topics.items() if _reads(topic, name)}
    unread = find_unread(lambda name: name in read, topics)
    begun = [
        (partition_name(name, number) if at.partitioned else name)
        for name, at in read.items()
        for number, following in enumerate(at.next)
        if following != BEGINNING
    ]
    if unread is not None or not begun:
        return unread
    with Admin(topic.log, doing=f"compare the positions of job {job!r}") as admin:
        if any(_has_subscription(admin, part, job) for part in begun):
            return None
    return f"no topic there has the job's subscription {job!r}"


def _reads(topic: Pulsar, full: str) -> bool:
    namespace, _, name = full.removeprefix(PERSISTENT).rpartition("/")
    return namespace == topic.namespace and has_name(topic, name)


def _has_subscription(admin: Admin, part: str, name: str) -> bool:
    found = admin.find(f"{topic_path(part)}/subscriptions")
    return isinstance(found, list) and name in found


def find_mark(topic: Pulsar, job: str) -> Subscription:
    """Return the subscription named after a job."""
    return Subscription(topic.log, job)


def describe_mark(topic: Pulsar, job: str) -> str:
    """Return the subscription named after a job, as text: it retains unread records."""
    return f"subscription {job!r} of topic {topic.shown_name!r} on {topic.log.address}"


def _paired(first: tuple[EntryId, ...], last: tuple[EntryId, ...]) -> list[tuple[EntryId, EntryId]]:
    """Return the partitions of two positions in pairs; a topic may have gained some."""
    return [*zip_longest(first, last, fillvalue=BEGINNING)]


def _topic(content: Mapping[str, Any]) -> TopicPosition:
    entries = [find_entry_id(entry) for entry in content["next"]]
    known = tuple(entry for entry in entries if entry is not None)
    if len(known) < len(entries) or not isinstance(content["partitioned"], bool):
        raise ValueError("an entry must have the form ledger:entry")
    return TopicPosition(content["partitioned"], known)


class Subscription:
    """A subscription without consumers, moved from position to position. For one thread.

    It is created if missing. Deleted partitions are skipped; if entries were deleted, the entries
    after them count as unread.

    Args:
        name: The subscription's name.
    """

    def __init__(self, log: PulsarLog, name: str) -> None:
        self._name = name
        self._admin = Admin(log, doing=f"publish positions as subscription {name!r}")
        self._at: dict[str, EntryId] = {}
        self._noted: dict[str, EntryId] = {}

    def move(self, position: str) -> None:
        """Mark exactly the entries after a position as unread.

        Args:
            position: In the kernel's format.

        Raises:
            HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED; POSITION_UNREADABLE.
        """
        for part, following in next_entries(position):
            # The broker stores each move; most partitions of an idle topic need none.
            if self._at.get(part) != following and self._move(part, following):
                self._at[part] = following

    def close(self) -> None:
        self._admin.close()

    def _move(self, part: str, following: EntryId) -> bool:
        """Return whether the subscription exists now."""
        path = topic_path(part)
        subscription = f"{path}/subscription/{self._name}"
        # If this entry was deleted or does not exist yet, Pulsar takes the next one, or the end.
        place = {"ledgerId": following.ledger, "entryId": following.entry, "partitionIndex": -1}
        accepts = {_NOT_FOUND, *_BUSY}
        noted = {_PLACE: str(following)}
        # Before the move: an old note would vouch for a subscription that is elsewhere.
        if self._is_noteworthy(part, following):
            response = self._admin.send(
                "PUT", f"{subscription}/properties", noted, accepts={_UNKNOWN, *accepts}
            )
            if response.status in _BUSY:
                return False
        answer = self._admin.send("POST", f"{subscription}/resetcursor", place, accepts=accepts)
        # Creating a subscription on a deleted topic would create the topic.
        if answer.status == _NOT_FOUND and self._admin.find(f"{path}/internalStats") is not None:
            made = {**place, "properties": noted}
            answer = self._admin.send("PUT", subscription, made, accepts=accepts)
        if answer.status < 300:
            self._noted[part] = following
        return answer.status < 300

    def _is_noteworthy(self, part: str, following: EntryId) -> bool:
        """Return True if the noted position must change: most moves stay within a ledger."""
        noted = self._noted.get(part)
        return noted is None or 0 in (noted.entry, following.entry)


def next_entries(position: str) -> Iterator[tuple[str, EntryId]]:
    """Yield the full names of partitions, and the next entry in each."""
    for full, topic in parse_position(position).items():
        for number, following in enumerate(topic.next):
            yield partition_name(full, number) if topic.partitioned else full, following
