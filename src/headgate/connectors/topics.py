"""The topics of a log as people see them; each connector lists, makes and reads its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from headgate._clock import Clock
from headgate._units import format_duration, format_size, parse_duration
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.flow.schema import Schema

INFINITE = "infinite"

# Of the topics that there are, in a message.
_NAMED = 12


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a log keeps records: a duration, or for ever.

    Attributes:
        duration: None for ever.
        size: How many bytes it keeps at most of them; None for any number.
    """

    duration: timedelta | None
    size: int | None = None

    def __str__(self) -> str:
        kept = INFINITE if self.duration is None else format_duration(self.duration)
        return kept if self.size is None else f"{kept}, {format_size(self.size)} at most"


FOREVER = Retention(None)


def parse_retention(text: str) -> Retention:
    """Return what `--retention` says: a duration, or `infinite`.

    Raises:
        HeadgateError: BAD_DURATION.
    """
    if text.strip().lower() == INFINITE:
        return FOREVER
    try:
        return Retention(parse_duration(text))
    except HeadgateError as error:
        raise HeadgateError(error.code, error.message, hint="write 7d, 12h or infinite") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTopic:
    """A topic to be made; what is None is left to the log.

    Attributes:
        partitions: How many.
        retention: How long records are kept.
        compact: Whether the last record of each key is kept whatever its age, and older ones go.
        replication: How many brokers keep a copy.
        deduplicate: Whether the brokers drop what a producer sends again.
        schema: What records are like, on a log that keeps such a thing.
        amend: Whether a topic that is there gets the deduplication and the schema that it lacks.
    """

    name: str
    partitions: int | None = None
    retention: Retention | None = None
    compact: bool = False
    replication: int | None = None
    deduplicate: bool = False
    schema: Schema | None = None
    amend: bool = False


@dataclass(frozen=True, slots=True)
class MadeTopic:
    """A topic that is there now, and whether it was there before.

    Attributes:
        where: A folder, or servers.
        differences: In what a topic that was there is not as it was wanted, in words.
        replication: None where the log has no such thing; likewise the retention.
        retention: How long records are kept.
        deduplicated: Whether the brokers drop what is sent again; None where they cannot.
        schema: The kind of the schema it carries; None for none.
        changes: What a topic that was there was given, in words.
        warnings: What is odd about it, whatever was asked for, in words.
    """

    name: str
    partitions: int
    where: str
    existed: bool
    differences: tuple[str, ...] = ()
    replication: int | None = None
    retention: Retention | None = None
    compacted: bool = False
    deduplicated: bool | None = None
    schema: str | None = None
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the topic as JSON values."""
        return {
            "name": self.name,
            "partitions": self.partitions,
            **_kept(self.replication, self.retention, compacted=self.compacted),
            **_guarded(self.deduplicated, self.schema),
            "where": self.where,
            "existed": self.existed,
            **({"changes": [*self.changes]} if self.changes else {}),
            **({"differences": [*self.differences]} if self.differences else {}),
        }


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in a line.

    Attributes:
        files: How many; None on a log that has none.
        size: In bytes; None where the log does not tell.
        records: How many there are, or None if they were not counted.
        newest: When the last file was published or the last record written; None while there
            is none.
        at_most: How many offsets there are, on a log that tells no more.
        retention: How long records are kept; as text where a server told of it.
        entries: How many entries, each a record or a batch of them, on a log of ledgers.
        deduplicated: Whether the brokers drop what is sent again; None where they cannot.
        schema: The kind of the schema it carries; None for none.
    """

    name: str
    partitions: int
    files: int | None
    size: int | None
    records: int | None
    newest: datetime | None
    at_most: int | None = None
    replication: int | None = None
    retention: Retention | str | None = None
    compacted: bool = False
    entries: int | None = None
    deduplicated: bool | None = None
    schema: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the line as JSON values; records only where they were counted."""
        told = {
            "files": self.files,
            "entries": self.entries,
            "size": self.size,
            "records_at_most": self.at_most,
        }
        counted = {**told, "records": self.records}
        return {
            "name": self.name,
            "partitions": self.partitions,
            **{key: value for key, value in counted.items() if value is not None},
            **_kept(self.replication, self.retention, compacted=self.compacted),
            **_guarded(self.deduplicated, self.schema),
            "newest": None if self.newest is None else self.newest.isoformat(),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> TopicSummary:
        """Return the line that `to_json` told of."""
        newest = told["newest"]
        return cls(
            name=str(told["name"]),
            partitions=int(told["partitions"]),
            files=told.get("files"),
            size=told.get("size"),
            records=told.get("records"),
            newest=None if newest is None else datetime.fromisoformat(newest),
            at_most=told.get("records_at_most"),
            replication=told.get("replication"),
            retention=told.get("retention"),
            compacted=bool(told.get("compacted")),
            entries=told.get("entries"),
            deduplicated=told.get("deduplicated"),
            schema=told.get("schema"),
        )


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file of an embedded topic.

    Attributes:
        path: Relative to the topic's folder.
        number: Its place in the reading order, or None if no reader has seen it.
    """

    path: str
    size: int
    published: datetime
    number: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the file as JSON values."""
        return {
            "path": self.path,
            "size": self.size,
            "published": self.published.isoformat(),
            "number": self.number,
        }


@dataclass(frozen=True, slots=True)
class TopicPart:
    """One partition of a topic on a broker.

    Attributes:
        first: The earliest offset that is kept.
        next: The offset that the next record gets.
        leader: The id of the broker that leads it; None while there is none.
        in_sync: How many of its copies are complete.
        newest: The latest timestamp of its records.
    """

    number: int
    first: int
    next: int
    leader: int | None
    replicas: int
    in_sync: int
    newest: datetime | None

    def to_json(self) -> dict[str, Any]:
        """Return the partition as JSON values."""
        return {
            "partition": self.number,
            "first": self.first,
            "next": self.next,
            "leader": self.leader,
            "replicas": self.replicas,
            "in_sync": self.in_sync,
            "newest": None if self.newest is None else self.newest.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """One partition of a topic that is kept in ledgers.

    Attributes:
        first: The earliest entry that is kept, `ledger:entry`.
        next: The entry that comes next.
        ledgers: How many there are.
        size: In bytes, as the brokers keep them.
        newest: When the last entry was published.
    """

    number: int
    first: str
    next: str
    ledgers: int
    entries: int
    size: int
    newest: datetime | None

    def to_json(self) -> dict[str, Any]:
        """Return the partition as JSON values."""
        return {
            "partition": self.number,
            "first": self.first,
            "next": self.next,
            "ledgers": self.ledgers,
            "entries": self.entries,
            "size": self.size,
            "newest": None if self.newest is None else self.newest.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """Who reads a topic, or marks how far somebody did.

    Attributes:
        unread: How many entries it has not passed.
        consumers: How many are connected.
    """

    name: str
    unread: int
    consumers: int

    def to_json(self) -> dict[str, Any]:
        """Return the subscription as JSON values."""
        return {"name": self.name, "unread": self.unread, "consumers": self.consumers}


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """All there is to tell about a topic.

    Attributes:
        where: A folder, or servers.
        id: Made with the topic; None for a folder made by hand that nobody has read yet.
        ledger: How many files have been numbered by readers, those since deleted among them;
            None on a log that has no files.
        last_files: The last ones in reading order.
        parts: The partitions of a topic on a broker.
        subscriptions: Of a log that has them; None on another.
    """

    summary: TopicSummary
    where: str
    id: str | None
    created: datetime | None = None
    ledger: int | None = None
    last_files: tuple[PublishedFile, ...] = ()
    parts: tuple[TopicPart, ...] | tuple[LedgerPart, ...] = ()
    subscriptions: tuple[TopicSubscription, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the topic as JSON values."""
        told = {**self.summary.to_json(), "where": self.where, "id": self.id}
        if self.subscriptions is not None:
            told["subscriptions"] = [each.to_json() for each in self.subscriptions]
        if self.ledger is None:
            return {**told, "parts": [part.to_json() for part in self.parts]}
        return {
            **told,
            "created": None if self.created is None else self.created.isoformat(),
            "ledger": self.ledger,
            "last_files": [file.to_json() for file in self.last_files],
        }


