"""Filling topics with the made-up data of a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate._clock import Clock, SystemClock
from headgate._codec import encode
from headgate.connectors.logs import parse_log
from headgate.connectors.setup import TopicRole
from headgate.connectors.topics import MadeTopic

if TYPE_CHECKING:
    # numpy comes with these; whoever only asks for help does not wait for it.
    from headgate.producers.pace import Sent


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How much data, and of what kind; as `headgate.producers.store.StoreShape`.

    Attributes:
        partitions: Of topics that are missing; None is 1 on embedded topics, else 4.
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
    """How far the sending has come: what was acknowledged, of what."""

    sent: Sent
    total: Sent


@dataclass(frozen=True, slots=True)
class Produced:
    """What was acknowledged, and how fast.

    Attributes:
        updates: How many of the user records are changes of users.
        seconds: From the first record to the last acknowledgement.
        where: The log, as `--on` names it.
        made: The topics that were missing, where making one is more than making a folder.
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

    Topics that are missing are made. On embedded topics changelogs go to partition 0, so that
    the changes of a key stay in order, and orders take the partitions of their topic in turn. On
    brokers records have keys, and a user that is deleted is a tombstone.

    Args:
        on: The log, as `--on` names it.
        options: What to send.
        rate: Orders per second; None is full speed.
        progress: Called once before the first record and after each acknowledgement.
        clock: Keeps the rate and takes the time.
    """
    from headgate.producers.pace import Pace, Sent, send_store
    from headgate.producers.store import StoreShape, StoreTopic, key_values

    clock = clock or SystemClock()
    shape = StoreShape(
        users=options.users,
        items=options.items,
        orders=options.orders,
        unknown=options.unknown,
        bad=options.bad,
        seed=options.seed,
        updates=options.updates,
        round=options.round,
        deletes=options.deletes,
    )
    # A rate that is refused must not leave topics behind.
    Pace(rate, clock)
    log = parse_log(on)
    roles = {
        topic.value: TopicRole.STREAM if topic is StoreTopic.ORDERS else TopicRole.TABLE
        for topic in StoreTopic
    }
    made = log.make_topics(roles, options.partitions)
    total = Sent(
        users=shape.count(StoreTopic.USERS),
        items=shape.count(StoreTopic.ITEMS),
        orders=shape.count(StoreTopic.ORDERS),
    )
    with log.open_sink(roles, lambda topic, lines: key_values(StoreTopic(topic), lines)) as sink:
        progress(StoreProgress(Sent(), total))
        started = clock.monotonic()
        sent = send_store(
            shape,
            lambda topic, lines, records: sink(topic.value, lines, records),
            clock=clock,
            rate=rate,
            progress=lambda so_far: progress(StoreProgress(so_far, total)),
        )
        seconds = clock.monotonic() - started
    return Produced(sent, shape.updates, seconds, on, made)
