"""How far a job has read, as a subscription, so that Pulsar's own tools show its backlog."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.connectors.pulsar.admin import Admin
from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.message_ids import EntryId
from headgate.connectors.pulsar.names import partition_name, topic_path
from headgate.connectors.pulsar.positions import parse_position

_CONFLICT = 409
_NOT_FOUND = 404
# Where the subscription was put, if that was at the beginning of a ledger: where a ledger is gone,
# the kernel asks for it (OwnSubscription).
_PLACE = "headgate.next"
# What a broker says that knows no properties of subscriptions.
_UNKNOWN = 405
# Somebody reads from the subscription, or it was made meanwhile: the next checkpoint moves it.
_BUSY = frozenset({_CONFLICT, 412})


class Subscription:
    """A subscription that nobody reads from, moved from position to position. For one thread.

    It is made where it is missing. A partition that is gone is passed over; where entries are
    gone, what is left of them is unread.

    Args:
        client: How Pulsar is reached.
        name: The subscription's name.
    """

    def __init__(self, client: ClientSpec, name: str) -> None:
        self._name = name
        self._admin = Admin(client, doing=f"publish positions as subscription {name!r}")
        self._at: dict[str, EntryId] = {}
        self._noted: dict[str, EntryId] = {}

    def move(self, position: str) -> None:
        """Leave unread exactly what comes after a position.

        Args:
            position: As the kernel's source writes it.

        Raises:
            HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED; POSITION_UNREADABLE.
        """
        for part, following in next_entries(position):
            # Each move is written down by the broker; most partitions of an idle topic need none.
            if self._at.get(part) != following and self._move(part, following):
                self._at[part] = following

    def close(self) -> None:
        """Give up the connections."""
        self._admin.close()

    def _move(self, part: str, following: EntryId) -> bool:
        """Return whether the subscription is there now."""
        path = topic_path(part)
        subscription = f"{path}/subscription/{self._name}"
        # Pulsar takes the next entry there is, or the end, where this one is gone or yet to come.
        place = {"ledgerId": following.ledger, "entryId": following.entry, "partitionIndex": -1}
        accepts = {_NOT_FOUND, *_BUSY}
        noted = {_PLACE: str(following)}
        # Before the move: a note of the place before would vouch for a subscription elsewhere.
        if self._is_noteworthy(part, following):
            told = self._admin.send(
                "PUT", f"{subscription}/properties", noted, accepts={_UNKNOWN, *accepts}
            )
            if told.status in _BUSY:
                return False
        answer = self._admin.send("POST", f"{subscription}/resetcursor", place, accepts=accepts)
        # A subscription that is made on a topic that is gone would make the topic.
        if answer.status == _NOT_FOUND and self._admin.find(f"{path}/internalStats") is not None:
            made = {**place, "properties": noted}
            answer = self._admin.send("PUT", subscription, made, accepts=accepts)
        if answer.status < 300:
            self._noted[part] = following
        return answer.status < 300

    def _is_noteworthy(self, part: str, following: EntryId) -> bool:
        """Tell whether the note of the place must change: most moves are within a ledger."""
        noted = self._noted.get(part)
        return noted is None or 0 in (noted.entry, following.entry)


def next_entries(position: str) -> Iterator[tuple[str, EntryId]]:
    """Yield the whole names of partitions, and the entry that comes next in each."""
    for full, topic in parse_position(position).items():
        for number, following in enumerate(topic.next):
            yield partition_name(full, number) if topic.partitioned else full, following
