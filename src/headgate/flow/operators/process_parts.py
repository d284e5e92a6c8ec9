"""The parts of a process: the states that it keeps for each key, and its side outputs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headgate.flow.schemas.schema import Field, Schema
from headgate.functions.declared import StateKind


@dataclass(frozen=True, slots=True)
class KeptState:
    """A state that a process keeps for each key.

    Attributes:
        value: The value, a list's items or a map's values; named `value`.
        key: The keys of a map, named `key`; None for others.
        ttl: How long it is kept after it was last written; None for ever.
    """

    name: str
    kind: StateKind
    value: Field
    key: Field | None = None
    ttl: timedelta | None = None


@dataclass(frozen=True, slots=True)
class SideOutput:
    """A further output of a process, with the columns of its rows."""

    name: str
    schema: Schema
