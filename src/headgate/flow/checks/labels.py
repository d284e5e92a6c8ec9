"""Checks of the labels that rules give to events."""

from __future__ import annotations

from headgate.errors import HeadgateError
from headgate.flow.names import check_column_name, quote
from headgate.flow.operators.nodes import Label
from headgate.flow.schemas.schema import Primitive, Schema, type_to_ddl
from headgate.flow.schemas.types import Unknown


def check_label(node: Label, events: Schema, rules: Schema, *, what: str) -> None:
    """Refuse columns that do not exist or do not fit.

    Args:
        events: The columns of the events; `rules` those of the rules.
        what: Opening words of the error message.
    """
    when = rules.get(quote(node.when), what=what)
    if when.type not in (Primitive("string"), Unknown()):
        raise HeadgateError(
            "BAD_EXPRESSION",
            f"{what}: when {node.when!r} must be a string, got {type_to_ddl(when.type)}",
            hint="name the column of a rule that has its condition as SQL: when='when'",
        )
    rules.get(quote(node.label), what=what)
    check_column_name(node.into)
    if node.into.lower() in (name.lower() for name in events.names):
        raise HeadgateError(
            "DUPLICATE_COLUMN",
            f"{what}: into {node.into!r} is already a column of its events",
            hint=f"use another name: into='{node.into}_2'",
        )
