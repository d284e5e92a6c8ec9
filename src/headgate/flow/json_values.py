"""Checked access to JSON that may have been written by hand."""

from __future__ import annotations

from typing import TypeAlias

from headgate.errors import HeadgateError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


def bad_json(problem: str) -> HeadgateError:
    """Return the error for JSON that is not what `Graph.to_json` writes."""
    return HeadgateError(
        "FLOW_BAD_JSON",
        f"cannot read the JSON of a flow: {problem}",
        hint="write it again with flow.graph().to_json()",
    )


def as_object(value: Json, what: str) -> JsonObject:
    """Return `value` if it is an object."""
    if not isinstance(value, dict):
        raise bad_json(f"{what} must be an object, got {_kind(value)}")
    return value


def as_list(value: Json, what: str) -> list[Json]:
    """Return `value` if it is a list."""
    if not isinstance(value, list):
        raise bad_json(f"{what} must be a list, got {_kind(value)}")
    return value


def as_text(value: Json, what: str) -> str:
    """Return `value` if it is text."""
    if not isinstance(value, str):
        raise bad_json(f"{what} must be text, got {_kind(value)}")
    return value


def as_int(value: Json, what: str) -> int:
    """Return `value` if it is an integer."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise bad_json(f"{what} must be an integer, got {_kind(value)}")
    return value


def as_bool(value: Json, what: str) -> bool:
    """Return `value` if it is a boolean."""
    if not isinstance(value, bool):
        raise bad_json(f"{what} must be true or false, got {_kind(value)}")
    return value


def get_value(holder: JsonObject, key: str) -> Json:
    """Return the value at `key`, which must be there."""
    if key not in holder:
        raise bad_json(f"{key!r} is missing from {_short(holder)}")
    return holder[key]


def get_object(holder: JsonObject, key: str) -> JsonObject:
    """Return the object at `key`."""
    return as_object(get_value(holder, key), repr(key))


def get_list(holder: JsonObject, key: str) -> list[Json]:
    """Return the list at `key`."""
    return as_list(get_value(holder, key), repr(key))


def get_text(holder: JsonObject, key: str) -> str:
    """Return the text at `key`."""
    return as_text(get_value(holder, key), repr(key))


def find_text(holder: JsonObject, key: str) -> str | None:
    """Return the text at `key`, or None where it is null."""
    value = get_value(holder, key)
    return None if value is None else as_text(value, repr(key))


def get_bool(holder: JsonObject, key: str) -> bool:
    """Return the boolean at `key`."""
    return as_bool(get_value(holder, key), repr(key))


def get_int(holder: JsonObject, key: str) -> int:
    """Return the integer at `key`."""
    return as_int(get_value(holder, key), repr(key))


def _kind(value: Json) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a number")


def _short(holder: JsonObject) -> str:
    text = repr(holder)
    return text if len(text) <= 80 else f"{text[:77]}..."
