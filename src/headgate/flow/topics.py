"""Topics that a flow reads and writes: logical names, or topics bound to one log.

Connectors register their own kinds with `register_topic`; this module does not know them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject, get_text
from headgate.flow.names import check_topic_name, did_you_mean


class Topic(Protocol):
    """A frozen value that names a topic and, if it is bound, its place.

    Attributes:
        kind: The tag in JSON; each connector has its own.
        can_read: False for a topic that can only be written, such as the console.
        can_write: False for a topic that can only be read.
    """

    kind: ClassVar[str]
    can_read: ClassVar[bool]
    can_write: ClassVar[bool]

    @property
    def name(self) -> str:
        """The name in the flow, which identifies the source or the output."""

    @property
    def pattern(self) -> str | None:
        """The pattern of the topics that are read as one; None for a single topic."""

    def describe(self) -> str:
        """Return a short description for `explain`."""

    def to_json(self) -> JsonObject:
        """Return every field but the kind, as JSON."""

    @classmethod
    def from_json(cls, holder: JsonObject) -> Topic:
        """Return the topic that `to_json` wrote."""


T = TypeVar("T", bound=Topic)
_KINDS: dict[str, Callable[[JsonObject], Topic]] = {}


def register_topic(cls: type[T]) -> type[T]:
    """Register a kind of topic for the JSON of flows; used as a class decorator."""
    _KINDS[cls.kind] = cls.from_json
    return cls


@register_topic
@dataclass(frozen=True, slots=True)
class LogicalTopic:
    """A topic known by name only; the run decides which log holds it."""

    name: str

    kind: ClassVar[str] = "logical"
    pattern: ClassVar[None] = None
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic_name(self.name)

    def describe(self) -> str:
        """Return the name, marked as a topic."""
        return f"topic {self.name}"

    def to_json(self) -> JsonObject:
        """Return the name."""
        return {"name": self.name}

    @classmethod
    def from_json(cls, holder: JsonObject) -> LogicalTopic:
        """Return the topic with that name."""
        return cls(get_text(holder, "name"))


def check_stream(topic: Topic, what: str) -> None:
    """Refuse a topic that has rows and no records, such as a table of a database.

    Args:
        what: Opening words of the error message.
    """
    # Few kinds of topics cannot be read as a stream, and only those say so.
    if getattr(topic, "can_stream", True):
        return
    raise HeadgateError(
        "BAD_TOPIC",
        f"{what}: {topic.describe()} has rows that change, and no stream of records",
        hint="read it as a table: flow.table(…, key='id'); or stream its changes with Debezium",
    )


def as_topic(topic: str | Topic) -> Topic:
    """Return a topic; a string becomes a logical topic."""
    if not isinstance(topic, str):
        return topic
    scheme, separator, _ = topic.partition("://")
    if separator:
        raise _not_a_name(scheme)
    return LogicalTopic(topic)


def _not_a_name(scheme: str) -> HeadgateError:
    """Return the error of an address in place of a name, without its rest: that may be secret."""
    if scheme in ("file", "files"):
        hint = "name the folder: Files('orders', dir='/data/orders')"
    elif scheme in ("s3", "s3a"):
        hint = "name the folder and the format of its files: Folder('s3a://…', format='parquet')"
    elif scheme in ("postgres", "postgresql"):
        hint = (
            "name the table: Postgres('orders', url='postgresql://HOST/DATABASE', table='orders')"
        )
    elif scheme.partition("+")[0] in _KINDS:
        hint = f"name the topic here, and the log at the start: headgate run FLOW --on {scheme}://…"
    else:
        hint = (
            "name a topic, 'orders', and copy it from or to other systems outside the flow, for "
            "example with Kafka Connect"
        )
    return HeadgateError(
        "BAD_NAME",
        f"cannot name a topic '{scheme}://…': it is an address, and a flow reads and writes topics",
        hint=hint,
    )


def topic_to_json(topic: Topic) -> JsonObject:
    """Return a topic as JSON, tagged with its kind."""
    return {"kind": topic.kind, **topic.to_json()}


def topic_from_json(holder: JsonObject) -> Topic:
    """Return the topic that `topic_to_json` wrote, of any registered kind."""
    kind = get_text(holder, "kind")
    if kind not in _KINDS:
        raise HeadgateError(
            "TOPIC_UNKNOWN_KIND",
            f"cannot read a topic of kind {kind!r}: no connector has registered it",
            hint=did_you_mean(kind, sorted(_KINDS)),
        )
    return _KINDS[kind](holder)
