"""An audit by key: compares how often each key is in the input and in the outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headgate._units import format_count
from headgate.connectors.contract.audit import Input, Meter, OutputRows, Passed
from headgate.connectors.registry import find_audit, get_audit
from headgate.errors import HeadgateError
from headgate.flow.formats.plain import Json
from headgate.flow.names import did_you_mean, split_path
from headgate.flow.operators.nodes import Output, Port, Source, label
from headgate.flow.topics import Topic
from headgate.jobs.audit.by_position import audit_windowed, open_input, read_letters
from headgate.jobs.audit.key_counts import KeyColumns, KeyFindings, KeyTally, hash_of
from headgate.jobs.audit.report import Audit, By, Example, Kind
from headgate.jobs.audit.scope import Scope
from headgate.jobs.audit.shape import find_closing_window, origins, outputs_of, shape_of


def audit_keys(
    scope: Scope, node: Source, key: Sequence[str], outputs: Sequence[str], meter: Meter
) -> Audit:
    """Return the lost and the surplus keys of a stream.

    Args:
        key: The columns that identify records; dotted paths work.
        outputs: By default all outputs of the stream's rows, and the dead letters.

    Raises:
        HeadgateError: AUDIT_WINDOWED, AUDIT_FORMAT, UNKNOWN_COLUMN, NODE_UNKNOWN,
            TOPIC_WRONG_WAY, AUDIT_INPUT_GONE; errors of reading.
    """
    unjudged = _find_unjudged(scope, node)
    topics = _choose(scope, node, outputs)
    _check_json(scope, node, topics)
    columns = _columns(scope, node, key, topics)
    read = open_input(scope, node)
    opened = {name: get_audit(topic).open_rows(scope, topic) for name, topic in topics.items()}
    tally = KeyTally(columns, node.id, read, unjudged)
    passed = {name: _take(scope, name, rows, tally, meter) for name, rows in opened.items()}
    tally.expect(read.read(meter))
    findings = tally.compare()
    result = tally.result(findings)
    examples = (
        *_find_examples(node.id, columns, findings, read, opened.values(), meter),
        *tally.letter_examples(),
    )
    notes = [*scope.notes, *tally.notes(), *_keyless(result.keyless, passed)]
    if result.lost:
        doubts = (doubt for rows in opened.values() for doubt in rows.doubts)
        notes += [f"rows may not have been seen: {doubt}" for doubt in doubts]
    if result.lost or result.doubled:
        notes += _by_design(scope, node)
    return Audit(
        job=scope.job,
        lineage=scope.lineage,
        checkpoint=scope.checkpoint,
        by=By.KEY,
        key=tuple(key),
        delivery=scope.delivery,
        sources={node.id: result},
        outputs=passed,
        examples=examples,
        notes=tuple(notes),
    )


def _check_json(scope: Scope, node: Source, topics: Mapping[str, Topic]) -> None:
    """Refuse records of which an audit cannot read the key: each would count as lost."""
    outputs = [output for output in scope.flow.outputs() if output.id in topics]
    entries: list[Source | Output] = [node, *outputs]
    others = [entry for entry in entries if not isinstance(entry.format, Json)]
    if others:
        able = [output.id for output in outputs if isinstance(output.format, Json)]
        options = " ".join(f"--output {name}" for name in able)
        narrowed = f"headgate audit {scope.job} --source {node.id} --key COLUMN {options}"
        raise HeadgateError(
            "AUDIT_FORMAT",
            f"cannot audit job {scope.job!r} by key: {label(others[0])} has records of format "
            f"{others[0].format.tag!r}, and keys are read from JSON",
            hint=narrowed if able and others[0] is not node else f"headgate audit {scope.job}",
        )


def _find_unjudged(scope: Scope, node: Source) -> tuple[str, ...]:
    """Return why losses cannot be found; empty if they can."""
    window = find_closing_window(scope.flow, node.id)
    if window is None:
        return ()
    if not outputs_of(scope.flow, node.id):
        raise audit_windowed(scope, node, window)
    return (f"{label(window)} makes rows of many records",)


def _take(scope: Scope, name: str, rows: OutputRows, tally: KeyTally, meter: Meter) -> Passed:
    passed = Passed()
    read_rows = rows.read(passed, meter)
    if name == scope.flow.dead_letters.name:
        for source, letter, row in read_letters(scope, read_rows):
            tally.take_letter(source, letter, row, passed)
    else:
        others = _others(scope, name, tally.source)
        for row in read_rows:
            tally.take(row, passed, others=others)
    return passed


def _others(scope: Scope, output: str, source: str) -> tuple[str, ...]:
    """Return the other sources whose rows are in an output."""
    sources = origins(scope.flow)[label(scope.flow.node(output))]
    return tuple(node.id for node in sources if node.id != source)


def _choose(scope: Scope, node: Source, wanted: Sequence[str]) -> dict[str, Topic]:
    flow = scope.flow
    letters = flow.dead_letters
    topics = {output.id: output.topic for output in outputs_of(flow, node.id)}
    topics[letters.name] = letters
    for name in wanted:
        if name not in topics:
            raise HeadgateError(
                "NODE_UNKNOWN",
                f"cannot audit output {name!r} of job {scope.job!r}: rows of {node.id!r} are "
                f"written to {', '.join(topics)}",
                hint=did_you_mean(name, topics),
            )
        if find_audit(topics[name]) is None:
            raise HeadgateError(
                "TOPIC_WRONG_WAY",
                f"cannot audit output {name!r} of job {scope.job!r}: it goes to "
                f"{topics[name].describe()}, which cannot be read",
                hint=f"headgate audit {scope.job} --key COLUMN --output {letters.name}",
            )
    names = wanted or [name for name, topic in topics.items() if find_audit(topic) is not None]
    return {name: topics[name] for name in names}


def _columns(
    scope: Scope, node: Source, key: Sequence[str], topics: Mapping[str, Topic]
) -> KeyColumns:
    """Return the paths of the key's columns, which every output must have."""
    what = f"cannot audit job {scope.job!r} by key"
    schemas = scope.flow.schemas()
    paths = []
    for column in key:
        path = split_path(column)
        if path is None:
            raise HeadgateError(
                "UNKNOWN_COLUMN",
                f"{what}: {column!r} is not a column",
                hint=did_you_mean(column, schemas[Port(node.id, "out")].paths),
            )
        paths.append(path)
    outputs = [output for output in scope.flow.outputs() if output.id in topics]
    able = [
        output.id
        for output in outputs
        if all(schemas[output.input].find(column) is not None for column in key)
    ]
    options = " ".join(f"--output {name}" for name in able)
    narrowed = f"headgate audit {scope.job} --source {node.id} --key {','.join(key)} {options}"
    for output in outputs:
        if output.id not in able:
            raise HeadgateError(
                "UNKNOWN_COLUMN",
                f"{what}: output {output.id!r} does not have all of {', '.join(key)}",
                hint=narrowed if able else did_you_mean(key[0], schemas[output.input].paths),
            )
    return KeyColumns(tuple(paths))


