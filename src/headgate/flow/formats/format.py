"""All formats, and those that a source can read and an output can write."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Protocol, TypeAlias, get_args, runtime_checkable

from headgate.errors import HeadgateError
from headgate.flow.formats.avro import Avro
from headgate.flow.formats.changes import Debezium, Upsert
from headgate.flow.formats.columnar import Orc, Parquet
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.plain import JSON, Json, Raw, Text
from headgate.flow.formats.registry import Registry, as_registry
from headgate.flow.names import did_you_mean
from headgate.flow.topics import Topic

Format: TypeAlias = Json | Text | Csv | Raw | Avro | Debezium | Upsert | Parquet | Orc
_ALL: tuple[type[Format], ...] = get_args(Format)
KINDS: dict[str, type[Format]] = {kind.tag: kind for kind in _ALL}


@runtime_checkable
class FormattedTopic(Protocol):
    """A topic that determines the format of its records."""

    @property
    def own_format(self) -> Format:
        """The format of its records."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values records do not have, such as those in the names of folders."""


@runtime_checkable
class PartitionedTopic(Protocol):
    """A topic whose records lie in folders named after some of their columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, outermost first; they are not in the records."""


def format_of(
    topic: Topic, value: object, *, what: str, registry: str | Registry | None = None
) -> Format:
    """Return the format of a topic's records: the one given, or the topic's own, or JSON.

    Args:
        what: Opening words of the error message.

    Raises:
        HeadgateError: BAD_FORMAT.
    """
    default = "json" if value is None and registry is not None else value
    given = None if default is None else as_format(default, registry=registry, what=what)
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
    if isinstance(value, _ALL):
        return value
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
    return replace(form, **change)
