"""An audit by position: each record of the input against the rows that say they came from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from headgate.connectors.audit import Input, Meter, Passed, Row
from headgate.connectors.registry import find_audit, get_audit
from headgate.errors import HeadgateError
from headgate.flow.operators import Source
from headgate.flow.topics import Topic
from headgate.jobs.audit.counts.source_counts import SourceCounts
from headgate.jobs.audit.records.marks import Letter, parse_letter
from headgate.jobs.audit.report import Audit, By, OutputAudit
from headgate.jobs.audit.scope import Scope
from headgate.jobs.audit.shape import Shape, origins, shape_of


def audit_positions(scope: Scope, sources: Iterable[Source], meter: Meter) -> Audit:
    """Return what is lost and what is doubled of some streams, by the marks of their rows.

    Raises:
        HeadgateError: AUDIT_NEEDS_KEY where rows do not tell, or not clearly, which record they
            came from; AUDIT_INPUT_GONE; what reading raises.
    """
    shapes = {node.id: _shape(scope, node) for node in sources}
    inputs = {node.id: _open(scope, node) for node in sources}
    counts = {name: SourceCounts(shape, inputs[name]) for name, shape in shapes.items()}
    for name, read in inputs.items():
        if read is not None:
            counts[name].expect(read.read(meter))
    outputs: dict[str, OutputAudit] = {}
    doubts: list[str] = []
    for name, topic in _outputs(scope, shapes.values()).items():
        rows = get_audit(topic).open_rows(scope, topic)
        passed = Passed()
        found = rows.read(passed, meter)
        if name == scope.flow.dead_letters.name:
            _take_letters(scope, name, found, shapes, counts)
        else:
            _take_rows(name, found, shapes, counts)
        outputs[name] = OutputAudit(**asdict(passed))
        doubts += rows.doubts
    results = {name: each.result() for name, each in counts.items()}
    notes = [*scope.notes, *(note for each in counts.values() for note in each.notes())]
    if any(each.lost for each in results.values()):
        notes += [f"rows may not have been seen: {doubt}" for doubt in doubts]
    return Audit(
        job=scope.job,
        lineage=scope.lineage,
        checkpoint=scope.checkpoint,
        by=By.POSITION,
        delivery=scope.delivery,
        sources=results,
        outputs=outputs,
        examples=tuple(each for count in counts.values() for each in count.examples()),
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
            group = shapes[source].group(output, letter.origin)
            counts[source].take(letter.partition, letter.offset, group, is_earlier=row.is_earlier)


def read_letters(scope: Scope, rows: Iterable[Row]) -> Iterator[tuple[str | None, Letter, Row]]:
    """Yield the dead letters among rows, each with the source of its record."""
    sources = origins(scope.flow)
    for row in rows:
        letter = parse_letter(row.value)
        if letter is not None:
            yield row.source or sources.get(letter.origin), letter, row


def _shape(scope: Scope, node: Source) -> Shape:
    flow = scope.flow
    shows = [each.id for each in flow.outputs() if _shows_places(each.topic)]
    readable = find_audit(flow.dead_letters) is not None
    shape = shape_of(flow, node.id, shows_places=shows, dead_letters_show=readable)
    if not any(output in shows for output in shape.outputs):
        why = "; ".join(shape.unseen) if not shape.outputs else ""
        found = why or "rows tell which record they came from on Kafka alone"
        raise _needs_key(scope, node, found)
    return shape


def _open(scope: Scope, node: Source) -> Input | None:
    if not _shows_places(node.topic):
        found = f"it reads {node.topic.describe()}, and positions are compared on Kafka alone"
        raise _needs_key(scope, node, found)
    end = scope.ends[node.id]
    if end is None:
        return None
    audit = get_audit(node.topic)
    read = audit.open_input(scope.job, node.topic, scope.begins[node.id], end)
    if len(read.ranges) > 1:
        found = f"it reads {len(read.ranges)} topics, and rows do not tell which they came from"
        raise _needs_key(scope, node, found)
    return read if read.ranges else None


def _shows_places(topic: Topic) -> bool:
    audit = find_audit(topic)
    return audit is not None and audit.shows_places


def _outputs(scope: Scope, shapes: Iterable[Shape]) -> dict[str, Topic]:
    """Return the outputs whose rows tell of their records, dead letters last."""
    reached = {name for shape in shapes for name in shape.outputs}
    found: dict[str, Topic] = {
        node.id: node.topic
        for node in scope.flow.outputs()
        if node.id in reached and _shows_places(node.topic)
    }
    letters = scope.flow.dead_letters
    if find_audit(letters) is not None:
        found[letters.name] = letters
    return found


def _needs_key(scope: Scope, node: Source, found: str) -> HeadgateError:
    column = node.schema.names[0]
    return HeadgateError(
        "AUDIT_NEEDS_KEY",
        f"cannot audit source {node.id!r} of job {scope.job!r} by position: {found}",
        hint=f"compare columns that identify its records: headgate audit {scope.job} --source "
        f"{node.id} --key {column}",
    )
