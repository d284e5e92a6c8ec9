"""Checks of formats against the columns that they read or write."""

from __future__ import annotations

from headgate.errors import HeadgateError
from headgate.flow.formats.format import Format
from headgate.flow.formats.plain import Text
from headgate.flow.operators.nodes import Source, SourceKind
from headgate.flow.schemas.schema import Primitive, Schema
from headgate.flow.schemas.types import Unknown


def check_source_format(source: Source, *, what: str) -> None:
    """Refuse a source whose format cannot read its columns."""
    match source.format:
        case Text():
            if source.kind is SourceKind.TABLE:
                raise HeadgateError(
                    "BAD_FORMAT",
                    f'{what}: format "text" has one column, and a table needs a key and values',
                    hint='use format="json"',
                )
            _check_text(source.schema, "BAD_FORMAT", what, hint='use "line STRING"')


def check_output_format(form: Format, schema: Schema, *, what: str) -> None:
    """Refuse rows that a format cannot write."""
    match form:
        case Text():
            hint = "build the text first: .select(\"concat(a, ' ', b) AS line\"), then .to(...)"
            _check_text(schema, "BAD_OUTPUT", what, hint=hint)


def _check_text(schema: Schema, code: str, what: str, *, hint: str) -> None:
    types = [field.type for field in schema.fields]
    if len(types) != 1 or types[0] not in (Primitive("string"), Unknown()):
        raise HeadgateError(
            code,
            f'{what}: format "text" needs exactly one string column, and the rows have '
            f"{schema.to_ddl()}",
            hint=hint,
        )
