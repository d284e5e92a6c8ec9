"""Topics: what a flow reads and writes, by logical name or bound to a log on its own.

Connectors bring kinds of their own with `register_topic`; nothing here knows them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject, get_text
from headgate.flow.names import check_topic_name, did_you_mean


class Topic(Protocol):
    """A frozen value that names a topic, and says where it lies if it is bound.

    Attributes:
        kind: The tag in JSON; one for each connector.
        can_read: False for a topic that only takes rows, such as the console.
        can_write: False for a topic that only gives them.
    """

    kind: ClassVar[str]
    can_read: ClassVar[bool]
    can_write: ClassVar[bool]

    @property
    def name(self) -> str:
        """The name in the flow: what the source or the output is known by."""

    @property
    def pattern(self) -> str | None:
        """What the names of all topics match that are read as one; None for one topic."""

    def describe(self) -> str:
        """Return a few words for `explain`."""

    def to_json(self) -> JsonObject:
        """Return every field but the kind, as JSON."""

    @classmethod
    def from_json(cls, holder: JsonObject) -> Topic:
        """Return the topic that `to_json` wrote."""


T = TypeVar("T", bound=Topic)
_KINDS: dict[str, Callable[[JsonObject], Topic]] = {}


def register_topic(cls: type[T]) -> type[T]:
    """Make a kind of topic known to the JSON of flows; used as a class decorator."""
    _KINDS[cls.kind] = cls.from_json
    return cls


@register_topic
@dataclass(frozen=True, slots=True)
class LogicalTopic:
    """A topic by name alone; the log it lies on is chosen when the flow is run."""

    name: str

    kind: ClassVar[str] = "logical"
    pattern: ClassVar[None] = None
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic_name(self.name)

    def describe(self) -> str:
        """Return the name, said to be a topic's."""
        return f"topic {self.name}"

    def to_json(self) -> JsonObject:
        """Return the name."""
        return {"name": self.name}

    @classmethod
    def from_json(cls, holder: JsonObject) -> LogicalTopic:
        """Return the topic of that name."""
        return cls(get_text(holder, "name"))


def as_topic(topic: str | Topic) -> Topic:
    """Return a topic; a string is a logical one."""
    return LogicalTopic(topic) if isinstance(topic, str) else topic


def topic_to_json(topic: Topic) -> JsonObject:
    """Return a topic as JSON, tagged with its kind."""
    return {"kind": topic.kind, **topic.to_json()}


def topic_from_json(holder: JsonObject) -> Topic:
    """Return the topic that `topic_to_json` wrote, of any kind that is registered."""
    kind = get_text(holder, "kind")
    if kind not in _KINDS:
        raise HeadgateError(
            "TOPIC_UNKNOWN_KIND",
            f"cannot read a topic of kind {kind!r}: no connector brings it",
            hint=did_you_mean(kind, sorted(_KINDS)),
        )
    return _KINDS[kind](holder)
