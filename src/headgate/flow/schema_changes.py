"""What changed between two schemas, for people and for the choice whether state still reads."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.flow.names import quote
from headgate.flow.types import Field, Missing, Struct, Type, type_to_ddl

Fields = tuple[Field, ...]


def difference(old: Fields, new: Fields) -> list[str]:
    """Return a line for each field that was removed, added, changed or moved."""
    return list(_difference(old, new, ""))


def only_adds(old: Fields, new: Fields) -> bool:
    """Tell whether every field of `old` is in `new` unchanged, and the rest may be absent."""
    before = {each.name: each for each in old}
    kept = [each for each in new if each.name in before]
    added = [each for each in new if each.name not in before]
    return [_essence(each) for each in kept] == [_essence(each) for each in old] and all(
        each.nullable or not isinstance(each.default, Missing) for each in added
    )


def _difference(old: Fields, new: Fields, prefix: str) -> Iterator[str]:
    before = {each.name: each for each in old}
    after = {each.name: each for each in new}
    for name, each in before.items():
        path = f"{prefix}{quote(name)}"
        if name not in after:
            yield f"{path} was removed ({_shape(each)})"
        else:
            yield from _changes(each, after[name], path)
    for name, each in after.items():
        if name not in before:
            yield f"{prefix}{quote(name)} was added ({_shape(each)})"
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
        yield f"{path} changed its type from {type_to_ddl(old.type)} to {_told(old.type, new.type)}"
    if old.nullable != new.nullable:
        yield f"{path} {'may' if new.nullable else 'must not'} be null now"
    if old.default != new.default:
        yield f"{path} changed its default from {_default(old)} to {_default(new)}"


def _told(old: Type, new: Type) -> str:
    """Return the new type, with a word more where DDL shows both alike."""
    ddl = type_to_ddl(new)
    return f"{ddl} with other nulls inside" if ddl == type_to_ddl(old) else ddl


def _shape(each: Field) -> str:
    default = "" if isinstance(each.default, Missing) else f", default {each.default!r}"
    return f"{type_to_ddl(each.type)}{'' if each.nullable else ' NOT NULL'}{default}"


def _default(each: Field) -> str:
    return "none" if isinstance(each.default, Missing) else repr(each.default)


def _essence(each: Field) -> tuple[str, Type, bool]:
    return each.name, each.type, each.nullable
