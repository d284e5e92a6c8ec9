"""The differences between two schemas, and whether old state can still be read."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.flow.names import quote
from headgate.flow.schemas.schema import Schema
from headgate.flow.schemas.types import Field, Missing, Struct, Type, type_to_ddl

Fields = tuple[Field, ...]


def difference(old: Schema, new: Schema) -> list[str]:
    """Return a line for each removed, added, changed or moved field."""
    return list(_difference(old.fields, new.fields, ""))


def only_adds(old: Schema, new: Schema) -> bool:
    """Return True if rows of `old` can be read as `new`.

    True if fields were only added, each nullable or with a default, and the fields of `old` are
    unchanged and in order. A changed default changes no existing row.
    """
    kept = [_essence(field) for field in new.fields if field.name in old.names]
    added = [field for field in new.fields if field.name not in old.names]
    return kept == [_essence(field) for field in old.fields] and all(
        field.nullable or not isinstance(field.default, Missing) for field in added
    )


def _difference(old: Fields, new: Fields, prefix: str) -> Iterator[str]:
    before = {field.name: field for field in old}
    after = {field.name: field for field in new}
    for name, field in before.items():
        path = f"{prefix}{quote(name)}"
        if name not in after:
            yield f"{path} was removed ({_shape(field)})"
        else:
            yield from _changes(field, after[name], path)
    for name, field in after.items():
        if name not in before:
            yield f"{prefix}{quote(name)} was added ({_shape(field)})"
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    if kept_before != kept_after:
        where = f" in {prefix[:-1]}" if prefix else ""
        yield (
            f"the order{where} changed from {', '.join(map(quote, kept_before))} "
            f"to {', '.join(map(quote, kept_after))}"
        )


def _changes(old: Field, new: Field, path: str) -> Iterator[str]:
    if isinstance(old.type, Struct) and isinstance(new.type, Struct):
        yield from _difference(old.type.fields, new.type.fields, f"{path}.")
    elif old.type != new.type:
        before, after = type_to_ddl(old.type), _new_type(old.type, new.type)
        yield f"{path} changed its type from {before} to {after}"
    if old.nullable != new.nullable:
        yield f"{path} {'may' if new.nullable else 'must not'} be null now"
    if old.default != new.default:
        yield f"{path} changed its default from {_default(old)} to {_default(new)}"


def _new_type(old: Type, new: Type) -> str:
    """Return the new type, with a remark if DDL shows both alike."""
    ddl = type_to_ddl(new)
    return f"{ddl} with different nullability inside" if ddl == type_to_ddl(old) else ddl


def _shape(field: Field) -> str:
    default = "" if isinstance(field.default, Missing) else f", default {field.default!r}"
    return f"{type_to_ddl(field.type)}{'' if field.nullable else ' NOT NULL'}{default}"


def _default(field: Field) -> str:
    return "none" if isinstance(field.default, Missing) else repr(field.default)


def _essence(field: Field) -> tuple[str, Type, bool]:
    return field.name, field.type, field.nullable
