"""Checks of formats against the columns that they read or write."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import HeadgateError
from headgate.flow.formats.changes import Debezium, Upsert
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.format import Format, FormattedTopic
from headgate.flow.formats.plain import Raw, Text
from headgate.flow.names import did_you_mean, quote, split_path
from headgate.flow.operators.nodes import Source, SourceKind
from headgate.flow.schemas.schema import Field, Primitive, Schema, type_to_ddl
from headgate.flow.schemas.types import MISSING, Unknown


def check_source_format(source: Source, *, what: str) -> None:
    """Refuse a source whose format cannot read its columns."""
    schema = _own_schema(source, what)
    match source.format:
        case Text() | Raw():
            if source.kind is SourceKind.TABLE:
                raise HeadgateError(
                    "BAD_FORMAT",
                    f'{what}: format "{source.format.tag}" has one column, and a table needs a '
                    "key and values",
                    hint='use format="json"',
                )
            _check_single(source.format, schema, "BAD_FORMAT", what, hint=_SOURCE_HINTS)
        case Csv():
            _check_flat(schema, "BAD_FORMAT", what, hint='use format="json"')
            _check_fields(source.format, schema, what)
        case Debezium() if source.kind is SourceKind.TABLE:
            _check_changes(source, source.format, what)
        case Upsert():
            raise HeadgateError(
                "BAD_FORMAT",
                f'{what}: format "upsert" is for outputs',
                hint='read such a topic with flow.table(..., format="json")',
            )


def _own_schema(source: Source, what: str) -> Schema:
    """Return the columns that records have themselves, without those of folders."""
    topic = source.topic
    columns = topic.columns if isinstance(topic, FormattedTopic) else ()
    if isinstance(topic, FormattedTopic) and source.format != topic.own_format:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: {topic.describe()} has the format {topic.own_format.describe()}, "
            f"got {source.format.describe()}",
            hint="give the format to the topic alone; a format in Python reads no files",
        )
    for column in columns:
        if column not in source.schema.names:
            raise HeadgateError(
                "BAD_FORMAT",
                f"{what}: {topic.describe()} has partitions by {column!r}, which is not a column "
                "of its schema",
                hint=did_you_mean(column, source.schema.names),
            )
    return Schema(tuple(field for field in source.schema.fields if field.name not in columns))


def check_output_format(form: Format, schema: Schema, *, key: str | None, what: str) -> None:
    """Refuse rows that a format cannot write."""
    match form:
        case Raw(column=str() as column):
            _check_picked(schema.get(quote(column), what=what), what)
        case Text() | Raw():
            _check_single(form, schema, "BAD_OUTPUT", what, hint=_OUTPUT_HINTS)
        case Csv():
            hint = 'select the values in it: .select("user.id AS user_id"), or use format="json"'
            _check_flat(schema, "BAD_OUTPUT", what, hint=hint)
            _check_named(form.columns, schema, what)
            _check_null(form, schema, what)
        case Debezium():
            raise HeadgateError(
                "BAD_FORMAT",
                f'{what}: format "debezium" is for sources',
                hint='write changes with format="upsert"',
            )
        case Upsert():
            _check_upsert(form, schema, key, what)


def _check_changes(table: Source, form: Debezium, what: str) -> None:
    if form.op is not None:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: Debezium(op={form.op!r}) adds a column to a stream, and a table has rows",
            hint='use format="debezium", or read the topic as a stream',
        )
    if table.version is not None:
        raise HeadgateError(
            "BAD_VERSION",
            f'{what}: format "debezium" orders changes by the log of the database, and version is '
            f"{table.version!r}",
            hint="omit version",
        )


def _check_upsert(form: Upsert, schema: Schema, key: str | None, what: str) -> None:
    names = [field.name for field in schema.fields]
    if key is None:
        raise HeadgateError(
            "BAD_OUTPUT",
            f'{what}: format "upsert" needs a key, of which the last row counts',
            hint=f'name the column: .to(..., key="{names[0]}", format="upsert")',
        )
    path = split_path(key)
    if path is None or len(path) != 1 or path[0] not in names:
        raise HeadgateError(
            "BAD_OUTPUT",
            f'{what}: the key of format "upsert" must be a column of its rows, got {key!r}',
            hint="select it first: .with_columns(id='user.id'), then key='id'",
        )
    if form.deleted is None:
        return
    column = schema.find_column(form.deleted)
    if column is None:
        raise HeadgateError(
            "BAD_OUTPUT",
            f"{what}: deleted {form.deleted!r} is not a column of its rows",
            hint=did_you_mean(form.deleted, names),
        )
    if form.deleted == path[0] or column.type not in (Primitive("boolean"), Unknown()):
        raise HeadgateError(
            "BAD_OUTPUT",
            f"{what}: deleted {form.deleted!r} must be a boolean column, and not the key, got "
            f"{type_to_ddl(column.type)}",
            hint="compute it first: .with_columns(gone=\"op = 'd'\"), then Upsert(deleted='gone')",
        )


_WANTED = {"text": "string", "raw": "binary"}
_SOURCE_HINTS = {"text": 'use "line STRING"', "raw": 'use "record BINARY NOT NULL"'}
_OUTPUT_HINTS = {
    "text": "build the text first: .select(\"concat(a, ' ', b) AS line\"), then .to(...)",
    "raw": 'select the bytes first: .select("payload"), then .to(...)',
}


def _check_single(
    form: Text | Raw, schema: Schema, code: str, what: str, *, hint: dict[str, str]
) -> None:
    types = [field.type for field in schema.fields]
    wanted = _WANTED[form.tag]
    if len(types) != 1 or types[0] not in (Primitive(wanted), Unknown()):
        raise HeadgateError(
            code,
            f'{what}: format "{form.tag}" needs exactly one {wanted} column, and the rows have '
            f"{schema.to_ddl()}",
            hint=hint[form.tag],
        )


def _check_picked(column: Field, what: str) -> None:
    if column.type not in (Primitive("binary"), Unknown()):
        raise HeadgateError(
            "BAD_OUTPUT",
            f'{what}: format "raw" writes a binary column, and {column.name!r} is '
            f"{type_to_ddl(column.type)}",
            hint=f"cast it first: .with_columns({column.name}='CAST({column.name} AS BINARY)')",
        )


def _check_flat(schema: Schema, code: str, what: str, *, hint: str) -> None:
    for field in schema.fields:
        if not isinstance(field.type, Primitive | Unknown):
            raise HeadgateError(
                code,
                f'{what}: column {field.name!r} is {type_to_ddl(field.type)}, and format "csv" '
                "has single values only",
                hint=hint,
            )


def _check_fields(form: Csv, schema: Schema, what: str) -> None:
    """Refuse records without a value for a column that needs one."""
    for field in schema.fields:
        if form.columns and field.name not in form.columns and not _may_lack(field):
            raise HeadgateError(
                "BAD_FORMAT",
                f"{what}: column {field.name!r} must not be null, and it is not among the columns "
                f"of its records: {', '.join(form.columns)}",
                hint=did_you_mean(field.name, form.columns),
            )


def _may_lack(field: Field) -> bool:
    return field.nullable or field.default is not MISSING


def _check_named(columns: Sequence[str], schema: Schema, what: str) -> None:
    """Refuse columns that are not all those of the rows: none is left out in silence."""
    if columns and sorted(columns) != sorted(schema.names):
        raise HeadgateError(
            "BAD_OUTPUT",
            f"{what}: the columns of its format are {', '.join(columns)}, and those of the rows "
            f"are {', '.join(schema.names)}",
            hint=f"select them first: .select({', '.join(map(repr, columns))})",
        )


def _check_null(form: Csv, schema: Schema, what: str) -> None:
    """Refuse rows of which a null would be a record without a character."""
    if len(schema.fields) == 1 and schema.fields[0].nullable and not form.nulls.strip():
        raise HeadgateError(
            "BAD_OUTPUT",
            f"{what}: its only column {schema.names[0]!r} may be null, which would be a blank "
            "record",
            hint="use format=Csv(nulls='NULL') of headgate.formats",
        )
