"""Tables and broadcasts: changelogs, of which a flow uses the latest row for each key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from headgate.flow.building.builder import Builder
from headgate.flow.operators.nodes import Port
from headgate.flow.schemas.schema import Schema
from headgate.flow.streams.missing_methods import BROADCAST, TABLE, Explained


@dataclass(frozen=True, slots=True, eq=False)
class Table(Explained):
    """The latest row per key of a changelog."""

    id: str
    _builder: Builder

    _kind: ClassVar[str] = "a table"
    _instead: ClassVar[Mapping[str, str]] = TABLE

    @property
    def schema(self) -> Schema:
        """The columns of a row."""
        return self._builder.schemas[Port(self.id, "out")]


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Explained):
    """The latest row per key of a changelog, in each task."""

    id: str
    _builder: Builder

    _kind: ClassVar[str] = "a broadcast"
    _instead: ClassVar[Mapping[str, str]] = BROADCAST

    @property
    def schema(self) -> Schema:
        """The columns of a row."""
        return self._builder.schemas[Port(self.id, "out")]
