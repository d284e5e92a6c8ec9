"""Checks of the columns of a key."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import HeadgateError
from headgate.flow.schemas.schema import Schema, key_kind, type_to_ddl


def check_key_columns(paths: Sequence[str], schema: Schema, *, what: str) -> None:
    """Refuse paths to columns that do not exist or cannot be a key.

    Args:
        what: Opening words of the error message.
    """
    for path in paths:
        column = schema.get(path, what=what)
        if key_kind(column.type) is None:
            raise no_key(path, type_to_ddl(column.type), what)


def check_alike(path: str, left: Schema, other: str, right: Schema, what: str) -> None:
    """Refuse key columns of two streams whose values can never be equal."""
    own, others = left.get(path, what=what).type, right.get(other, what=what).type
    kinds = (key_kind(own), key_kind(others))
    if kinds[0] != kinds[1] and "unknown" not in kinds:
        ddl = type_to_ddl(own)
        raise HeadgateError(
            "KEY_MISMATCH",
            f"{what}: {path!r} of the left stream is {ddl}, and {other!r} of the right one is "
            f"{type_to_ddl(others)}",
            hint=f"cast it first: with_columns({other}='CAST({other} AS {ddl})')",
        )


def no_key(name: str, ddl: str, what: str) -> HeadgateError:
    """Return the error for a column that cannot be a key."""
    return HeadgateError(
        "KEY_TYPE",
        f"{what}: {name!r} is {ddl}, which cannot be a key",
        hint="use an integer, string, boolean, date, timestamp or decimal column",
    )
