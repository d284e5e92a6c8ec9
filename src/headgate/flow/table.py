"""Tables: the values that streams are enriched with."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.flow.builder import Builder
from headgate.flow.operators import Port
from headgate.flow.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The latest row per key of a changelog."""

    id: str
    _builder: Builder

    @property
    def schema(self) -> Schema:
        """The columns of a row."""
        return self._builder.schemas[Port(self.id, "out")]
