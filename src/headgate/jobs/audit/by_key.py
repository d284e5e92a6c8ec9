"""An audit by key: how often each key is in the input against how often it is in the outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from headgate._units import format_count
from headgate.connectors.audit import Input, Meter, OutputRows, Passed
from headgate.connectors.registry import find_audit, get_audit
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean, split_path
from headgate.flow.operators import Port, Source
from headgate.flow.topics import Topic
from headgate.jobs.audit.by_position import read_letters
from headgate.jobs.audit.counts.key_tally import KeyTally
from headgate.jobs.audit.counts.keys import KeyColumns, KeyFindings, hash_of
from headgate.jobs.audit.report import Audit, By, Example, Kind, OutputAudit
from headgate.jobs.audit.scope import Scope
from headgate.jobs.audit.shape import outputs_of, shape_of


def audit_keys(
    scope: Scope, node: Source, key: Sequence[str], outputs: Sequence[str], meter: Meter
) -> Audit:
    """Return which keys of a stream are lost and which are there too often.

    Args:
        key: The columns that tell records apart; dotted paths work.
        outputs: Those that are looked at; all that the stream's rows may be in, and the dead
            letters, where left out.

    Raises:
        HeadgateError: UNKNOWN_COLUMN, NODE_UNKNOWN, TOPIC_WRONG_WAY, AUDIT_INPUT_GONE; what
            reading raises.
    """
    topics = _choose(scope, node, outputs)
    columns = _columns(scope, node, key, topics)
    read = _open(scope, node)
    opened = {name: get_audit(topic).open_rows(scope, topic) for name, topic in topics.items()}
    tally = KeyTally(columns, node.id, read)
    passed = {name: _take(scope, name, rows, tally, meter) for name, rows in opened.items()}
    tally.expect(read.read(meter))
    found = tally.compare()
    result = tally.result(found)
    examples = (
        *_find_examples(node.id, columns, found, read, opened.values(), meter),
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
        outputs={name: OutputAudit(**asdict(each)) for name, each in passed.items()},
        examples=examples,
        notes=tuple(notes),
    )


def _take(scope: Scope, name: str, rows: OutputRows, tally: KeyTally, meter: Meter) -> Passed:
    passed = Passed()
    found = rows.read(passed, meter)
    if name == scope.flow.dead_letters.name:
        for source, letter, row in read_letters(scope, found):
            tally.take_letter(source, letter, row, passed)
    else:
        for row in found:
            tally.take(row, passed)
    return passed


def _choose(scope: Scope, node: Source, wanted: Sequence[str]) -> dict[str, Topic]:
    flow = scope.flow
    letters = flow.dead_letters
    there_are = {each.id: each.topic for each in outputs_of(flow, node.id)}
    there_are[letters.name] = letters
    for name in wanted:
        if name not in there_are:
            raise HeadgateError(
                "NODE_UNKNOWN",
                f"cannot audit output {name!r} of job {scope.job!r}: rows of {node.id!r} are "
                f"written to {', '.join(there_are)}",
                hint=did_you_mean(name, there_are),
            )
        if find_audit(there_are[name]) is None:
            raise HeadgateError(
                "TOPIC_WRONG_WAY",
                f"cannot audit output {name!r} of job {scope.job!r}: it goes to "
                f"{there_are[name].describe()}, which cannot be read",
                hint=f"headgate audit {scope.job} --key COLUMN --output {letters.name}",
            )
    names = wanted or [name for name, topic in there_are.items() if find_audit(topic) is not None]
    return {name: there_are[name] for name in names}


def _columns(
    scope: Scope, node: Source, key: Sequence[str], topics: Mapping[str, Topic]
) -> KeyColumns:
    """Return the way to the key's columns, which every output must have."""
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
    outputs = [each for each in scope.flow.outputs() if each.id in topics]
    able = [
        each.id
        for each in outputs
        if all(schemas[each.input].find(column) is not None for column in key)
    ]
    for each in outputs:
        if each.id not in able:
            raise HeadgateError(
                "UNKNOWN_COLUMN",
                f"{what}: output {each.id!r} does not have all of {', '.join(key)}",
                hint=_narrowed(scope, node, key, able)
                if able
                else did_you_mean(key[0], schemas[each.input].paths),
            )
    return KeyColumns(tuple(paths))


def _narrowed(scope: Scope, node: Source, key: Sequence[str], outputs: Sequence[str]) -> str:
    options = " ".join(f"--output {name}" for name in outputs)
    return f"headgate audit {scope.job} --source {node.id} --key {','.join(key)} {options}"


def _open(scope: Scope, node: Source) -> Input:
    end = scope.ends[node.id]
    if end is None:
        return Input(node.topic.name)
    return get_audit(node.topic).open_input(scope.job, node.topic, scope.begins[node.id], end)


def _find_examples(
    source: str,
    columns: KeyColumns,
    found: KeyFindings,
    read: Input,
    outputs: Iterable[OutputRows],
    meter: Meter,
) -> Iterator[Example]:
    """Yield some keys; what was counted by hash is read again, until they are found."""
    records = (record.value for record in read.read(meter))
    keys = _find_keys(columns, found.lost_keys | found.doubled_keys, records)
    rows = (row.value for each in outputs for row in each.read(Passed(), meter))
    keys |= _find_keys(columns, found.unknown_keys, rows)
    for kind, hashes in (
        (Kind.LOST, found.lost_keys),
        (Kind.DOUBLED, found.doubled_keys),
        (Kind.UNKNOWN, found.unknown_keys),
    ):
        yield from (Example(kind, source, key=keys[each]) for each in hashes if each in keys)


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
        yield f"{format_count(records)} records of the input have no key, and were not judged"
    for name, passed in outputs.items():
        if passed.keyless:
            yield f"{format_count(passed.keyless)} rows of {name!r} have no key"


def _by_design(scope: Scope, node: Source) -> list[str]:
    """Return what in the flow makes keys vanish or multiply on purpose."""
    readable = [each.id for each in scope.flow.outputs() if find_audit(each.topic) is not None]
    shape = shape_of(scope.flow, node.id, shows_places=readable, dead_letters_show=True)
    reasons = (*shape.unseen, *shape.copied)
    return [f"by design of the flow, {each}" for each in reasons]
