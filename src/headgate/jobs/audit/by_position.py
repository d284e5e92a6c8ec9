"""An audit by position: each record of the input against the rows that name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headgate.connectors.contract.audit import Input, Meter, Passed, Row
from headgate.connectors.registry import find_audit, get_audit
from headgate.errors import HeadgateError
from headgate.flow.operators.nodes import Source, Window, label
from headgate.flow.topics import Topic
from headgate.jobs.audit.position_counts import SourceCounts
from headgate.jobs.audit.report import Audit, By
from headgate.jobs.audit.scope import Scope
from headgate.jobs.audit.shape import Shape, find_closing_window, origins, shape_of
from headgate.jobs.dead_letters.letter import DeadLetter, parse_letter


def audit_positions(scope: Scope, sources: Iterable[Source], meter: Meter) -> Audit:
    """Return the lost and duplicated records of some streams, by the marks of their rows.

    Raises:
        HeadgateError: AUDIT_NEEDS_KEY if rows do not name their record, or not clearly;
            AUDIT_WINDOWED if no row is of a single record; AUDIT_INPUT_GONE; errors of reading.
    """
    shapes = {node.id: _shape(scope, node) for node in sources}
    inputs = {node.id: _open(scope, node) for node in sources}
    counts = {name: SourceCounts(shape, inputs[name]) for name, shape in shapes.items()}
    for name, read in inputs.items():
        counts[name].expect(read.read(meter))
    outputs: dict[str, Passed] = {}
    doubts: list[str] = []
    for name, topic in _outputs(scope, shapes.values()).items():
        rows = get_audit(topic).open_rows(scope, topic)
        outputs[name] = Passed()
        read_rows = rows.read(outputs[name], meter)
        if name == scope.flow.dead_letters.name:
            _take_letters(scope, name, read_rows, shapes, counts)
        else:
            _take_rows(name, read_rows, shapes, counts)
        doubts += rows.doubts
    results = {name: source.result() for name, source in counts.items()}
    notes = [*scope.notes, *(note for source in counts.values() for note in source.notes())]
    if any(source.lost for source in results.values()):
        notes += [f"rows may not have been seen: {doubt}" for doubt in doubts]
    return Audit(
        job=scope.job,
        lineage=scope.lineage,
        checkpoint=scope.checkpoint,
        by=By.POSITION,
        delivery=scope.delivery,
        sources=results,
        outputs=outputs,
        examples=tuple(example for source in counts.values() for example in source.examples()),
        notes=tuple(notes),
    )


def _take_rows(
    output: str,
    rows: Iterable[Row],
    shapes: Mapping[str, Shape],
    counts: Mapping[str, SourceCounts],
) -> None:
    groups = {name: shape.group(output) for name, shape in shapes.items()}
    for row in rows:
        source = row.source
        if source is not None and source in groups:
            counts[source].take(
                row.partition, row.offset, groups[source], is_earlier=row.is_earlier
            )


def _take_letters(
    scope: Scope,
    output: str,
    rows: Iterable[Row],
    shapes: Mapping[str, Shape],
    counts: Mapping[str, SourceCounts],
) -> None:
    for source, letter, row in read_letters(scope, rows):
        if source is not None and source in shapes:
            group = shapes[source].group(output, letter.source)
            counts[source].take(letter.partition, letter.offset, group, is_earlier=row.is_earlier)


def read_letters(scope: Scope, rows: Iterable[Row]) -> Iterator[tuple[str | None, DeadLetter, Row]]:
    """Yield the dead letters among rows, each with the source of its record."""
    sources = origins(scope.flow)
    for row in rows:
        letter = parse_letter(row.value)
        if letter is not None:
            yield row.source or _find_source(sources.get(letter.source, ()), letter), letter, row


def _find_source(sources: Sequence[Source], letter: DeadLetter) -> str | None:
    """Return the source of a letter's record; None if it can be one of several."""
    named = [source for source in sources if source.topic.name == letter.topic]
    candidates = sources if len(sources) == 1 else named
    return candidates[0].id if len(candidates) == 1 else None


def _shape(scope: Scope, node: Source) -> Shape:
    flow = scope.flow
    shows = [output.id for output in flow.outputs() if _shows_places(output.topic)]
    readable = find_audit(flow.dead_letters) is not None
    shape = shape_of(flow, node.id, shows_places=shows, dead_letters_show=readable)
    window = find_closing_window(flow, node.id)
    if window is not None and not shape.outputs:
        raise audit_windowed(scope, node, window)
    if not any(output in shows for output in shape.outputs):
        why = "; ".join(shape.unseen) if not shape.outputs else ""
        raise _needs_key(scope, node, why or "only rows on Kafka name their record")
    return shape


def _open(scope: Scope, node: Source) -> Input:
    if not _shows_places(node.topic):
        why = f"it reads {node.topic.describe()}, and positions are compared on Kafka only"
        raise _needs_key(scope, node, why)
    read = open_input(scope, node)
    if len(read.ranges) > 1:
        why = f"it reads {len(read.ranges)} topics, and rows do not name the topic of their record"
        raise _needs_key(scope, node, why)
    return read


def open_input(scope: Scope, node: Source) -> Input:
    """Return the records that the run read from a stream."""
    end = scope.ends[node.id]
    if end is None:
        return Input(node.topic.name)
    return get_audit(node.topic).open_input(scope.job, node.topic, scope.begins[node.id], end)


def _shows_places(topic: Topic) -> bool:
    audit = find_audit(topic)
    return audit is not None and audit.shows_places


def _outputs(scope: Scope, shapes: Iterable[Shape]) -> dict[str, Topic]:
    """Return the outputs whose rows name their records, dead letters last."""
    reached = {name for shape in shapes for name in shape.outputs}
    topics: dict[str, Topic] = {
        node.id: node.topic
        for node in scope.flow.outputs()
        if node.id in reached and _shows_places(node.topic)
    }
    letters = scope.flow.dead_letters
    if find_audit(letters) is not None:
        topics[letters.name] = letters
    return topics


def audit_windowed(scope: Scope, node: Source, window: Window) -> HeadgateError:
    """Return the error for a stream whose records are in no row of their own."""
    return HeadgateError(
        "AUDIT_WINDOWED",
        f"cannot audit source {node.id!r} of job {scope.job!r}: {label(window)} makes rows of many "
        "records, so no output has a row for each record",
        hint="add an output for the late events, or one for the stream itself: the rows there can "
        "be audited",
    )


def _needs_key(scope: Scope, node: Source, why: str) -> HeadgateError:
    column = node.schema.names[0]
    return HeadgateError(
        "AUDIT_NEEDS_KEY",
        f"cannot audit source {node.id!r} of job {scope.job!r} by position: {why}",
        hint=f"compare columns that identify its records: headgate audit {scope.job} --source "
        f"{node.id} --key {column}",
    )
