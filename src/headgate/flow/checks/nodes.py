"""Checks of a single node against the nodes before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.errors import HeadgateError
from headgate.flow.checks.formats import check_output_format, check_source_format
from headgate.flow.checks.joins import check_join
from headgate.flow.checks.keys import check_key_columns, no_key
from headgate.flow.checks.labels import check_label
from headgate.flow.checks.processes import check_process, check_right
from headgate.flow.formats.format import PartitionedTopic
from headgate.flow.graph.ancestry import count_multipliers, feeds_table, sources_of, upstream_nodes
from headgate.flow.graph.unions import check_union
from headgate.flow.names import check_column_name, check_function, check_uid, did_you_mean, quote
from headgate.flow.operators.aggregates import NamedAggregate, result_field
from headgate.flow.operators.columns import check_expression, check_names_in
from headgate.flow.operators.event_time import check_event_time, get_column
from headgate.flow.operators.nodes import (
    FAILURE,
    RESULT_COLUMNS,
    AsyncCall,
    Call,
    CallNode,
    Column,
    CoProcess,
    Dedupe,
    Enrich,
    Filter,
    Join,
    Label,
    Node,
    Output,
    Port,
    Process,
    Rebalance,
    Select,
    Source,
    SourceKind,
    Transform,
    Union,
    Where,
    Window,
    WithColumns,
    input_ports,
    key_names,
    label,
)
from headgate.flow.schemas.schema import Primitive, Schema, key_kind, type_to_ddl
from headgate.flow.schemas.types import INTEGERS
from headgate.flow.topics import check_stream

Nodes = Mapping[str, Node]
# The kernel numbers the rows made of one record in three places of 20 bits.
_MOST_MULTIPLIERS = 3
Schemas = Mapping[Port, Schema]


def check_node(node: Node, nodes: Nodes, schemas: Schemas, *, what: str) -> None:
    """Refuse a node that does not fit the nodes before it.

    Args:
        node: The node to add.
        nodes: The nodes before it, by id.
        schemas: The schemas of their ports.
        what: Opening words of the error message: "cannot add enrich 'x' to flow 'y'".
    """
    _check_inputs(node, nodes, schemas, what)
    match node:
        case Source():
            _check_source(node, what)
        case Enrich():
            check_uid(node.id)
            _check_enrich(node, nodes, schemas, what)
        case Window():
            check_uid(node.id)
            _check_window(node, nodes, schemas[node.input], what)
        case Dedupe():
            check_uid(node.id)
            _check_dedupe(node, nodes, schemas[node.input], what)
        case Join():
            check_uid(node.id)
            _check_timed(node, nodes, what)
            check_join(node, schemas[node.input], schemas[node.right], what=what)
            _check_multipliers(node, nodes, what)
        case Label(table=table):
            check_uid(node.id)
            check_label(node, schemas[node.input], schemas[Port(table, "out")], what=what)
        case Process():
            check_uid(node.id)
            check_process(node, schemas[node.input], what=what)
            if isinstance(node, CoProcess):
                check_right(node, schemas[node.input], schemas[node.right], what=what)
            _check_multipliers(node, nodes, what)
        case Union():
            check_union(node, schemas, what=what)
            _check_multipliers(node, nodes, what)
        case Select(input=port, columns=columns) | WithColumns(input=port, columns=columns):
            _check_columns(columns, schemas[port], what)
        case Where(input=port, condition=condition):
            check_expression(condition, what=what)
            check_names_in(condition, schemas[port], what=what)
        case Transform():
            if node.stored is None:
                check_function(node.function)
            _check_no_state_before(node, nodes, what)
        case Call():
            if not isinstance(node, Filter):
                check_uid(node.id)
            _check_call(node, nodes, schemas[node.input], what)
        case Output():
            _check_output(node, schemas[node.input], what)


def is_table(node: Node) -> bool:
    """Return True if a node is the source of a table."""
    return isinstance(node, Source) and node.kind is SourceKind.TABLE


def _check_inputs(node: Node, nodes: Nodes, schemas: Schemas, what: str) -> None:
    for port in input_ports(node):
        wanted = "table" if feeds_table(port, node) else "stream"
        if port not in schemas:
            raise HeadgateError(
                "PORT_UNKNOWN",
                f"{what}: it reads from {str(port)!r}, and no earlier node has that output",
                hint=did_you_mean(str(port), map(str, schemas)),
            )
        actual = "table" if is_table(nodes[port.node]) else "stream"
        if actual != wanted:
            raise HeadgateError(
                "PORT_UNKNOWN",
                f"{what}: it needs a {wanted}, and {str(port)!r} is a {actual}",
                hint=f"pass the output of a {wanted}",
            )


def _check_source(source: Source, what: str) -> None:
    if not source.topic.can_read:
        raise _wrong_way(what, source.topic.describe(), "read")
    if source.kind is SourceKind.STREAM:
        check_stream(source.topic, what)
    check_source_format(source, what=what)
    if source.event_time is not None:
        check_event_time(source.schema, source.event_time, source.event_time_unit, what=what)
    if source.kind is SourceKind.TABLE:
        _check_key(source, what)
    if source.version is not None:
        _check_version(source.schema, source.version, what)
    if source.meta is not None:
        _check_meta(source.schema, source.meta, what)


def _check_output(node: Output, schema: Schema, what: str) -> None:
    if not node.topic.can_write:
        raise _wrong_way(what, node.topic.describe(), "written")
    check_output_format(node.format, _written_columns(node, schema, what), key=node.key, what=what)
    if node.key is not None:
        check_key_columns((node.key,), schema, what=what)


def _written_columns(node: Output, schema: Schema, what: str) -> Schema:
    """Return the columns of records: without those that name folders, which must be there."""
    if not isinstance(node.topic, PartitionedTopic):
        return schema
    folders = node.topic.columns
    for column in folders:
        schema.get(quote(column), what=what)
    written = tuple(field for field in schema.fields if field.name not in folders)
    if not written:
        raise HeadgateError(
            "BAD_OUTPUT",
            f"{what}: all of its columns name folders, and none is left for the files",
            hint="partition by fewer columns",
        )
    return Schema(written)


def _check_key(table: Source, what: str) -> None:
    if not table.key:
        raise HeadgateError("KEY_NOT_IN_SCHEMA", f"{what}: its key is empty", hint="use key='id'")
    if len(set(table.key)) < len(table.key):
        raise HeadgateError(
            "DUPLICATE_COLUMN",
            f"{what}: its key {_listed(table.key)} names the same column twice",
            hint="name each column of the key once",
        )
    for name in table.key:
        column = table.schema.find_column(name)
        if column is None:
            raise HeadgateError(
                "KEY_NOT_IN_SCHEMA",
                f"{what}: its key {name!r} is not a column of its schema",
                hint=did_you_mean(name, table.schema.names),
            )
        if key_kind(column.type) is None:
            raise no_key(name, type_to_ddl(column.type), what)


def _check_meta(schema: Schema, name: str, what: str) -> None:
    check_column_name(name)
    if name.lower() in (column.lower() for column in schema.names):
        raise HeadgateError(
            "DUPLICATE_COLUMN",
            f"{what}: meta {name!r} is already a column of its schema",
            hint=f"use another name: meta='{name}_record'",
        )


def _check_version(schema: Schema, name: str, what: str) -> None:
    column = get_column(schema, name, what=what)
    name_of_type = column.type.name if isinstance(column.type, Primitive) else ""
    if name_of_type not in INTEGERS | {"timestamp"}:
        raise HeadgateError(
            "BAD_VERSION",
            f"{what}: version {name!r} must be an integer or a timestamp, got "
            f"{type_to_ddl(column.type)}",
            hint="name an integer or timestamp column, or omit version",
        )


def _check_enrich(node: Enrich, nodes: Nodes, schemas: Schemas, what: str) -> None:
    events, table = schemas[node.input], nodes[node.table]
    assert isinstance(table, Source), "the inputs were checked before"
    if len(node.on) != len(table.key):
        raise HeadgateError(
            "KEY_MISMATCH",
            f"{what}: on is {_listed(node.on)}, "
            f"and the key of table {table.id!r} is {_listed(table.key)}",
            hint="name one column for each key column, in the order of the key",
        )
    for path, key in zip(node.on, table.key, strict=True):
        column, key_field = events.get(path, what=what), table.schema.find_column(key)
        assert key_field is not None, "the table's key was checked when it was added"
        actual, needed = key_kind(column.type), key_kind(key_field.type)
        if actual is None:
            raise no_key(path, type_to_ddl(column.type), what)
        if actual != needed and "unknown" not in (actual, needed):
            raise HeadgateError(
                "KEY_MISMATCH",
                f"{what}: {path!r} is {type_to_ddl(column.type)}, and the key {key!r} of table "
                f"{table.id!r} is {type_to_ddl(key_field.type)}",
                hint=f"cast it first: with_columns({key}='CAST({path} AS "
                f"{type_to_ddl(key_field.type)})'), then on={key!r}",
            )
    check_column_name(node.into)
    if node.into.lower() in (name.lower() for name in events.names):
        raise HeadgateError(
            "DUPLICATE_COLUMN",
            f"{what}: into {node.into!r} is already a column of its events",
            hint=f"use another name: into='{node.into}_row'",
        )


def _check_columns(columns: Sequence[Column], schema: Schema, what: str) -> None:
    if not columns:
        raise HeadgateError(
            "NO_COLUMNS", f"{what}: it needs at least one column", hint="name one or more columns"
        )
    seen: set[str] = set()
    for column in columns:
        check_expression(column.expression, what=what)
        check_names_in(column.expression, schema, what=what)
        if column.name.lower() in seen:
            raise HeadgateError(
                "DUPLICATE_COLUMN",
                f"{what}: two columns are named {column.name!r}",
                hint=f"rename one: {column.expression} AS {column.name}_2",
            )
        seen.add(column.name.lower())


def _check_no_state_before(node: Transform, nodes: Nodes, what: str) -> None:
    for above in upstream_nodes(nodes.__getitem__, node):
        if above.stateful or isinstance(above, Rebalance):
            # The planner would have to split the stream there, and Spark runs a stateful operator
            # once per branch below it.
            raise HeadgateError(
                "TRANSFORM_AFTER_STATE",
                f"{what}: a transform must come before the first operator with state and before "
                f"rebalance, and it comes after {above.operator} {above.id!r}",
                hint="call transform before the first enrich, or use with_columns or where",
            )


def _check_call(node: CallNode, nodes: Nodes, schema: Schema, what: str) -> None:
    for name in node.columns or ():
        schema.get(quote(name), what=what)
    _check_multipliers(node, nodes, what)
    if isinstance(node, AsyncCall) and FAILURE in (name.lower() for name in schema.names):
        raise HeadgateError(
            "DUPLICATE_COLUMN",
            f"{what}: its rows have a column {FAILURE!r}, where .failed has the error",
            hint=f"rename it first: .with_columns(problem={FAILURE!r}).select(...)",
        )


def _check_multipliers(node: CallNode | Join | Process | Union, nodes: Nodes, what: str) -> None:
    """Refuse a fourth operator that makes several rows of one record."""
    if count_multipliers(nodes.__getitem__, node) > _MOST_MULTIPLIERS:
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: it is the fourth flat_map, map_batches, join, process or union of branches "
            "behind each other, and the rows of a record are numbered through three",
            hint="join two of them into one function",
        )


def _check_window(node: Window, nodes: Nodes, schema: Schema, what: str) -> None:
    """Refuse a window without event time or with columns that do not fit."""
    _check_timed(node, nodes, what)
    check_key_columns(node.key, schema, what=what)
    if not node.aggregates:
        raise HeadgateError(
            "BAD_AGGREGATE",
            f"{what}: it has no aggregates",
            hint="add an aggregate: .aggregate(events=count())",
        )
    for named in node.aggregates:
        _check_aggregate(named, schema, what)
    _check_names(node, what)


def _check_dedupe(node: Dedupe, nodes: Nodes, schema: Schema, what: str) -> None:
    """Refuse a dedupe without event time, or by columns that cannot be a key."""
    _check_timed(node, nodes, what)
    if not node.by:
        raise HeadgateError(
            "KEY_MISMATCH", f"{what}: by must name at least one column", hint="use by='event_id'"
        )
    check_key_columns(node.by, schema, what=what)


def _check_timed(node: Window | Dedupe | Join, nodes: Nodes, what: str) -> None:
    for source in sources_of(nodes.__getitem__, node):
        if source.event_time is None:
            topic = source.topic.name
            raise HeadgateError(
                "EVENT_TIME_MISSING",
                f"{what}: {label(source)} has no event_time",
                hint=f"name the column: flow.stream({topic!r}, ..., event_time='createdAt')",
            )


def _check_aggregate(named: NamedAggregate, schema: Schema, what: str) -> None:
    check_column_name(named.name)
    path = named.aggregate.column
    column = None if path is None else schema.get(path, what=what)
    if result_field(named, column) is None:
        actual = "rows without a column" if column is None else type_to_ddl(column.type)
        raise HeadgateError(
            "BAD_AGGREGATE",
            f"{what}: {named.aggregate.describe()} does not work on {actual}",
            hint="use a column of a supported type, or create one with with_columns",
        )


def _check_names(node: Window, what: str) -> None:
    names = [*RESULT_COLUMNS, *key_names(node)]
    names += [named.name for named in node.aggregates]
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise HeadgateError(
                "DUPLICATE_COLUMN",
                f"{what}: two of its result columns are named {name!r}",
                hint=f"rename one: with_columns({name}_2='...') and key_by('{name}_2'), or use "
                "another name in aggregate",
            )
        seen.add(name.lower())


def _wrong_way(what: str, topic: str, verb: str) -> HeadgateError:
    return HeadgateError(
        "TOPIC_WRONG_WAY",
        f"{what}: {topic} cannot be {verb}",
        hint=f"use a topic that can be {verb}: a name, or Files(...)",
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "empty"
