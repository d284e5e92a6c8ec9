"""The protocol of a connector: one object for each kind of topic, with a few small parts.

`T` is the connector's own kind of topic. A part can be a module. `registry` lists all connectors,
and importing it loads no client library: functions import what needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from headgate.connectors.contract.audit import AuditedRun, Input, OutputRows
from headgate.connectors.contract.places import Places
from headgate.connectors.contract.setup import SetupOptions, TopicRole, find_problems
from headgate.connectors.contract.starts import StartSyntax
from headgate.connectors.contract.topics import MadeTopic, Topics, WantedTopic
from headgate.connectors.contract.written import Batches, Hidden, Writers, Written
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic

T = TypeVar("T", bound=Topic, contravariant=True)

Sink: TypeAlias = Callable[[str, bytes, int], None]
"""Takes a topic, lines with newlines and their number; returns when they are acknowledged."""

Records: TypeAlias = Iterable[tuple[bytes | None, bytes | None]]
"""Keys and values."""

KeyValues: TypeAlias = Callable[[str, bytes], Records]
"""Returns the keys and values of a topic's lines, for logs with keys."""


class Log(Protocol):
    """The place of topics that a flow names only by name: the value of `--on`."""

    @property
    def folder(self) -> Path | None:
        """The folder that contains the log; None for a broker."""

    def bind(self, name: str) -> Topic:
        """Return the topic with that name on this log."""

    def anchored(self) -> Log:
        """Return the same log with absolute paths."""

    def open_topics(self) -> Topics:
        """Return its topics; sends no request yet."""

    def make_topics(
        self, roles: Mapping[str, TopicRole], partitions: int | None
    ) -> tuple[MadeTopic, ...]:
        """Create the missing topics, and return the new ones on brokers.

        Args:
            partitions: For streams on embedded topics, and for all topics elsewhere; None for the
                default.
        """

    def open_sink(
        self, roles: Mapping[str, TopicRole], key_values: KeyValues
    ) -> AbstractContextManager[Sink]:
        """Open a sink for existing topics."""

    def __str__(self) -> str:
        """Return the text that `parse_log` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a job reads a topic.

    Attributes:
        job: The name of the job, and of its subscription on Pulsar.
        max_batch: The maximum number of bytes in a batch, unless a single record is larger.
        max_record: The maximum size of a record in bytes; longer records are truncated.
        splits: The maximum number of tasks that read a batch.
        start: The JSON of a position, or a start in the topic's syntax; overrides the topic's own
            start. None uses the topic's start, or `earliest`.
        on_data_loss: `fail` or `continue`: what to do when unread records have been deleted.
        meta: True if the flow needs the keys and headers of a stream's records.
        schema: The declared columns, in the JSON of Spark's `StructType`.
        key: The key columns of a table; empty for a stream.
        kept: With the JSON of a position: the folder that the source kept in the checkpoint which
            the position is from, as the kernel takes it; None if there is none.
    """

    job: str
    max_batch: int
    max_record: int
    splits: int
    start: str | None = None
    on_data_loss: str = "fail"
    meta: bool = True
    schema: Mapping[str, Any] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    kept: str | None = None


class SparkEnds(Protocol[T]):
    """A topic as options of the kernel's source and sink, all of them text.

    Attributes:
        SOURCE: The kernel class that reads topics.
        IS_PARTITIONED: True if records are ordered only within their partition.
        HOLDS_LINES: True if a record is a line: it has no line break, and records of binary formats
            are base64.
    """

    SOURCE: str
    IS_PARTITIONED: bool
    HOLDS_LINES: bool

    def modules(self, topic: T, /) -> Iterable[str]:
        """Return the kernel modules and the object stores that the topic needs beside the core."""

    def source_options(self, topic: T, reading: Reading, /) -> dict[str, str]:
        """Return the options of the source."""

    def record_options(self, topic: T, /) -> dict[str, Any]:
        """Return what the decoder of its records must know beside their format."""

    def output_option(self, topic: T, /) -> dict[str, str]:
        """Return the options of the sink: `kind`, and the options of that kind.

        Raises:
            HeadgateError: BAD_TOPIC: the topic is a pattern.
        """

    def replaces(self, topic: T, key: str | None, /) -> bool:
        """Return True if a row takes the place of the row with its key.

        Then one task has all rows of a key, and the last one of the topic's records counts.

        Args:
            key: The column of the message key; None for none.
        """

    def file_spec(self, topic: T, /) -> dict[str, object] | None:
        """Return how the kernel makes the files of an output; None if it writes record by record.

        `partition_by`, `compression`, and `header` for the first line of CSV files.
        """

    def prepare(self, topic: T, partitions: int, lineage: str | None, /) -> None:
        """Create everything that must exist when a query starts.

        Args:
            partitions: The number of writing tasks.
            lineage: The run that writes the topic; None for an input topic.
        """


class Mark(Protocol):
    """A source's position as shown to the tools of its log."""

    def move(self, position: str) -> None:
        """Publish a position in the kernel's format."""


@dataclass(frozen=True, slots=True)
class RecordCount:
    """A number of records.

    Attributes:
        is_estimate: True if it comes from a sample.
    """

    records: int
    is_estimate: bool = False


