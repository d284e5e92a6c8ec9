"""The nodes of a flow's graph: frozen values that describe operators."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, TypeAlias

from headgate.flow.formats.format import Format
from headgate.flow.formats.plain import JSON
from headgate.flow.names import split_path
from headgate.flow.operators.aggregates import NamedAggregate
from headgate.flow.operators.process_parts import KeptState, SideOutput
from headgate.flow.operators.windowing import Trigger, Windows
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic
from headgate.functions.stored import StoredFunction

# The columns of a window's results, besides its key and its aggregates.
WINDOW_START, WINDOW_END = "window_start", "window_end"
# The column of a row whose call failed: why, and how often it was made.
FAILURE = "failure"
PARTIAL, CORRECTION, PROCESSED_AT = "partial", "correction", "processed_at"
RESULT_COLUMNS = (WINDOW_START, WINDOW_END, PARTIAL, CORRECTION, PROCESSED_AT)


class SourceKind(enum.StrEnum):
    """The kind of a source's records."""

    STREAM = "stream"
    TABLE = "table"


class Load(enum.StrEnum):
    """When a table is read on a job's first start: before the streams, or together with them."""

    FIRST = "first"
    TOGETHER = "together"


class TimeUnit(enum.StrEnum):
    """The unit of a numeric event time, counted from 1970."""

    MILLISECONDS = "ms"
    SECONDS = "s"


class OnError(enum.StrEnum):
    """What becomes of a row on which a function fails: the job fails, or it is a dead letter."""

    FAIL = "fail"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class Port:
    """One output of one node; named `out` if it is the only one."""

    node: str
    output: str

    def __str__(self) -> str:
        return self.node if self.output == "out" else f"{self.node}.{self.output}"


# In place of a port that has no default, behind fields that have one.
_NOWHERE = Port("", "")


@dataclass(frozen=True, slots=True)
class Column:
    """A SQL expression and the name of its result."""

    name: str
    expression: str


class _Operator:
    """What operators have in common, unless they say otherwise."""

    __slots__ = ()

    outputs: ClassVar[tuple[str, ...]] = ("out",)
    side_outputs: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool] = False
    # Whether it may make several rows of one, which share the record behind it.
    multiplies: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Source(_Operator):
    """Reads a topic: events of a stream, or the changelog of a table.

    Attributes:
        event_time: Streams: the column with the time of the event, or None.
        out_of_orderness: Streams: how late an event may arrive; None without event time.
        key: Tables: the columns that identify a row; empty for a stream.
        version: Tables: the column that orders the changes of a row, or None.
        load: Tables: when to read it on a first start; TOGETHER for streams.
        meta: Streams: the column with the record's metadata, or None.
        idle_after: Streams: how long a stream without records holds back event time; None for no
            limit.
        event_time_unit: Streams: the unit of a numeric event time.
        format: The format of its records.
    """

    id: str
    kind: SourceKind
    topic: Topic
    schema: Schema
    event_time: str | None
    out_of_orderness: timedelta | None
    key: tuple[str, ...]
    version: str | None
    load: Load
    meta: str | None = None
    idle_after: timedelta | None = None
    event_time_unit: TimeUnit = TimeUnit.MILLISECONDS
    format: Format = JSON

    operator: ClassVar[str] = "source"


