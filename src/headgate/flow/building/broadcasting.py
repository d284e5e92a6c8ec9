"""Checks of the broadcasts that users pass to operators."""

from __future__ import annotations

from typing import Any

from headgate.errors import HeadgateError
from headgate.flow.building.builder import Builder
from headgate.functions.declared import DeclaredProcess


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