class Topics(Protocol):
    """The topics of one log."""

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the topics by name.

        Args:
            count: Count records too, which reads them all.
        """

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:
        """Return all about one topic, or raise TOPIC_NOT_FOUND."""

    def make(self, wanted: WantedTopic) -> MadeTopic:
        """Make a topic unless it is there; say in what one that is there differs."""

    def tail(self, name: str, *, last: int) -> list[bytes]:
        """Return the last records, without their newlines."""

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:
        """Yield the last records, then every new one, for ever."""


def check_partitions(name: str, partitions: int) -> int:
    """Return the number if a topic may have so many partitions.

    Raises:
        HeadgateError: BAD_PARTITIONS.
    """
    if partitions < 1:
        raise HeadgateError(
            "BAD_PARTITIONS",
            f"cannot create topic '{name}' with {partitions} partitions: a topic has at least 1",
            hint="use 1 or more partitions",
        )
    return partitions


def topic_not_found(name: str, names: Sequence[str], *, where: str, on: str) -> HeadgateError:
    """Return the error for a topic that a log does not have.

    Args:
        names: The topics that it has.
        where: Who was asked.
        on: The log, as `--on` names it.
    """
    near = did_you_mean(name, names)
    more = ", ..." if len(names) > _NAMED else ""
    return HeadgateError(
        "TOPIC_NOT_FOUND",
        f"cannot find topic '{name}' at {where}: "
        f"it has {', '.join(names[:_NAMED]) or 'no topics'}{more}",
        hint=near
        if near.startswith("did you mean")
        else f"headgate topics create {name} --on {on}",
    )


def _guarded(deduplicated: bool | None, schema: str | None) -> dict[str, Any]:
    return {} if deduplicated is None else {"deduplicated": deduplicated, "schema": schema}


def _kept(
    replication: int | None, retention: Retention | str | None, *, compacted: bool
) -> dict[str, Any]:
    if replication is None and retention is None:
        return {}
    return {
        **({} if replication is None else {"replication": replication}),
        "retention": None if retention is None else str(retention),
        "compacted": compacted,
    }
