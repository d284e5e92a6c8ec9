"""Formats of whole files, which contain a schema: Parquet, ORC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Parquet:
    """Parquet files, of a folder only."""

    tag: ClassVar[str] = "parquet"
    is_binary: ClassVar[bool] = True

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "Parquet"


@dataclass(frozen=True, slots=True)
class Orc:
    """ORC files, of a folder only."""

    tag: ClassVar[str] = "orc"
    is_binary: ClassVar[bool] = True

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "ORC"