def _find_examples(
    source: str,
    columns: KeyColumns,
    findings: KeyFindings,
    read: Input,
    outputs: Iterable[OutputRows],
    meter: Meter,
) -> Iterator[Example]:
    """Yield some keys with problems; only hashes are known, so topics are read again."""
    records = (record.value for record in read.read(meter))
    keys = _find_keys(columns, findings.lost_keys | findings.doubled_keys, records)
    rows = (row.value for output in outputs for row in output.read(Passed(), meter))
    keys |= _find_keys(columns, findings.unknown_keys, rows)
    for kind, hashes in (
        (Kind.LOST, findings.lost_keys),
        (Kind.DOUBLED, findings.doubled_keys),
        (Kind.UNKNOWN, findings.unknown_keys),
    ):
        yield from (Example(kind, source, key=keys[key]) for key in hashes if key in keys)


def _find_keys(
    columns: KeyColumns, wanted: frozenset[int], values: Iterable[bytes | None]
) -> dict[int, tuple[str, ...]]:
    keys: dict[int, tuple[str, ...]] = {}
    if not wanted:
        return keys
    for value in values:
        key = columns.find(value)
        if key is not None and hash_of(key) in wanted:
            keys[hash_of(key)] = key
            if len(keys) == len(wanted):
                break
    return keys


def _keyless(records: int, outputs: Mapping[str, Passed]) -> Iterator[str]:
    if records:
        yield f"{format_count(records)} records of the input have no key, and were not audited"
    for name, passed in outputs.items():
        if passed.keyless:
            yield f"{format_count(passed.keyless)} rows of {name!r} have no key"


def _by_design(scope: Scope, node: Source) -> list[str]:
    """Return why the flow drops or copies keys on purpose."""
    readable = [output.id for output in scope.flow.outputs() if find_audit(output.topic)]
    shape = shape_of(scope.flow, node.id, shows_places=readable, dead_letters_show=True)
    return [f"by design of the flow, {reason}" for reason in (*shape.unseen, *shape.copied)]
