"""The topics of a log, as the CLI shows them; each connector lists, creates and reads its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Protocol

from headgate._clock import Clock
from headgate._codec import Form, Moment, alias, left_out, left_out_while, shaped
from headgate._units import format_duration, format_size, parse_duration
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean, is_topic_name
from headgate.flow.schemas.schema import Schema

INFINITE = "infinite"

# The maximum number of existing topics in a message.
_NAMED = 12
_LONGEST_NAME = 249


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a log keeps records: a duration, or for ever.

    Attributes:
        duration: None for ever.
        size: The maximum number of bytes; None for no limit.
    """

    duration: timedelta | None
    size: int | None = None

    def __str__(self) -> str:
        kept = INFINITE if self.duration is None else format_duration(self.duration)
        return kept if self.size is None else f"{kept}, {format_size(self.size)} at most"


FOREVER = Retention(None)


def parse_retention(text: str) -> Retention:
    """Return the value of `--retention`: a duration, or `infinite`.

    Raises:
        HeadgateError: BAD_DURATION.
    """
    if text.strip().lower() == INFINITE:
        return FOREVER
    try:
        return Retention(parse_duration(text))
    except HeadgateError as error:
        raise HeadgateError(error.code, error.message, hint="write 7d, 12h or infinite") from error


# In JSON the retention is text, and is not parsed again.
_RetentionText = Annotated[Retention, Form(str, str, {"type": "string"})]


