"""The form of a process function's state in a portable savepoint. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headgate._units import to_millis
from headgate.engine.plan.spark_types import to_spark_json
from headgate.flow.operators.nodes import Process
from headgate.flow.operators.process_parts import KeptState
from headgate.flow.schemas.schema import Field, ListOf, Primitive, Schema, Struct, Type
from headgate.functions.declared import StateKind

_BIGINT = Primitive("bigint")

# The timers of a key.
TIMERS = ListOf(
    Struct((Field("time", _BIGINT, False), Field("event_time", Primitive("boolean"), False))), False
)


@dataclass(frozen=True, slots=True)
class StateShape:
    """A state of a process function.

    Attributes:
        ttl: How long it is kept after it was last written, in milliseconds; None for ever.
        boxed: Whether a value is in a struct, since it may be null itself.
    """

    name: str
    kind: StateKind
    ttl: int | None
    boxed: bool


@dataclass(frozen=True, slots=True)
class ProcessForm:
    """The form of a process function's state.

    Attributes:
        history: Every schema it has had; the last is the current one.
        row: The column of each state; None without states.
        states: In the order of the columns.
    """

    history: tuple[Schema, ...]
    row: Schema | None
    states: tuple[StateShape, ...]

    @classmethod
    def of(cls, node: Process, history: Sequence[Schema]) -> ProcessForm:
        """Return the form of an operator's state."""
        row = tuple(Field(state.name, _column(state), True) for state in node.state)
        return cls(tuple(history), _schema(row), tuple(_shape(state) for state in node.state))

    @property
    def expires(self) -> Schema | None:
        """The expiry of each state that has a time to live; None if no state has one."""
        return _schema(tuple(_expiries(self.states)))

    def spec(self) -> dict[str, Any]:
        """Return the form for the kernel."""
        return {
            "history": [to_spark_json(schema) for schema in self.history],
            "row": _spark_json(self.row),
            "expires": _spark_json(self.expires),
            "states": [
                {"name": one.name, "kind": one.kind.value, "ttl": one.ttl, "boxed": one.boxed}
                for one in self.states
            ],
        }


def _schema(fields: tuple[Field, ...]) -> Schema | None:
    # A schema has at least one field.
    return Schema(fields) if fields else None


def _spark_json(schema: Schema | None) -> dict[str, Any]:
    return {"type": "struct", "fields": []} if schema is None else to_spark_json(schema)


def _shape(state: KeptState) -> StateShape:
    ttl = None if state.ttl is None else to_millis(state.ttl)
    return StateShape(state.name, state.kind, ttl, _is_boxed(state))


def _is_boxed(state: KeptState) -> bool:
    return state.kind is StateKind.VALUE and state.value.nullable


def _column(state: KeptState) -> Type:
    value = state.value
    match state.kind:
        case StateKind.VALUE:
            return Struct((Field("value", value.type, True),)) if value.nullable else value.type
        case StateKind.LIST:
            return ListOf(value.type, value.nullable)
        case StateKind.MAP:
            assert state.key is not None
            key = Field("key", state.key.type, False)
            entry = Struct((key, Field("value", value.type, value.nullable)))
            return ListOf(entry, False)


def _expiries(states: Iterable[StateShape]) -> Iterable[Field]:
    for state in states:
        if state.ttl is not None:
            is_value = state.kind is StateKind.VALUE
            yield Field(state.name, _BIGINT if is_value else ListOf(_BIGINT, True), True)
