"""All formats, and those that a source can read and an output can write."""

from __future__ import annotations

from typing import TypeAlias, cast, get_args

from headgate.errors import HeadgateError
from headgate.flow.formats.changes import Debezium, Upsert
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.plain import Json, Raw, Text
from headgate.flow.names import did_you_mean

Format: TypeAlias = Json | Text | Csv | Raw | Debezium | Upsert
KINDS: dict[str, type[Format]] = {kind.tag: kind for kind in get_args(Format)}


def as_format(value: object, *, what: str) -> Format:
    """Return a format; a name stands for the format with its defaults.

    Args:
        what: Opening words of the error message.

    Raises:
        HeadgateError: BAD_FORMAT.
    """
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
