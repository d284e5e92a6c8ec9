"""The state of a process: its schema on disk, and whether older state can still be read."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.flow.names import quote
from headgate.flow.operators.nodes import Process
from headgate.flow.operators.process_parts import KeptState
from headgate.flow.schemas.schema import (
    Field,
    ListOf,
    MapOf,
    Primitive,
    Schema,
    Struct,
    Type,
    type_to_ddl,
)
from headgate.flow.schemas.types import Missing
from headgate.functions.declared import StateKind

# The columns of the schema: a struct for the record of a key, and one for the pages of its lists
# and maps.
RECORD, PAGES = "record", "pages"
_BIGINT = Primitive("bigint")
_FIGURES = {
    StateKind.LIST: ("first", "next", "size", "oldest"),
    StateKind.MAP: ("size", "pages", "oldest"),
}


def state_schema(node: Process) -> Schema:
    """Return the schema of what a process keeps for a key.

    `record` has a column for each state and `cleanup`, the time at which the key is cleaned up.
    `pages` has a column for each list and map. All fields are nullable: a row that was stored
    before a field was added has none.
    """
    record = (*(_column(state, _in_record(state)) for state in node.state), _number("cleanup"))
    pages = tuple(
        _column(state, _in_page(state)) for state in node.state if state.kind is not StateKind.VALUE
    )
    return Schema(
        (Field(RECORD, Struct(record), nullable=True), Field(PAGES, Struct(pages), nullable=True))
    )


def unreadable_changes(old: Process, new: Process) -> list[str]:
    """Return a line for each change after which stored state cannot be read.

    States may be added and their order may change; so may the fields inside, if those that are
    added are nullable or have a default.
    """
    after = {state.name: state for state in new.state}
    changes: list[str] = []
    for state in old.state:
        if state.name in after:
            changes += _changes(state, after[state.name])
        else:
            changes.append(f"{state.name} was removed ({describe_state(state)})")
    if old.timers and not new.timers:
        changes.append("on_timer was removed, and keys may have timers")
    return changes


def describe_state(state: KeptState) -> str:
    """Return a state in words: `map of STRING to BIGINT`."""
    value = type_to_ddl(state.value.type)
    key = "" if state.key is None else f"{type_to_ddl(state.key.type)} to "
    return f"{state.kind.value} of {key}{value}"


def _column(state: KeptState, fields: tuple[Field, ...]) -> Field:
    return Field(state.name, Struct(fields), nullable=True)


def _in_record(state: KeptState) -> tuple[Field, ...]:
    if state.kind is StateKind.VALUE:
        return (Field("value", _nullable(state.value.type), nullable=True), _number("expires"))
    return tuple(_number(name) for name in _FIGURES[state.kind])


def _in_page(state: KeptState) -> tuple[Field, ...]:
    values = _list(state.value.type)
    expires = Field("expires", _list(_BIGINT), nullable=True)
    if state.key is None:
        return (Field("items", values, nullable=True), expires)
    keys = Field("keys", _list(state.key.type), nullable=True)
    return (keys, Field("values", values, nullable=True), expires)


def _number(name: str) -> Field:
    return Field(name, _BIGINT, nullable=True)


def _list(element: Type) -> ListOf:
    return ListOf(_nullable(element), nullable=True)


def _nullable(type_: Type) -> Type:
    """Return a type in which every value may be null."""
    match type_:
        case ListOf(element, _):
            return ListOf(_nullable(element), nullable=True)
        case MapOf(value, _):
            return MapOf(_nullable(value), nullable=True)
        case Struct(fields):
            return Struct(
                tuple(
                    Field(field.name, _nullable(field.type), True, field.default)
                    for field in fields
                )
            )
        case _:
            return type_


def _changes(old: KeptState, new: KeptState) -> Iterator[str]:
    if old.kind is not new.kind:
        yield f"{old.name} changed from a {old.kind.value} to a {new.kind.value}"
        return
    if old.key is not None and new.key is not None and old.key.type != new.key.type:
        before, after = type_to_ddl(old.key.type), type_to_ddl(new.key.type)
        yield f"the keys of {old.name} changed their type from {before} to {after}"
    yield from _inside(old.value, new.value, old.name)


def _inside(old: Field, new: Field, path: str) -> Iterator[str]:
    if old.nullable and not new.nullable:
        yield f"{path} must not be null now"
    match old.type, new.type:
        case Struct(before), Struct(after):
            yield from _of_structs(before, after, path)
        case (ListOf(before, was), ListOf(after, now)) | (MapOf(before, was), MapOf(after, now)):
            yield from _inside(Field("", before, was), Field("", after, now), f"{path}[]")
        case before, after if before != after:
            yield f"{path} changed its type from {type_to_ddl(before)} to {type_to_ddl(after)}"


def _of_structs(old: tuple[Field, ...], new: tuple[Field, ...], path: str) -> Iterator[str]:
    after = {field.name: field for field in new}
    known = {field.name for field in old}
    for field in old:
        inner = f"{path}.{quote(field.name)}"
        if field.name in after:
            yield from _inside(field, after[field.name], inner)
        else:
            yield f"{inner} was removed ({type_to_ddl(field.type)})"
    for field in new:
        if field.name not in known and not field.nullable and isinstance(field.default, Missing):
            yield f"{path}.{quote(field.name)} was added without a default"
