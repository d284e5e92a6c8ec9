"""The position of a job as a subscription, so that Pulsar's own tools show its backlog."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.connectors.pulsar.admin import Admin
from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.message_ids import EntryId
from headgate.connectors.pulsar.names import partition_name, topic_path
from headgate.connectors.pulsar.positions import parse_position

_CONFLICT = 409
_NOT_FOUND = 404
# The subscription's position, if it is at the start of a ledger: the kernel needs it if a ledger
# was deleted (OwnSubscription).
_PLACE = "headgate.next"
# The response of a broker without subscription properties.
_UNKNOWN = 405
# The subscription has a consumer, or was created in the meantime: the next checkpoint moves it.
_BUSY = frozenset({_CONFLICT, 412})


class Subscription:
    """A subscription without consumers, moved from position to position. For one thread.

    It is created if missing. Deleted partitions are skipped; if entries were deleted, the entries
    after them count as unread.

    Args:
        client: The connection.
        name: The subscription's name.
    """

    def __init__(self, client: ClientSpec, name: str) -> None:
        self._name = name
        self._admin = Admin(client, doing=f"publish positions as subscription {name!r}")
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
        """Close the connections."""
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
