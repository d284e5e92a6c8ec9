"""All formats, and those that a source can read and an output can write."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeAlias, cast, get_args

from headgate.errors import HeadgateError
from headgate.flow.formats.avro import Avro
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.plain import Json, Raw, Text
from headgate.flow.formats.registry import Registry, as_registry
from headgate.flow.names import did_you_mean

Format: TypeAlias = Json | Text | Csv | Raw | Avro
KINDS: dict[str, type[Format]] = {kind.tag: kind for kind in get_args(Format)}


def as_format(value: object, *, what: str, registry: str | Registry | None = None) -> Format:
    """Return a format; a name stands for the format with its defaults.

    Args:
        what: Opening words of the error message.
        registry: The schema registry of the format, which must be one that takes it.

    Raises:
        HeadgateError: BAD_FORMAT.
    """
    if registry is not None:
        form = as_format(value, what=what)
        return _with_registry(form, as_registry(registry), what)
    if isinstance(value, get_args(Format)):
        return cast("Format", value)
    if not isinstance(value, str):
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: format must be a name or a format, got {value!r:.80}",
            hint="a source needs a format with decode(record), an output one with encode(row)",
        )
    if value not in KINDS:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: format must be one of {', '.join(KINDS)}, got {value!r}",
            hint=did_you_mean(value, KINDS),
        )
    return KINDS[value]()


def _with_registry(form: Format, registry: Registry, what: str) -> Format:
    if not any(field.name == "registry" for field in fields(form)):
        raise HeadgateError(
            "BAD_FORMAT",
            f'{what}: format "{form.tag}" takes no registry',
            hint='use format="avro"',
        )
    if getattr(form, "registry", None) is not None:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: it names a registry, and so does its format",
            hint="name the registry once",
        )
    change: dict[str, Any] = {"registry": registry}
    return cast("Format", replace(form, **change))
