"""The protocol of a connector: one object for each kind of topic, with a few small parts.

`T` is the connector's own kind of topic. A part can be a module. `registry` lists all connectors,
and importing it loads no client library: functions import what needs one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from headgate.connectors.audit import AuditedRun, Input, OutputRows
from headgate.connectors.places import Places
from headgate.connectors.producing import KeyValues, Sink
from headgate.connectors.setup import SetupOptions, TopicRole
from headgate.connectors.topics import MadeTopic, Topics, WantedTopic
from headgate.connectors.written import Batches, Writers, Written
from headgate.flow.schema import Schema
from headgate.flow.topics import Topic

T = TypeVar("T", bound=Topic, contravariant=True)


class Log(Protocol):
    """Where the topics of a flow lie that are known by name alone: what `--on` names."""

    @property
    def folder(self) -> Path | None:
        """The folder that all of it is in; None for a broker."""

    def bind(self, name: str) -> Topic:
        """Return the topic of that name on this log."""

    def anchored(self) -> Log:
        """Return the same log with absolute paths, so that it can be used from any folder."""

    def open_topics(self) -> Topics:
        """Return its topics; no request is sent yet."""

    def make_topics(
        self, roles: Mapping[str, TopicRole], partitions: int | None
    ) -> tuple[MadeTopic, ...]:
        """Create the missing topics, and return those on brokers that are new.

        Args:
            partitions: Of streams on embedded topics, of all topics elsewhere; None is the default.
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
        max_batch: How many bytes one batch reads at most, unless one record alone is larger.
        max_record: Of a longer record, only the beginning is kept.
        splits: How many tasks read a batch at most.
        start: The JSON of a position, or a start as the topic may have it, which it wins over;
            None leaves it to the topic, and `earliest` where that says nothing.
        on_data_loss: `fail` or `continue`: what to do when unread records have been deleted.
        meta: Whether the flow asks for keys and headers of a stream's records.
    """

    job: str
    max_batch: int
    max_record: int
    splits: int
    start: str | None = None
    on_data_loss: str = "fail"
    meta: bool = True


class SparkEnds(Protocol[T]):
    """Topics as the kernel's source and sink take them: options, all of them text.

    Attributes:
        SOURCE: The class of the kernel that reads topics.
        IS_PARTITIONED: Whether records are in order in their partition only.
    """

    SOURCE: str
    IS_PARTITIONED: bool

    def source_options(self, topic: T, reading: Reading, /) -> dict[str, str]:
        """Return what the source needs."""

    def output_option(self, topic: T, /) -> dict[str, str]:
        """Return where the sink writes: `kind`, and what that kind needs.

        Raises:
            HeadgateError: BAD_TOPIC: the topic stands for a pattern.
        """

    def prepare(self, topic: T, partitions: int, lineage: str | None, /) -> None:
        """Create what must exist when a query starts.

        Args:
            partitions: How many tasks write.
            lineage: The run that writes the topic; None for a topic that is read.
        """


class Starts(Protocol):
    """Where reading begins when nothing was read before; `EXAMPLE` is a position for `--start`."""

    EXAMPLE: str

    def check_start(self, start: object, *, topic: str) -> str | None:
        """Return a start as text that reads back as the same, or raise BAD_TOPIC."""


class Mark(Protocol):
    """Where one source's position is shown to others."""

    def move(self, position: str) -> None:
        """Show a position, as the kernel's source writes it."""


class Positions(Protocol[T]):
    """Positions as the kernel's source writes them, measured from outside."""

    def count_between(self, topic: T, start: str | None, end: str | None, /) -> int | None:
        """Return how many records lie between two positions; None if that cannot be known.

        On Kafka it is at most so many, since offsets have gaps; on Pulsar it is at least so many,
        since an entry may hold many records.

        Args:
            start: None for the topic's beginning.
            end: None for the end of what has been read.
        """

    def has_reached(self, position: str, target: str | None, /) -> bool:
        """Tell whether a position lies at or behind another; an unknown target is reached."""

    def find_mark(self, topic: T, job: str, /) -> Mark | None:
        """Return where a job's position is shown to the tools of the log; None for nowhere."""


