"""Formats without a schema of their own: JSON, text, bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Json:
    """One JSON object for each row."""

    tag: ClassVar[str] = "json"
    is_binary: ClassVar[bool] = False

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "JSON"


JSON = Json()


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a row's only column; line breaks are written as blanks."""

    tag: ClassVar[str] = "text"
    is_binary: ClassVar[bool] = False

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "text"


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of a column, as they are.

    Attributes:
        column: Outputs: the column that is written; by default the only one.
    """

    column: str | None = None

    tag: ClassVar[str] = "raw"
    is_binary: ClassVar[bool] = True

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "raw bytes"
