"""The outputs of a job, and their last records."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace

from headgate._codec import Moment, alias, left_out_while, shaped
from headgate.connectors.contract.places import PlacedRecord
from headgate.connectors.contract.written import Hidden
from headgate.connectors.registry import find_connector
from headgate.errors import HeadgateError
from headgate.flow.formats.plain import Json, Text
from headgate.flow.graph.ancestry import is_of_side_output
from headgate.flow.graph.graph import Graph
from headgate.flow.names import did_you_mean
from headgate.flow.operators.nodes import Output
from headgate.flow.topics import Topic
from headgate.jobs.dead_letters.letter import find_kind, find_moment, show_bytes
from headgate.jobs.dead_letters.way_back import Ownership
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.records.viewers import Viewer, find_viewer, show_record
from headgate.jobs.runs.lineage import get_flow
from headgate.jobs.runs.written_batches import topics_of

# The bytes of a key or a value that are shown.
SHOWN = 8 * 1024


class OutputKind(enum.StrEnum):
    """The kinds of outputs, in the order of a list."""

    SIDE = "side"
    MAIN = "main"
    DEAD_LETTERS = "dead-letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """One output.

    Attributes:
        id: Its name in the job's counts.
        topic: Its topic's name.
        kind: SIDE if its rows come from a side output such as `missing` or `late`.
        fed_by: The operator's output, such as `with-user.missing`; empty for dead letters.
        log: The log of the topic, as `--on` names it, without options; `console` for a console.
        can_tail: Whether its last rows can be read.
        rows: Rows written since the last start of the job.
        hidden: Rows that readers do not see yet, in a folder; None if there are none, or if the
            folder cannot be read.
    """

    id: str
    topic: str
    kind: OutputKind
    fed_by: str
    log: str
    can_tail: bool
    rows: int
    hidden: Hidden | None = field(default=None, metadata=left_out_while(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRecord:
    """One row in an output.

    Attributes:
        place: Identifies the record in its topic.
        position: Its position in its partition.
        timestamp: When it was written; None if unknown.
        key: The message's key as text, or None.
        value: At most 8 KiB of the value as text, decoded by the output's format, or None.
        size: The value's full length in bytes.
        cut: Whether the value is longer than shown.
        problem: Why the value cannot be decoded, and is shown as bytes; empty if it can.
    """

    place: str
    partition: int
    position: str
    timestamp: Moment | None
    key: str | None
    value: str | None
    size: int = field(metadata=alias("bytes"))
    cut: bool
    problem: str = ""

    __get_pydantic_core_schema__ = shaped(
        absent=lambda record: () if record.problem else ("problem",)
    )


def list_outputs(home: JobFolder) -> tuple[OutputView, ...]:
    """Return the outputs of a job: side outputs first, dead letters last.

    Raises:
        HeadgateError: JOB_NEVER_RAN.
    """
    graph = get_flow(home, doing="show the outputs of")
    rows = (home.find_json("status.json") or {}).get("outputs") or {}
    outputs = [
        _view(node.id, node.topic, _kind(graph, node), str(node.input), rows)
        for node in graph.outputs()
    ]
    letters = graph.dead_letters
    outputs.append(_view(letters.name, letters, OutputKind.DEAD_LETTERS, "", rows))
    topics = topics_of(graph)
    lineage = home.find_present_run()
    outputs = [replace(view, hidden=_find_hidden(topics[view.id], lineage)) for view in outputs]
    order = list(OutputKind)
    return tuple(sorted(outputs, key=lambda output: order.index(output.kind)))


def _find_hidden(topic: Topic, lineage: str | None) -> Hidden | None:
    connector = find_connector(topic)
    if connector is None or lineage is None:
        return None
    try:
        return connector.writing.find_hidden(topic, lineage)
    except (OSError, HeadgateError):
        return None


def tail_output(home: JobFolder, output: str, *, lines: int = 20) -> tuple[OutputRecord, ...]:
    """Return the last rows of an output, newest last.

    Raises:
        HeadgateError: JOB_NEVER_RAN, OUTPUT_NOT_FOUND, OUTPUT_NOT_KEPT for a console; errors of
            reading the log.
    """
    graph = get_flow(home, doing="show the outputs of")
    topic = _topic(graph, output, home.name)
    connector = find_connector(topic)
    if connector is None:
        raise HeadgateError(
            "OUTPUT_NOT_KEPT",
            f"cannot show rows of output {output!r} of job {home.name!r}: they go to the "
            f"{topic.kind}, which stores none",
            hint=f"headgate logs {home.name} --supervisor",
        )
    try:
        records = connector.open_places(topic).last(lines)
    except HeadgateError as error:
        if error.code == "TOPIC_NOT_FOUND":
            return ()
        raise
    if output == graph.dead_letters.name:
        # Without the letters of other jobs.
        ownership = Ownership(home.name, graph)
        kinds = ((record, find_kind(record.value)) for record in records)
        records = [record for record, kind in kinds if kind is None or ownership.has(kind)]
    viewer = _find_viewer(graph, output)
    return tuple(_record(record, viewer) for record in records)


def _view(
    name: str, topic: Topic, kind: OutputKind, fed_by: str, rows: dict[str, int]
) -> OutputView:
    connector = find_connector(topic)
    return OutputView(
        id=name,
        topic=topic.name,
        kind=kind,
        fed_by=fed_by,
        log=topic.kind if connector is None else connector.where(topic),
        can_tail=connector is not None,
        rows=int(rows.get(name, 0)),
    )


def _kind(graph: Graph, output: Output) -> OutputKind:
    is_side = is_of_side_output(graph.node, output.input, through_state=True)
    return OutputKind.SIDE if is_side else OutputKind.MAIN


def _topic(graph: Graph, output: str, job: str) -> Topic:
    topics = {node.id: node.topic for node in graph.outputs()}
    topics[graph.dead_letters.name] = graph.dead_letters
    if output not in topics:
        raise HeadgateError(
            "OUTPUT_NOT_FOUND",
            f"cannot show rows of output {output!r} of job {job!r}: its flow writes "
            f"{', '.join(topics)}",
            hint=did_you_mean(output, topics),
        )
    return topics[output]


def _find_viewer(graph: Graph, output: str) -> Viewer | None:
    """Return what shows the values of an output; None if they are text as they are."""
    node = next((node for node in graph.outputs() if node.id == output), None)
    if node is None or isinstance(node.format, Json | Text):
        return None
    return find_viewer(node.format, node.topic, columns=graph.schemas()[node.input].names)


def _record(record: PlacedRecord, viewer: Viewer | None) -> OutputRecord:
    value = record.value
    text, problem, cut = None, "", False
    if value is not None and viewer is not None:
        shown = show_record(viewer, value)
        text, problem, cut = shown.text[:SHOWN], shown.problem, len(shown.text) > SHOWN
    elif value is not None:
        text, cut = show_bytes(value[:SHOWN]), len(value) > SHOWN
    return OutputRecord(
        place=record.place,
        partition=record.partition,
        position=record.place.removeprefix(f"{record.partition}:"),
        timestamp=find_moment(record.timestamp),
        key=None if record.key is None else show_bytes(record.key[:SHOWN]),
        value=text,
        size=0 if value is None else len(value),
        cut=cut,
        problem=problem,
    )
