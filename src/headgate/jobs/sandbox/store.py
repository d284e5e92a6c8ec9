"""Fills topics with the generated data of a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headgate._clock import Clock, SystemClock
from headgate._codec import encode
from headgate.connectors.contract.connector import Sink
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.contract.topics import MadeTopic
from headgate.jobs.sandbox.sending import send_round

if TYPE_CHECKING:
    # These load numpy, for which a help text must not wait.
    from headgate.producers.pace import Sent


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """The amount and kind of data; as `headgate.producers.store.StoreShape`.

    Attributes:
        partitions: Partitions of new topics; None for 1 on embedded topics, else 4.
    """

    users: int = 117_178
    items: int = 2_198
    orders: int = 1_000_000
    unknown: float = 0.01
    bad: float = 0.001
    seed: int = 7
    updates: int = 0
    round: int = 0
    deletes: float = 0.0
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class StoreProgress:
    """The acknowledged counts so far, and the total."""

    sent: Sent
    total: Sent


@dataclass(frozen=True, slots=True)
class Produced:
    """The acknowledged counts, and their duration.

    Attributes:
        updates: The number of user records that are changes.
        seconds: From the first record to the last acknowledgement.
        where: The log, as a value of `--on`.
        made: The new topics on brokers.
    """

    sent: Sent
    updates: int
    seconds: float
    where: str
    made: tuple[MadeTopic, ...] = ()

    @property
    def records_per_s(self) -> float:
        """Records per second over the whole sending."""
        return self.sent.records / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {
            "users": self.sent.users,
            "items": self.sent.items,
            "orders": self.sent.orders,
            "updates": self.updates,
            "records": self.sent.records,
            "seconds": round(self.seconds, 3),
            "records_per_s": round(self.records_per_s),
            "where": self.where,
            **({"made": encode(self.made)} if self.made else {}),
        }


def produce_store(
    on: str,
    options: StoreOptions,
    *,
    rate: float | None = None,
    progress: Callable[[StoreProgress], None] = lambda _: None,
    clock: Clock | None = None,
) -> Produced:
    """Send a round of store data to the topics users, items and orders, and return the counts.

    Missing topics are created. On embedded topics changelogs go to partition 0, so that the changes
    of a key stay in order, and orders rotate over the partitions of their topic. On brokers records
    have keys, and a deleted user is a tombstone.

    Args:
        on: The log, as a value of `--on`.
        options: The data to send.
        rate: Orders per second; None for full speed.
        progress: Called once before the first record and after each acknowledgement.
        clock: Measures the rate and the duration.
    """
    from headgate.producers.pace import Sent, send_store
    from headgate.producers.store import StoreShape, StoreTopic, key_values

    clock = clock or SystemClock()
    given = asdict(options)
    partitions = given.pop("partitions")
    shape = StoreShape(**given)
    total = Sent(**{topic.value: shape.count(topic) for topic in StoreTopic})

    def send(sink: Sink) -> Sent:
        progress(StoreProgress(Sent(), total))
        return send_store(
            shape,
            lambda topic, lines, records: sink(topic.value, lines, records),
            clock=clock,
            rate=rate,
            progress=lambda so_far: progress(StoreProgress(so_far, total)),
        )

    roles = {
        topic.value: TopicRole.STREAM if topic is StoreTopic.ORDERS else TopicRole.TABLE
        for topic in StoreTopic
    }
    round_ = send_round(
        on,
        roles,
        partitions,
        lambda topic, lines: key_values(StoreTopic(topic), lines),
        send,
        rate=rate,
        clock=clock,
    )
    return Produced(round_.sent, shape.updates, round_.seconds, on, round_.made)
