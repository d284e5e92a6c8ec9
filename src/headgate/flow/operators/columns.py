"""Columns as a user writes them: a name, a dotted path, or an expression AS a name."""

from __future__ import annotations

import re
from dataclasses import replace

from headgate.errors import HeadgateError
from headgate.flow.names import split_path, unquote
from headgate.flow.operators.nodes import Column
from headgate.flow.schemas.schema import Field, Schema, Unknown

_NAMED = re.compile(
    r"\s*(?P<expression>.*\S)\s+AS\s+(?P<name>[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`)\s*",
    re.IGNORECASE | re.DOTALL,
)
# SQL words that are values by themselves and may stand in place of a column.
_WORDS = frozenset(
    {
        "null",
        "true",
        "false",
        "current_date",
        "current_timestamp",
        "current_time",
        "current_user",
        "current_catalog",
        "current_database",
        "current_schema",
        "localtimestamp",
        "session_user",
    }
)


def parse_column(text: str, *, what: str) -> Column:
    """Return the column that `text` describes.

    Args:
        text: "user", "user.firstName" or "price * 2 AS total".
        what: Opening words of the error message.
    """
    check_expression(text, what=what)
    parts = split_path(text.strip())
    if parts is not None:
        return Column(parts[-1], text.strip())
    named = parse_named(text)
    if named is None:
        raise HeadgateError(
            "COLUMN_UNNAMED",
            f"{what}: expression {text!r} has no name",
            hint=f"add a name: {text.strip()} AS my_name",
        )
    return named


def parse_named(text: str) -> Column | None:
    """Return the column of an expression with a name, "price * 2 AS total"; None without one."""
    match = _NAMED.fullmatch(text)
    return None if match is None else Column(unquote(match["name"]), match["expression"])


def check_expression(text: str, *, what: str) -> str:
    """Return `text` if it is not blank; only Spark can check the SQL itself."""
    if not isinstance(text, str) or not text.strip():
        raise HeadgateError(
            "BAD_EXPRESSION",
            f"{what}: {text!r} is not a SQL expression",
            hint="write SQL as text: 'price * 2' or 'price > 10'",
        )
    return text


def check_names_in(expression: str, schema: Schema, *, what: str) -> None:
    """Refuse an expression that is a plain column name or path if no such column exists."""
    path = expression.strip()
    if split_path(path) is not None and path.lower() not in _WORDS:
        schema.get(path, what=what)


def field_of(column: Column, schema: Schema) -> Field:
    """Return the field of a column; its type is unknown unless the column is a plain path."""
    field = schema.find(column.expression)
    return replace(field, name=column.name) if field else Field(column.name, Unknown(), True)