@dataclass(frozen=True, slots=True)
class Enrich(_Operator):
    """Adds the table row with the same key to each event, as the struct `into`.

    Events with a row go to `matched`; the others go to `missing` unchanged.
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
class Window(_Operator):
    """Aggregates the events of each key in windows of event time.

    Results go to `updates`; events whose windows are closed go to `late` unchanged.

    Attributes:
        key: The key columns; empty to aggregate all events together.
        lateness: How long after its end a window still takes events.
        early: When the window emits results before its end.
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
class Dedupe(_Operator):
    """Passes the first event of a key and drops duplicates within a span of event time."""

    id: str
    input: Port
    by: tuple[str, ...]
    within: timedelta

    operator: ClassVar[str] = "dedupe"
    outputs: ClassVar[tuple[str, ...]] = ("unique", "repeated", "late")
    side_outputs: ClassVar[tuple[str, ...]] = ("repeated", "late")
    stateful: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Join(_Operator):
    """Pairs rows of two streams that have the same key and times close to each other.

    A right row matches a left row if its time is at most `before` earlier and `after` later. Pairs
    go to `matched`; rows that nothing can match any more go to `left_only` and `right_only`.

    Attributes:
        input: The left stream.
        right: The right stream.
        on: The key columns of the left stream; `right_on` those of the right one.
        into: The column of `matched` with the right row, a struct.
    """

    id: str
    input: Port
    right: Port
    on: tuple[str, ...]
    right_on: tuple[str, ...]
    before: timedelta
    after: timedelta
    into: str

    operator: ClassVar[str] = "join"
    outputs: ClassVar[tuple[str, ...]] = ("matched", "left_only", "right_only", "late")
    side_outputs: ClassVar[tuple[str, ...]] = ("left_only", "right_only", "late")
    stateful: ClassVar[bool] = True
    multiplies: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Process:
    """Calls a process of the user with the events and the timers of each key.

    Attributes:
        schema: The columns of the rows of `out`.
        sides: Its side outputs, in the order in which they were declared.
        state: What it keeps for each key, in the order of its class.
        columns: The columns that the process sees; None for all.
        timers: True if it can have timers.
        table: The broadcast table whose rows it sees; None without one. Only then, and without
            state and timers, its key may be empty.
    """

    id: str
    input: Port
    key: tuple[str, ...]
    function: StoredFunction
    schema: Schema
    state: tuple[KeptState, ...] = ()
    sides: tuple[SideOutput, ...] = ()
    columns: tuple[str, ...] | None = None
    timers: bool = False
    on_error: OnError = OnError.FAIL
    table: str | None = None

    operator: ClassVar[str] = "process"
    stateful: ClassVar[bool] = True
    multiplies: ClassVar[bool] = True

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of all outputs, `out` first."""
        return ("out", *self.side_outputs)

    @property
    def side_outputs(self) -> tuple[str, ...]:
        """The names of the side outputs."""
        return tuple(side.name for side in self.sides)


@dataclass(frozen=True, slots=True)
class CoProcess(Process):
    """Calls a process of the user with the events of two streams; `input` is the left one.

    Attributes:
        right: The right stream.
        right_key: The key columns of the right stream; `key` those of the left one.
        right_columns: The columns of right events that the process sees; None for all.
    """

    right: Port = _NOWHERE
    right_key: tuple[str, ...] = ()
    right_columns: tuple[str, ...] | None = None

    operator: ClassVar[str] = "co-process"


@dataclass(frozen=True, slots=True)
class Union(_Operator):
    """Passes on the rows of several streams that have the same columns."""

    id: str
    inputs: tuple[Port, ...]

    operator: ClassVar[str] = "union"


@dataclass(frozen=True, slots=True)
class Rebalance(_Operator):
    """Spreads rows evenly over all tasks, by the position of their record."""

    id: str
    input: Port

    operator: ClassVar[str] = "rebalance"


@dataclass(frozen=True, slots=True)
class Label(_Operator):
    """Adds to each event the labels of all rules that hold for it, as the array `into`.

    Attributes:
        table: The broadcast table with the rules.
        when: Its column with the condition of a rule, which is SQL.
        label: Its column with the label of a rule.
    """

    id: str
    input: Port
    table: str
    when: str
    label: str
    into: str

    operator: ClassVar[str] = "label"
    stateful: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Select(_Operator):
    """Reduces rows to these columns."""

    id: str
    input: Port
    columns: tuple[Column, ...]

    operator: ClassVar[str] = "select"


@dataclass(frozen=True, slots=True)
class Where(_Operator):
    """Keeps the rows for which a SQL condition is true."""

    id: str
    input: Port
    condition: str

    operator: ClassVar[str] = "where"


@dataclass(frozen=True, slots=True)
class WithColumns(_Operator):
    """Adds columns, or replaces those of the same name; every expression sees the original row."""

    id: str
    input: Port
    columns: tuple[Column, ...]

    operator: ClassVar[str] = "with-columns"


@dataclass(frozen=True, slots=True)
class Transform(_Operator):
    """Calls a function on the DataFrame, which returns rows of `schema`.

    Attributes:
        function: `module:function`.
        stored: The function itself; None for one that is imported by its name.
    """

    id: str
    input: Port
    function: str
    schema: Schema
    stored: StoredFunction | None = None

    operator: ClassVar[str] = "transform"


@dataclass(frozen=True, slots=True)
class Call(_Operator):
    """Calls a Python function on rows; the function returns rows of `schema`.

    Attributes:
        columns: The columns that the function sees; None for all.
    """

    id: str
    input: Port
    function: StoredFunction
    schema: Schema
    columns: tuple[str, ...] | None = None
    on_error: OnError = OnError.FAIL

    operator: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Map(Call):
    """Replaces each row by the one that a function returns."""

    operator: ClassVar[str] = "map"


@dataclass(frozen=True, slots=True)
class FlatMap(Call):
    """Replaces each row by those that a function returns: none, one or several."""

    operator: ClassVar[str] = "flat-map"
    multiplies: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Filter(Call):
    """Keeps the rows for which a function returns a true value."""

    operator: ClassVar[str] = "filter"


@dataclass(frozen=True, slots=True)
class MapBatches(Call):
    """Replaces batches of rows, as `pyarrow.Table`s, by those that a function returns."""

    operator: ClassVar[str] = "map-batches"
    multiplies: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class AsyncCall(Call):
    """Calls an async function, which may ask a service; its answers are recorded.

    Answers go to `ok`; rows whose calls failed go to `failed`, with the struct `failure`.

    Attributes:
        capacity: The number of calls of a task that may be under way at once.
        timeout: The maximum time of one attempt.
        retries: How often a failed call is made again.
        ordered: Whether rows leave in the order in which they came; otherwise in the order in
            which their calls ended.
    """

    capacity: int = 100
    timeout: timedelta = timedelta(seconds=2)
    retries: int = 3
    ordered: bool = True

    operator: ClassVar[str] = "call"
    outputs: ClassVar[tuple[str, ...]] = ("ok", "failed")
    side_outputs: ClassVar[tuple[str, ...]] = ("failed",)


@dataclass(frozen=True, slots=True)
class Output(_Operator):
    """Writes rows to a topic.

    Attributes:
        key: The column whose text is the message key, on logs with keys.
        format: The format of its records.
    """

    id: str
    input: Port
    topic: Topic
    key: str | None = None
    format: Format = JSON

    operator: ClassVar[str] = "output"
    outputs: ClassVar[tuple[str, ...]] = ()


CallNode: TypeAlias = Map | FlatMap | Filter | MapBatches | AsyncCall
Node: TypeAlias = (
    Source
    | Enrich
    | Window
    | Dedupe
    | Join
    | Process
    | CoProcess
    | Union
    | Rebalance
    | Label
    | Select
    | Where
    | WithColumns
    | Transform
    | Map
    | FlatMap
    | Filter
    | MapBatches
    | AsyncCall
    | Output
)


def stream_ports(node: Node) -> tuple[Port, ...]:
    """Return the ports whose rows a node takes as events."""
    match node:
        case Source():
            return ()
        case Join(input=left, right=right) | CoProcess(input=left, right=right):
            return (left, right)
        case Union(inputs=ports):
            return ports
        case _:
            return (node.input,)


def table_ports(node: Node) -> tuple[Port, ...]:
    """Return the ports whose rows a node looks up as a table."""
    table = table_of(node)
    return () if table is None else (Port(table, "out"),)


def table_of(node: Node) -> str | None:
    """Return the table whose rows a node has, by its id, or None."""
    return node.table if isinstance(node, Enrich | Process | Label) else None


def broadcast_of(node: Node) -> str | None:
    """Return the table of which each task of a node has all rows, by its id, or None."""
    return node.table if isinstance(node, Process | Label) else None


def input_ports(node: Node) -> tuple[Port, ...]:
    """Return the ports that a node reads: its streams first, then its tables."""
    return (*stream_ports(node), *table_ports(node))


def label(node: Node) -> str:
    """Return the name of a node in messages: its operator and its id."""
    operator = node.kind.value if isinstance(node, Source) else node.operator
    return f"{operator} {node.id!r}"


def key_names(node: Window | Process | Join) -> tuple[str, ...]:
    """Return the names of the key columns by themselves, without the structs they are in."""
    paths = node.on if isinstance(node, Join) else node.key
    return tuple((split_path(path) or (path,))[-1] for path in paths)
