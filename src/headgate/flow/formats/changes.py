"""Formats of change data: rows that are inserted, updated and deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.errors import HeadgateError
from headgate.flow.names import check_column_name
from headgate.flow.schemas.schema import Field, Primitive, Schema

_UNITS = ("ms", "us", "ns")
_DECIMALS = ("digits", "base64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Debezium:
    """Changes of a database's rows in Debezium's JSON envelope; for sources.

    A table is ordered by the database's log. A stream has the row after each change, and the row
    before each deletion.

    Attributes:
        op: Streams: the name of an extra string column with the operation: "c" (create), "u"
            (update), "d" (delete) or "r" (read in a snapshot).
        timestamps: The unit of timestamps that are numbers, in records without a schema: "ms",
            "us" or "ns".
        decimals: What the text of a decimal is in records without a schema: "digits" or "base64",
            whose scale is that of the column.
    """

    op: str | None = None
    timestamps: str | None = None
    decimals: str = "digits"

    tag: ClassVar[str] = "debezium"
    is_binary: ClassVar[bool] = False
    can_write: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.op is not None:
            check_column_name(self.op)
        if self.timestamps not in (None, *_UNITS):
            raise _not_one_of("timestamps", self.timestamps, _UNITS)
        if self.decimals not in _DECIMALS:
            raise _not_one_of("decimals", self.decimals, _DECIMALS)

    def columns(self, schema: Schema, *, what: str) -> Schema:
        """Return the columns of a stream: those of its rows and the operation.

        Args:
            what: Opening words of the error message.
        """
        if self.op is None:
            return schema
        if self.op.lower() in (name.lower() for name in schema.names):
            raise HeadgateError(
                "DUPLICATE_COLUMN",
                f"{what}: op {self.op!r} is already a column of its schema",
                hint=f"use another name: Debezium(op='{self.op}_of_change')",
            )
        return schema.with_fields(Field(self.op, Primitive("string"), nullable=False))

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "Debezium"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """JSON rows by key, of which the last one counts, and tombstones; for outputs.

    Attributes:
        deleted: A boolean column: a row in which it is true is written as a tombstone. It is not
            written itself.
    """

    deleted: str | None = None

    tag: ClassVar[str] = "upsert"
    is_binary: ClassVar[bool] = False
    can_read: ClassVar[bool] = False

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "upserts"


def _not_one_of(option: str, value: object, known: tuple[str, ...]) -> HeadgateError:
    return HeadgateError(
        "BAD_FORMAT",
        f"cannot use Debezium({option}={value!r}): {option} must be one of {', '.join(known)}",
        hint=f"use Debezium({option}={known[0]!r})",
    )
