"""Expressions as keys and as arguments of aggregates: columns that are computed before a window."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.errors import HeadgateError
from headgate.flow.names import quote, split_path
from headgate.flow.operators.columns import parse_named
from headgate.flow.operators.nodes import Column
from headgate.flow.schemas.schema import Schema

_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class ComputedColumns:
    """The columns to compute, and the name of the column for each expression.

    Attributes:
        names: By the text that the user wrote; texts that name a column are not in it.
    """

    columns: tuple[Column, ...]
    names: Mapping[str, str]

    def name(self, text: str) -> str:
        """Return the name or the path of the column that a text stands for."""
        return self.names.get(text, text)


def compute_columns(
    texts: Iterable[str], schema: Schema, *, reserved: Sequence[str], what: str
) -> ComputedColumns:
    """Return the columns for those texts that are expressions.

    Args:
        texts: Each a column, a dotted path, "price * 2" or "price * 2 AS total".
        schema: The columns of the rows.
        reserved: Names that no column gets without `AS`.
        what: Opening words of the error message.
    """
    taken = {name.lower() for name in (*schema.names, *reserved)}
    names: dict[str, str] = {}
    columns: list[Column] = []
    for text in texts:
        if text in names or not _is_expression(text, schema):
            continue
        column = parse_named(text) or Column(_free_name(text, taken), text.strip())
        _check_new(column, schema, columns, what)
        taken.add(column.name.lower())
        names[text] = quote(column.name)
        columns.append(column)
    return ComputedColumns(tuple(columns), names)


def _is_expression(text: str, schema: Schema) -> bool:
    """Return False for paths, and for names that lack their backquotes: those are refused later."""
    return bool(text.strip()) and split_path(text) is None and schema.find_column(text) is None


def _free_name(expression: str, taken: set[str]) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", "_", expression).strip("_")[:_LONGEST_NAME].rstrip("_")
    name = f"_{words}" if not words or words[0].isdigit() else words
    number = 2
    free = name
    while free.lower() in taken:
        free = f"{name}_{number}"
        number += 1
    return free


def _check_new(column: Column, schema: Schema, others: Sequence[Column], what: str) -> None:
    names = (*schema.names, *(other.name for other in others))
    if column.name.lower() in (name.lower() for name in names):
        raise HeadgateError(
            "DUPLICATE_COLUMN",
            f"{what}: {column.expression!r} is named {column.name!r}, which is another column",
            hint=f"use another name: {column.expression} AS {column.name}_2",
        )