class Writing(Protocol[T]):
    """What runs write to topics, and what is left of it.

    Attributes:
        rests_on: What makes exactly-once, in words.
        can_repeat: Whether at-least-once is served too.
        has_transactions: Whether tasks write in transactions, which must be ended for them.
    """

    rests_on: str
    can_repeat: bool
    has_transactions: bool

    def end_transactions(self, topic: T, ids: Iterable[str], /) -> None:
        """End the transactions of tasks on the topic's cluster, and shut the tasks out."""

    def find_written(
        self, topics: Mapping[str, T], writers: Writers, batches: Batches, /
    ) -> dict[str, Written]:
        """Return what topics hold of a run's batches, by the names that they are given with."""


class TopicSetup(Protocol[T]):
    """How the topics of a flow are made; `OPTIONS` are those of `headgate setup` that apply."""

    OPTIONS: frozenset[str]

    def find_companions(self, topic: T, /) -> Iterable[tuple[Topic, TopicRole]]:
        """Return the topics that writing to one needs."""

    def wanted(
        self, topic: T, role: TopicRole, options: SetupOptions, schema: Schema | None = None, /
    ) -> WantedTopic:
        """Return the settings of a topic to create."""

    def find_problems(
        self, role: TopicRole, made: MadeTopic, options: SetupOptions, /
    ) -> Iterator[str]:
        """Yield what is wrong with a topic that was there before, in words."""


class Audit(Protocol[T]):
    """Topics as an audit reads them.

    Attributes:
        shows_places: Whether rows say which record they came from.
    """

    shows_places: bool

    def open_input(self, job: str, topic: T, begin: str | None, end: str, /) -> Input:
        """Return what a run read, or raise AUDIT_INPUT_GONE and others.

        Args:
            begin: Where it began; None for the earliest record there is.
            end: How far it came.
        """

    def open_rows(self, run: AuditedRun, topic: T, /) -> OutputRows:
        """Return the rows of an output as it is now."""


class Connector(Protocol[T]):
    """One kind of topic.

    Attributes:
        kind: As the topic has it.
        has_keys: Whether records have keys.
    """

    kind: str
    has_keys: bool

    @property
    def spark(self) -> SparkEnds[T]:
        """Options for the engine."""

    @property
    def starts(self) -> Starts:
        """Where reading begins."""

    @property
    def positions(self) -> Positions[T]:
        """How far reading came."""

    @property
    def writing(self) -> Writing[T]:
        """What was written."""

    @property
    def setup(self) -> TopicSetup[T]:
        """How topics are made."""

    @property
    def audit(self) -> Audit[T] | None:
        """How an audit reads; None if it cannot."""

    def find_log(self, text: str) -> Log | None:
        """Return the log that `--on` names; None for a text of another connector.

        Raises:
            HeadgateError: What is wrong with the servers or options of a broker.
        """

    def log_of(self, topic: T, /) -> Log:
        """Return the log that a topic is on."""

    def where(self, topic: T, /) -> str:
        """Return the log of a topic as `--on` names it, without the options of its clients."""

    def find_cluster(self, topic: T, /) -> str | None:
        """Return how a topic's cluster is reached, as JSON; None for no broker.

        Equal texts are one cluster.
        """

    def reach(self, topic: T, doing: str, /) -> None:
        """Return once the topic's cluster answers, or raise BROKER_UNREACHABLE and others.

        Args:
            doing: What it is for, after the word cannot.
        """

    def reads(self, read: T, topic: Topic, /) -> bool:
        """Tell whether records of any topic come out of one that is read."""

    def open_places(self, topic: T, /) -> Places:
        """Return the records of a topic; no request is sent yet."""
