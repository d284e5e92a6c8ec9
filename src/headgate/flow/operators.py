"""The nodes of a flow's graph: frozen values that say what is to be done, and do nothing."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, TypeAlias

from headgate.flow.aggregates import NamedAggregate
from headgate.flow.schema import Schema
from headgate.flow.topics import Topic
from headgate.flow.triggers import Trigger
from headgate.flow.windowing import Windows


class SourceKind(enum.StrEnum):
    """What the records of a source are."""

    STREAM = "stream"
    TABLE = "table"


class Load(enum.StrEnum):
    """When a table is read on a job's first start: before streams are, or beside them."""

    FIRST = "first"
    TOGETHER = "together"


class TimeUnit(enum.StrEnum):
    """What a number that is a time counts since 1970."""

    MILLISECONDS = "ms"
    SECONDS = "s"


class OutputFormat(enum.StrEnum):
    """How rows are written: as JSON objects, or their one column as it is."""

    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Port:
    """One output of one node; `out` where a node has a single one."""

    node: str
    output: str

    def __str__(self) -> str:
        return self.node if self.output == "out" else f"{self.node}.{self.output}"


@dataclass(frozen=True, slots=True)
class Column:
    """A SQL expression and the name its value gets."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Source:
    """Reads a topic: events of a stream, or the changelog of a table.

    Attributes:
        event_time: Streams: the column with the time of the event, if one was named.
        out_of_orderness: Streams: how late an event may come; None without event time.
        key: Tables: the columns that tell rows apart; empty for a stream.
        version: Tables: the column that orders the changes of a row, if one was named.
        load: Tables: when to read it on a first start; streams have TOGETHER.
        meta: Streams: the column that tells where a record was, if one was asked for.
        idle_after: Streams: for how long a stream without records holds event time back; None
            for ever.
        event_time_unit: Streams: what a number in the event time's column counts.
    """

    id: str
    topic: Topic
    schema: Schema
    kind: SourceKind
    event_time: str | None
    out_of_orderness: timedelta | None
    key: tuple[str, ...]
    version: str | None
    load: Load
    meta: str | None = None
    idle_after: timedelta | None = None
    event_time_unit: TimeUnit = TimeUnit.MILLISECONDS

    operator: ClassVar[str] = "source"
    outputs: ClassVar[tuple[str, ...]] = ("out",)
    side_outputs: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Enrich:
    """Adds the table's row of the same key to each event, as the struct `into`.

    Events with a row go to `matched`; the others, as they came, to `missing`.
    """

    id: str
    input: Port
    table: str
    on: tuple[str, ...]
    into: str

    operator: ClassVar[str] = "enrich"
    outputs: ClassVar[tuple[str, ...]] = ("matched", "missing")
    side_outputs: ClassVar[tuple[str, ...]] = ("missing",)
    stateful: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Window:
    """Finds figures of each key's events, window by window of event time.

    Results go to `updates`; events whose windows are over, as they came, to `late`.

    Attributes:
        key: The columns that tell keys apart; empty where all events are taken together.
        lateness: For how long after its end a window still takes events.
        early: When there are results before the window's end.
    """

    id: str
    input: Port
    key: tuple[str, ...]
    windows: Windows
    aggregates: tuple[NamedAggregate, ...]
    lateness: timedelta
    early: tuple[Trigger, ...]

    operator: ClassVar[str] = "window"
    outputs: ClassVar[tuple[str, ...]] = ("updates", "late")
    side_outputs: ClassVar[tuple[str, ...]] = ("late",)
    stateful: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Dedupe:
    """Lets the first event of a key pass, and none like it within a span of event time."""

    id: str
    input: Port
    by: tuple[str, ...]
    within: timedelta

    operator: ClassVar[str] = "dedupe"
    outputs: ClassVar[tuple[str, ...]] = ("unique", "repeated", "late")
    side_outputs: ClassVar[tuple[str, ...]] = ("repeated", "late")
    stateful: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Select:
    """Makes a row of these columns and no others."""

    id: str
    input: Port
    columns: tuple[Column, ...]

    operator: ClassVar[str] = "select"
    outputs: ClassVar[tuple[str, ...]] = ("out",)
    side_outputs: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Where:
    """Keeps the rows for which a SQL condition is true."""

    id: str
    input: Port
    condition: str

    operator: ClassVar[str] = "where"
    outputs: ClassVar[tuple[str, ...]] = ("out",)
    side_outputs: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class WithColumns:
    """Adds columns, or replaces those of the same name; all see the row as it came."""

    id: str
    input: Port
    columns: tuple[Column, ...]

    operator: ClassVar[str] = "with-columns"
    outputs: ClassVar[tuple[str, ...]] = ("out",)
    side_outputs: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Transform:
    """Calls a named function on the DataFrame; it gives rows of `schema`."""

    id: str
    input: Port
    function: str
    schema: Schema

    operator: ClassVar[str] = "transform"
    outputs: ClassVar[tuple[str, ...]] = ("out",)
    side_outputs: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Output:
    """Writes rows to a topic.

    Attributes:
        key: The column whose text is the message's key, on logs that have keys.
    """

    id: str
    input: Port
    topic: Topic
    key: str | None = None
    format: OutputFormat = OutputFormat.JSON

    operator: ClassVar[str] = "output"
    outputs: ClassVar[tuple[str, ...]] = ()
    side_outputs: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool] = False


Node: TypeAlias = (
    Source | Enrich | Window | Dedupe | Select | Where | WithColumns | Transform | Output
)


def input_ports(node: Node) -> tuple[Port, ...]:
    """Return the ports a node takes rows from: its stream first, then its table."""
    match node:
        case Source():
            return ()
        case Enrich(input=port, table=table):
            return (port, Port(table, "out"))
        case _:
            return (node.input,)


def label(node: Node) -> str:
    """Return what messages call a node: its operator and its id."""
    operator = node.kind.value if isinstance(node, Source) else node.operator
    return f"{operator} {node.id!r}"
