"""The topics of a log as people see them; each connector lists, makes and reads its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Protocol

from headgate._clock import Clock
from headgate._codec import Form, Moment, alias, left_out, left_out_while, shaped
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
        number: Its place in the reading order, or None if no reader has seen it.
    """

    path: str
    size: int
    published: Moment
    number: int | None


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

    number: int = field(metadata=alias("partition"))
    first: int
    next: int
    leader: int | None
    replicas: int
    in_sync: int
    newest: Moment | None


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

    number: int = field(metadata=alias("partition"))
    first: str
    next: str
    ledgers: int
    entries: int
    size: int
    newest: Moment | None


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
