"""Broadcasts and the operators that use them: checks of what a user passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError
from headgate.flow.names import check_column_name, quote
from headgate.flow.operators import Label
from headgate.flow.schema import Primitive, Schema, type_to_ddl
from headgate.flow.types import Unknown
from headgate.functions.declared import DeclaredProcess

if TYPE_CHECKING:
    from headgate.flow.builder import Builder


def check_broadcast(table: Any, kind: type, builder: Builder, *, what: str) -> None:
    """Refuse what is not a broadcast of the flow.

    Args:
        kind: The class of broadcasts.
        what: Opening words of the error message.
    """
    if not isinstance(table, kind) or getattr(table, "_builder", None) is not builder:
        raise HeadgateError(
            "TABLE_FOREIGN",
            f"{what}: its rules are not a broadcast of this flow",
            hint="create it with this flow: flow.broadcast('rules', Rule, key='id')",
        )


def check_has_table(declared: DeclaredProcess, table: str | None, *, what: str) -> None:
    """Refuse a process that needs a broadcast and has none, or the other way round."""
    if declared.has_broadcast and table is None:
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: a BroadcastProcess needs a broadcast",
            hint=".with_broadcast('apply', rules, Apply()), with "
            "rules = flow.broadcast('rules', Rule, key='id')",
        )
    if table is not None and not declared.has_broadcast:
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: with_broadcast needs a BroadcastProcess, got a KeyedProcess",
            hint="derive the class from headgate.BroadcastProcess[Order, Rule, Priced]",
        )


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