class Positions(Protocol[T]):
    """Comparison of positions in the kernel's format."""

    def count_between(self, topic: T, start: str | None, end: str | None, /) -> RecordCount | None:
        """Return the number of records between two positions; None if unknown.

        On Kafka this is an upper bound, since offsets have gaps. On Pulsar the broker is asked, and
        a large number is an estimate.

        Args:
            start: None for the start of the topic.
            end: None for the end of the records read so far.
        """

    def has_reached(self, position: str, target: str | None, /) -> bool:
        """Return True if a position is at or after another; an unknown target counts as reached."""

    def find_mismatch(self, topic: T, position: str, job: str, /) -> str | None:
        """Return why a position that was reached in another place does not hold in a topic.

        None if it holds there: the place has another name, and is the same.

        Args:
            job: The job that reached the position.

        Raises:
            HeadgateError: POSITION_UNREADABLE, BROKER_UNREACHABLE and others.
        """

    def find_mark(self, topic: T, job: str, /) -> Mark | None:
        """Return the mark that shows a job's position to the tools of the log; None if there is
        none."""

    def describe_mark(self, topic: T, job: str, /) -> str | None:
        """Return what the mark of a job is and where, as text; None if there is none."""


class Writing(Protocol[T]):
    """The rows that runs write to topics.

    Attributes:
        rests_on: The mechanism behind exactly-once, for messages.
        can_repeat: True if at-least-once is supported too.
        has_transactions: True if tasks write in transactions, which may have to be ended for them.
    """

    rests_on: str
    can_repeat: bool
    has_transactions: bool

    def end_transactions(self, topic: T, ids: Iterable[str], /) -> None:
        """End the transactions of tasks on the topic's cluster, and fence the tasks."""

    def find_hidden(self, topic: T, lineage: str, /) -> Hidden | None:
        """Return the rows of a run that are written and not visible to readers yet.

        None if there are none, as always on logs whose readers see a batch once it is written.
        """

    def find_written(
        self, topics: Mapping[str, T], writers: Writers, batches: Batches, /
    ) -> dict[str, Written]:
        """Return what each topic holds of a run's batches, by the given names."""


@dataclass(frozen=True, slots=True)
class TopicSetup(Generic[T]):
    """Creation of a flow's topics.

    Attributes:
        options: The supported options of `headgate setup`.
        wanted: Returns the settings of a topic to create.
        find_problems: Yields the problems of a topic that already existed.
        find_companions: Returns the additional topics that writing to a topic needs.
    """

    options: frozenset[str]
    wanted: Callable[[T, TopicRole, SetupOptions, Schema | None], WantedTopic]
    find_problems: Callable[[TopicRole, MadeTopic, SetupOptions], Iterator[str]] = find_problems
    find_companions: Callable[[T], Iterable[tuple[Topic, TopicRole]]] = lambda _topic: ()


class Audit(Protocol[T]):
    """Topics as input of an audit.

    Attributes:
        shows_places: True if rows name the record they came from.
    """

    shows_places: bool

    def open_input(self, job: str, topic: T, begin: str | None, end: str, /) -> Input:
        """Return the records that a run read, or raise AUDIT_INPUT_GONE and others.

        Args:
            begin: The start position; None for the earliest record.
            end: The end position.
        """

    def open_rows(self, run: AuditedRun, topic: T, /) -> OutputRows:
        """Return the current rows of an output."""


class Connector(Protocol[T]):
    """One kind of topic.

    Attributes:
        kind: The kind of its topics.
        has_keys: True if records have keys.
    """

    kind: str
    has_keys: bool

    @property
    def spark(self) -> SparkEnds[T]:
        """Options for the engine."""

    @property
    def starts(self) -> StartSyntax:
        """Starts of reading."""

    @property
    def positions(self) -> Positions[T]:
        """Positions of reading."""

    @property
    def writing(self) -> Writing[T]:
        """Rows written by runs."""

    @property
    def setup(self) -> TopicSetup[T]:
        """Creation of topics."""

    @property
    def audit(self) -> Audit[T] | None:
        """Input of an audit; None if audits are not supported."""

    def find_log(self, text: str) -> Log | None:
        """Return the log for a value of `--on`; None if it belongs to another connector.

        Raises:
            HeadgateError: The servers or options of a broker are not valid.
        """

    def log_of(self, topic: T, /) -> Log:
        """Return the log of a topic."""

    def where(self, topic: T, /) -> str:
        """Return the log of a topic as a value of `--on`, without client options."""

    def find_cluster(self, topic: T, /) -> str | None:
        """Return the connection of a topic's cluster as JSON; None without a broker.

        Equal texts mean the same cluster.
        """

    def reach(self, topic: T, doing: str, /) -> None:
        """Return when the topic's cluster responds, or raise BROKER_UNREACHABLE and others.

        Args:
            doing: The purpose, as in "cannot DOING".
        """

    def reads(self, read: T, topic: Topic, /) -> bool:
        """Return True if reading one topic gives records of another."""

    def open_places(self, topic: T, /) -> Places:
        """Return the records of a topic; sends no request yet."""
