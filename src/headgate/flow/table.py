"""What `Flow.table` gives: a table that streams may be enriched with."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.flow.builder import Builder
from headgate.flow.operators import Port
from headgate.flow.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The latest row for each key of a changelog, by the id of its source."""

    id: str
    _builder: Builder

    @property
    def schema(self) -> Schema:
        """The columns of a row."""
        return self._builder.schemas[Port(self.id, "out")]
