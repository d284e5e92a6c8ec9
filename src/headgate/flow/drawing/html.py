"""What a notebook shows of a flow's values: small tables, in which all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any

from headgate.flow.schemas.schema import Schema
from headgate.flow.schemas.types import type_to_ddl

_CELL = "text-align:left;vertical-align:top;padding:2px 10px;font-variant-numeric:tabular-nums"


def heading(text: str, more: str = "") -> str:
    """Return a line above something: a name, and what it is."""
    return f"<div><b>{escape(text)}</b> {escape(more)}</div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def show_part(part: Any, kind: str) -> str:
    """Return a part of a flow: a stream or a table with its columns, or the outputs of an operator.

    Args:
        part: A stream, a table, or a dataclass with streams.
        kind: What it is: "a stream".
    """
    if hasattr(type(part), "schema"):
        return heading(_name(part), kind) + _columns(part.schema)
    named = {field.name: getattr(part, field.name) for field in fields(part)}
    streams = {name: value for name, value in named.items() if hasattr(type(value), "schema")}
    if not streams:
        return heading(_name(part), kind)
    shown = [heading(f".{name}") + _columns(value.schema) for name, value in streams.items()]
    uid = next(iter(streams.values())).port.node
    return heading(uid, kind) + "".join(shown)


def _name(part: Any) -> str:
    port = getattr(part, "port", None)
    return str(getattr(part, "id", "") if port is None else port)


def _columns(schema: Schema) -> str:
    return table(
        ["column", "type", ""],
        [
            (column.name, type_to_ddl(column.type), "" if column.nullable else "not null")
            for column in schema.fields
        ],
    )
