"""Checks of a join against the two streams that it reads."""

from __future__ import annotations

from headgate.errors import HeadgateError
from headgate.flow.checks.keys import check_alike, check_key_columns
from headgate.flow.names import check_column_name
from headgate.flow.operators.nodes import Join
from headgate.flow.schemas.schema import Schema


def check_join(node: Join, left: Schema, right: Schema, *, what: str) -> None:
    """Refuse a join of a stream with itself, and columns that cannot be compared.

    Args:
        left: The columns of the left stream; `right` those of the right one.
        what: Opening words of the error message.
    """
    if node.input == node.right:
        raise HeadgateError(
            "BAD_JOIN",
            f"{what}: its left and its right stream are both {str(node.input)!r}",
            hint="join different streams, such as two branches: orders.where('price > 100')",
        )
    if not node.on or len(node.on) != len(node.right_on):
        raise HeadgateError(
            "KEY_MISMATCH",
            f"{what}: on has {len(node.on)} columns, and right_on has {len(node.right_on)}",
            hint="name as many columns of each stream, at least one: on='id', right_on='orderId'",
        )
    check_key_columns(node.on, left, what=what)
    check_key_columns(node.right_on, right, what=what)
    for path, other in zip(node.on, node.right_on, strict=True):
        check_alike(path, left, other, right, what)
    check_column_name(node.into)
    if node.into.lower() in (name.lower() for name in left.names):
        raise HeadgateError(
            "DUPLICATE_COLUMN",
            f"{what}: into {node.into!r} is already a column of its left stream",
            hint=f"use another name: into='{node.into}_row'",
        )