def _unknown_of(topic: MadeTopic | TopicSummary) -> Iterator[str]:
    """Yield the names that are left out of a topic's JSON, since its log has no such thing."""
    if topic.replication is None:
        yield "replication"
        if topic.retention is None:
            yield from ("retention", "compacted")
    if topic.deduplicated is None:
        yield from ("deduplicated", "schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTopic:
    """A topic to create; None keeps the default of the log.

    Attributes:
        partitions: The number of partitions.
        retention: How long records are kept.
        compact: True to keep the last record of each key at any age, and drop older ones.
        replication: The number of replicas.
        deduplicate: True if the brokers drop a producer's duplicates.
        schema: The schema of the records, on a log that stores schemas.
        amend: True for a topic that jobs write: it gets the schema, and an existing one a missing
            deduplication or schema.
        key: The columns that identify a row, on a log of tables.
    """

    name: str
    partitions: int | None = None
    retention: Retention | None = None
    compact: bool = False
    replication: int | None = None
    deduplicate: bool = False
    schema: Schema | None = None
    amend: bool = False
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MadeTopic:
    """An existing topic, and whether it was just created.

    Attributes:
        where: A folder, or servers.
        differences: The differences between an existing topic and the wanted settings.
        replication: None if the log has no such setting; likewise `retention`.
        retention: How long records are kept.
        deduplicated: True if the brokers drop duplicates; None if they cannot.
        schema: The kind of the schema it carries; None for none.
        changes: The changes made to an existing topic.
        warnings: Other peculiarities of the topic.
    """

    name: str
    partitions: int
    where: str
    existed: bool
    differences: tuple[str, ...] = field(default=(), metadata=left_out_while(()))
    replication: int | None = None
    retention: _RetentionText | None = None
    compacted: bool = False
    deduplicated: bool | None = None
    schema: str | None = None
    changes: tuple[str, ...] = field(default=(), metadata=left_out_while(()))
    warnings: tuple[str, ...] = field(default=(), metadata=left_out())

    __get_pydantic_core_schema__ = shaped(absent=_unknown_of)


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in one line.

    Attributes:
        files: The number of files; None on a log without files.
        size: In bytes; None if unknown.
        records: The number of records, or None if they were not counted.
        newest: When the last file was published or the last record written; None without records.
        at_most: The number of offsets, an upper bound of the records.
        retention: How long records are kept; text if a server reported it.
        entries: The number of entries on a log of ledgers; each is a record or a batch.
        deduplicated: True if the brokers drop duplicates; None if they cannot.
        schema: The kind of its schema; None for none.
    """

    name: str
    partitions: int
    files: int | None = field(default=None, metadata=left_out_while(None))
    size: int | None = field(default=None, metadata=left_out_while(None))
    records: int | None = field(default=None, metadata=left_out_while(None))
    newest: Moment | None = None
    at_most: int | None = field(
        default=None, metadata=left_out_while(None, **alias("records_at_most"))
    )
    replication: int | None = None
    retention: _RetentionText | str | None = None
    compacted: bool = False
    entries: int | None = field(default=None, metadata=left_out_while(None))
    deduplicated: bool | None = None
    schema: str | None = None

    __get_pydantic_core_schema__ = shaped(absent=_unknown_of)


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file of an embedded topic.

    Attributes:
        path: Relative to the topic's folder.
        number: Its position in the reading order, or None if no reader has seen it.
    """

    path: str
    size: int
    published: Moment
    number: int | None


@dataclass(frozen=True, slots=True)
class TopicPart:
    """One partition of a topic on a broker.

    Attributes:
        first: The earliest retained offset.
        next: The offset of the next record.
        leader: The id of the leading broker; None without a leader.
        in_sync: The number of complete replicas.
        newest: The latest timestamp of its records.
    """

    number: int = field(metadata=alias("partition"))
    first: int
    next: int
    leader: int | None
    replicas: int
    in_sync: int
    newest: Moment | None


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """One partition of a topic in ledgers.

    Attributes:
        first: The earliest retained entry, `ledger:entry`.
        next: The next entry.
        ledgers: The number of ledgers.
        size: In bytes, as the brokers store them.
        newest: When the last entry was published.
    """

    number: int = field(metadata=alias("partition"))
    first: str
    next: str
    ledgers: int
    entries: int
    size: int
    newest: Moment | None


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """A subscription of a topic.

    Attributes:
        unread: The number of unread entries.
        consumers: The number of connected consumers.
    """

    name: str
    unread: int
    consumers: int


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """The details of a topic.

    Attributes:
        where: A folder, or servers.
        id: Created with the topic; None for a folder created by hand that no reader has seen.
        ledger: The number of files numbered by readers, including deleted ones; None on a log
            without files.
        last_files: The last ones in reading order.
        parts: The partitions of a topic on a broker.
        subscriptions: None on a log without subscriptions.
    """

    summary: TopicSummary
    where: str
    id: str | None
    created: Moment | None = None
    ledger: int | None = None
    last_files: tuple[PublishedFile, ...] = ()
    parts: tuple[TopicPart, ...] | tuple[LedgerPart, ...] = ()
    subscriptions: tuple[TopicSubscription, ...] | None = field(
        default=None, metadata=left_out_while(None)
    )

    __get_pydantic_core_schema__ = shaped(
        flatten="summary",
        absent=lambda details: (
            ("created", "ledger", "last_files") if details.ledger is None else ("parts",)
        ),
    )


class Topics(Protocol):
    """The topics of one log."""

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the topics by name.

        Args:
            count: Count records too, which reads them all.
        """

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:
        """Return the details of a topic, or raise TOPIC_NOT_FOUND."""

    def make(self, wanted: WantedTopic) -> MadeTopic:
        """Create a topic if it is missing; report the differences of an existing one."""

    def tail(self, name: str, *, last: int) -> list[bytes]:
        """Return the last records, without their newlines."""

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:
        """Yield the last records, then every new record, without end."""


def check_topic_name(text: str) -> str:
    """Return the name unchanged if it is a valid topic name.

    Raises:
        HeadgateError: BAD_TOPIC_NAME.
    """
    if is_topic_name(text) and len(text) <= _LONGEST_NAME:
        return text
    suggestion = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("_.")[:_LONGEST_NAME].rstrip("-")
    raise HeadgateError(
        "BAD_TOPIC_NAME",
        f"cannot use {text!r} as a topic name: a name must have 1 to {_LONGEST_NAME} letters, "
        "digits, '.', '_' and '-', and must not begin with '_' or '.'",
        hint=f"try {suggestion or 'orders'}",
    )


def check_partitions(name: str, partitions: int) -> int:
    """Return the number of partitions if it is valid.

    Raises:
        HeadgateError: BAD_PARTITIONS.
    """
    if partitions < 1:
        raise HeadgateError(
            "BAD_PARTITIONS",
            f"cannot create topic '{name}': partitions must be at least 1, got {partitions}",
            hint="use 1 or more partitions",
        )
    return partitions


def topic_not_found(name: str, names: Sequence[str], *, where: str, on: str) -> HeadgateError:
    """Return the error for a topic that does not exist.

    Args:
        names: The existing topics.
        where: The log, for the message.
        on: The log, as a value of `--on`.
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
