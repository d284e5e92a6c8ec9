"""Checks of a process against the rows that it takes."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.errors import HeadgateError
from headgate.flow.checks.keys import check_alike, check_key_columns
from headgate.flow.names import check_side_name, quote
from headgate.flow.operators.nodes import CoProcess, Process, key_names
from headgate.flow.schemas.schema import Schema
from headgate.flow.schemas.types import Field, is_known
from headgate.functions.declared import StateKind


def check_process(node: Process, schema: Schema, *, what: str) -> None:
    """Refuse a process whose key, columns, state or outputs do not fit.

    Args:
        schema: The columns of its events.
        what: Opening words of the error message.
    """
    if not node.key and node.table is not None:
        _check_keyless(node, what)
    elif not node.key:
        raise HeadgateError(
            "KEY_MISMATCH",
            f"{what}: it needs at least one key column",
            hint=f".key_by('userId').process({node.id!r}, ...)",
        )
    check_key_columns(node.key, schema, what=what)
    _check_once(key_names(node), "key columns", what)
    for name in node.columns or ():
        schema.get(quote(name), what=what)
    for side in node.sides:
        check_side_name(side.name)
    _check_once((side.name for side in node.sides), "side outputs", what)
    _check_known(node, what)


def check_right(node: CoProcess, left: Schema, right: Schema, *, what: str) -> None:
    """Refuse two streams that are one, and keys that cannot be compared.

    Args:
        left: The columns of the left stream; `right` those of the right one.
        what: Opening words of the error message.
    """
    if node.input == node.right:
        raise HeadgateError(
            "BAD_CONNECT",
            f"{what}: its left and its right stream are both {str(node.input)!r}",
            hint="connect different streams, such as two branches: orders.where('price > 100')",
        )
    if len(node.key) != len(node.right_key):
        raise HeadgateError(
            "KEY_MISMATCH",
            f"{what}: the key of its left stream has {len(node.key)} columns, and that of its "
            f"right stream {len(node.right_key)}",
            hint="call key_by with as many columns of each stream",
        )
    check_key_columns(node.right_key, right, what=what)
    for path, other in zip(node.key, node.right_key, strict=True):
        check_alike(path, left, other, right, what)
    for name in node.right_columns or ():
        right.get(quote(name), what=what)


def _check_keyless(node: Process, what: str) -> None:
    names = [state.name for state in node.state]
    if names or node.timers:
        kept = f"state {', '.join(map(repr, names))}" if names else "timers"
        raise HeadgateError(
            "KEY_MISMATCH",
            f"{what}: it has {kept}, which belong to a key, and its stream has no key",
            hint=f".key_by('userId').with_broadcast({node.id!r}, ...)",
        )


def _check_once(names: Iterable[str], kind: str, what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise HeadgateError(
                "DUPLICATE_COLUMN",
                f"{what}: two of its {kind} are named {name!r}",
                hint="use another name for one of them; the name of a key column: "
                "key_by('a.id', 'b.id AS b_id')",
            )
        seen.add(name.lower())


def _check_known(node: Process, what: str) -> None:
    """Refuse types that only Spark can determine: a worker is told the types when it starts."""
    schemas = {"out": node.schema, **{side.name: side.schema for side in node.sides}}
    for output, columns in schemas.items():
        _refuse_unknown(columns.fields, f"output {output!r}", what)
    for state in node.state:
        if (state.kind is StateKind.MAP) is (state.key is None):
            raise HeadgateError(
                "BAD_FUNCTION",
                f"{what}: its state {state.name!r} must have keys if it is a map, and only then",
                hint="declare it as MapOf[str, int], ListOf[int] or Value[int]",
            )
        parts = (state.value,) if state.key is None else (state.value, state.key)
        _refuse_unknown(parts, f"state {state.name!r}", what)


def _refuse_unknown(fields: Iterable[Field], place: str, what: str) -> None:
    for field in fields:
        if not is_known(field.type):
            raise HeadgateError(
                "BAD_FUNCTION",
                f"{what}: the type of {field.name!r} in its {place} is not known",
                hint="declare it: a dataclass, or schema='id BIGINT, name STRING'",
            )
