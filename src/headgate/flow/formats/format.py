"""All formats, and those that a source can read and an output can write."""

from __future__ import annotations

from typing import Protocol, TypeAlias, get_args, runtime_checkable

from headgate.errors import HeadgateError
from headgate.flow.formats.columnar import Orc, Parquet
from headgate.flow.formats.plain import JSON, Json, Text
from headgate.flow.names import did_you_mean
from headgate.flow.topics import Topic

Format: TypeAlias = Json | Text | Parquet | Orc
KINDS: dict[str, type[Format]] = {kind.tag: kind for kind in get_args(Format)}


@runtime_checkable
class FormattedTopic(Protocol):
    """A topic that determines the format of its records."""

    @property
    def own_format(self) -> Format:
        """The format of its records."""


def format_of(topic: Topic, value: str | Format | None, *, what: str) -> Format:
    """Return the format of a topic's records: the one given, or the topic's own, or JSON.

    Args:
        what: Opening words of the error message.

    Raises:
        HeadgateError: BAD_FORMAT.
    """
    given = None if value is None else as_format(value, what=what)
    own = topic.own_format if isinstance(topic, FormattedTopic) else None
    if own is not None and given is not None and given != own:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: {topic.describe()} has the format {own.describe()}, got {given.describe()}",
            hint="give the format to the topic alone",
        )
    if own is None and isinstance(given, Parquet | Orc):
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: {given.describe()} is a format of whole files, and {topic.describe()} "
            "consists of records",
            hint=f'use Folder("data/orders", format="{given.tag}")',
        )
    return own or given or JSON


def as_format(value: str | Format, *, what: str) -> Format:
    """Return a format; a name stands for the format with its defaults.

    Args:
        what: Opening words of the error message.

    Raises:
        HeadgateError: BAD_FORMAT.
    """
    if not isinstance(value, str):
        return value
    if value not in KINDS:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: format must be one of {', '.join(KINDS)}, got {value!r}",
            hint=did_you_mean(value, KINDS),
        )
    return KINDS[value]()
