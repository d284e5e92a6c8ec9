"""A database, a Debezium connector that reads it, and the connector's topic. No Spark.

Transactions overlap, the connector sends changes again after a restart and takes snapshots anew,
and the topic grows. Each record has the version of the database that it shows; the flow under test
does not see it.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
NAME = {"postgresql": "shop-pg", "mysql": "shop-my", "sqlserver": "shop-ms", "oracle": "shop-or"}


@dataclass(frozen=True)
class Event:
    """A change, or a row of a snapshot.

    Attributes:
        version: The commits behind the database as the event shows it; half a commit more in a
            snapshot, which has all of them.
        order: Tells apart the changes of one commit.
    """

    key: int
    op: str
    before: Row | None
    after: Row | None
    source: Row
    version: float
    order: int

    def rank(self) -> tuple[float, int]:
        return self.version, self.order


@dataclass(frozen=True)
class Record:
    """A record of the topic; `event` is the one that a tombstone follows."""

    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    event: Event


@dataclass
class Transaction:
    """Changes that are not committed: the log's number, the key, and the new row."""

    changes: list[tuple[int, int, Row | None]] = field(default_factory=list)

    def locked(self) -> set[int]:
        return {key for _, key, _ in self.changes}


class Database:
    """Rows by key, and the log of their changes."""

    def __init__(self, kind: str, rng: random.Random, keys: list[int]) -> None:
        self.kind = kind
        self.rng = rng
        self.keys = keys
        self.rows: dict[int, Row] = {}
        self.number = 1_000
        self.commits = 0
        self.last_commit: int | None = None
        self.open: list[Transaction] = [Transaction(), Transaction()]
        self.events: list[Event] = []

    def step(self) -> None:
        """Make a change in a transaction, or commit one."""
        mine = self.rng.choice(self.open)
        other = next(each for each in self.open if each is not mine)
        if mine.changes and self.rng.random() < 0.4:
            self._commit(mine)
            return
        free = [key for key in self.keys if key not in other.locked()]
        if not free:
            return
        key = self.rng.choice(free)
        self.number += self.rng.randint(1, 20)
        deletes = self.rng.random() < 0.3
        row = None if deletes else {"id": key, "name": f"v{self.number}"}
        mine.changes.append((self.number, key, row))

    def _commit(self, transaction: Transaction) -> None:
        self.commits += 1
        self.number += 5
        commit = self.number
        for order, (number, key, row) in enumerate(transaction.changes):
            before = self.rows.get(key)
            if before is None and row is None:
                continue
            op = "d" if row is None else "c" if before is None else "u"
            source = self._source(op, commit, number, order)
            shown = before if op == "d" or self.rng.random() < 0.5 else None
            self.events.append(Event(key, op, shown, row, source, self.commits, order))
            if row is None:
                del self.rows[key]
            else:
                self.rows[key] = row
        self.last_commit = commit
        transaction.changes.clear()

    def snapshot(self) -> list[Event]:
        """Return all rows, as a connector without a position reads them."""
        self.last_commit = None
        self.number += 1
        return [
            Event(
                key,
                "r",
                None,
                row,
                self._source("r", self.number, self.number, 0),
                self.commits + 0.5,
                0,
            )
            for key, row in self.rows.items()
        ]

    def _source(self, op: str, commit: int, number: int, order: int) -> Row:
        snapshot = op == "r"
        place: Row
        match self.kind:
            case "postgresql":
                last = None if self.last_commit is None else str(self.last_commit)
                place = {"lsn": number, "sequence": json.dumps([last, str(number)]), "txId": commit}
            case "mysql":
                # The binlog has a transaction as a whole, when it is committed.
                file, pos = divmod(commit, 97)
                place = {
                    "file": f"mysql-bin.{file:06d}",
                    "pos": pos,
                    "row": 0 if snapshot else order,
                    "server_id": 0 if snapshot else 223344,
                    "gtid": None,
                }
            case "sqlserver":
                lsn = f"{commit >> 8:08x}:{commit & 255:08x}:0001"
                change = f"{number >> 8:08x}:{number & 255:08x}:0002"
                place = {
                    "commit_lsn": lsn,
                    "change_lsn": None if snapshot else change,
                    "event_serial_no": None if snapshot else 2,
                }
            case _:
                place = {"scn": str(number), "commit_scn": None if snapshot else str(commit)}
        head = {
            "version": "3.0.0.Final",
            "connector": self.kind,
            "name": NAME[self.kind],
            "db": "shop",
        }
        # The clock of a snapshot is ahead of transactions that were open while it was taken.
        return {
            **head,
            "ts_ms": 50_000 if snapshot else 1_000,
            "snapshot": str(snapshot).lower(),
            **place,
        }


class Topic:
    """What the connector sends, by partition."""

    def __init__(self, rng: random.Random, partitions: int, *, wrapped: bool) -> None:
        self.rng = rng
        self.partitions = partitions
        self.wrapped = wrapped
        self.records: list[list[Record]] = [[] for _ in range(partitions)]
        self.clock = 0

    def grow(self) -> None:
        """Give new records of a key another partition, as more partitions do."""
        self.partitions += 1
        self.records.append([])

    def send(self, event: Event) -> None:
        key: Any = {"id": event.key}
        value: Any = {
            "before": event.before,
            "after": event.after,
            "source": event.source,
            "op": event.op,
            "ts_ms": 1_700_000_000_000 + self.clock,
            "transaction": None,
        }
        if self.wrapped:
            key = {"schema": {"type": "struct", "fields": []}, "payload": key}
            value = {"schema": {"type": "struct", "fields": []}, "payload": value}
        self._append(event, key, json.dumps(value).encode())
        if event.op == "d":
            self._append(event, key, None)

    def _append(self, event: Event, key: Any, value: bytes | None) -> None:
        self.clock += 1
        number = hash((event.key, self.partitions)) % self.partitions
        part = self.records[number]
        part.append(Record(number, len(part), self.clock, json.dumps(key).encode(), value, event))


def run(
    kind: str, rng: random.Random, keys: list[int], *, steps: int = 60
) -> tuple[Topic, Database]:
    """Return a topic as a connector that is restarted left it, and its database."""
    database = Database(kind, rng, keys)
    topic = Topic(rng, rng.randint(1, 3), wrapped=rng.random() < 0.5)
    for _ in range(rng.randint(0, steps // 2)):
        database.step()
    database.events.clear()
    for event in database.snapshot():
        topic.send(event)
    sent = 0
    for _ in range(steps):
        database.step()
        for event in database.events[sent:]:
            topic.send(event)
        sent = len(database.events)
        chance = rng.random()
        if chance < 0.08:
            # The connector had stored no newer position, and sends again what is behind it.
            sent = rng.randint(0, sent)
        elif chance < 0.12:
            database.events.clear()
            sent = 0
            for event in database.snapshot():
                topic.send(event)
        elif chance < 0.15:
            topic.grow()
    for event in database.events[sent:]:
        topic.send(event)
    return topic, database


def newest(records: list[Record]) -> dict[int, Row]:
    """Return the rows after these records: the newest event of each key counts, not its place."""
    held: dict[int, Event] = {}
    for record in records:
        event = record.event
        if event.key not in held or event.rank() >= held[event.key].rank():
            held[event.key] = event
    return {key: event.after for key, event in held.items() if event.after is not None}
