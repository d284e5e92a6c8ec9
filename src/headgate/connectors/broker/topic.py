"""Topics on brokers, as values: the part that all brokers share."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Self

from headgate.connectors.broker.log import BrokerLog
from headgate.connectors.contract.starts import StartSyntax
from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject, as_text, find_text, get_object, get_text
from headgate.flow.names import check_topic_name
from headgate.flow.topics import Topic


@dataclass(frozen=True, slots=True)
class BrokerTopic(ABC):
    """The fields that topics on Kafka and on Pulsar share; those describe them for users."""

    name: str
    options: Mapping[str, str] = field(kw_only=True, default_factory=dict, hash=False)
    config: str | os.PathLike[str] | None = field(kw_only=True, default=None)
    pattern: str | None = field(kw_only=True, default=None)
    start: str | datetime | Mapping[int, int | str] | None = field(kw_only=True, default=None)

    kind: ClassVar[str]
    starts: ClassVar[StartSyntax]
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True

    @property
    @abstractmethod
    def log(self) -> BrokerLog:
        """The cluster or namespace of the topic."""

    @property
    def kernel_name(self) -> str:
        """The topic's name in the kernel."""
        return self.name

    @property
    def shown_name(self) -> str:
        """The topic's name in descriptions."""
        return self.name

    @property
    def start_text(self) -> str | None:
        """The start of reading as text; None for the default."""
        return self.start if isinstance(self.start, str) else None

    def __post_init__(self) -> None:
        check_topic_name(self.name)
        log = self.log
        start = self.starts.check_start(self.start, topic=self.name)
        self._check_pattern(start or "")
        for attribute, value in {**log.fields(), "start": start}.items():
            object.__setattr__(self, attribute, value)

    def describe(self) -> str:
        pattern = "" if self.pattern is None else f" (topics {self.pattern})"
        return f"{self.kind} {self.shown_name}{pattern} at {self.log.cluster}"

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            **self.log.fields(),
            "pattern": self.pattern,
            "start": self.start_text,
        }

    @classmethod
    def from_json(cls, holder: JsonObject) -> Self:
        options = get_object(holder, "options")
        texts: dict[str, Any] = {
            field.name: (find_text if field.default is None else get_text)(holder, field.name)
            for field in fields(cls)
            if field.name != "options"
        }
        return cls(
            **texts, options={name: as_text(value, repr(name)) for name, value in options.items()}
        )

    def _check_pattern(self, start: str) -> None:
        if self.pattern is None:
            return
        try:
            re.compile(self.pattern)
            problem = "" if self.pattern else "it is empty"
        except re.error as error:
            problem = f"it is not a regular expression ({error})"
        if not problem and start.startswith(self.starts.prefix):
            problem = f"{self.starts.positions} belong to one topic, and the pattern may match many"
        if problem:
            raise HeadgateError(
                "BAD_TOPIC",
                f"cannot read topics by pattern {self.pattern!r} as {self.name!r}: {problem}",
                hint=f"use pattern='{self.name}-.*', and a time as the start",
            )


def has_name(topic: Topic, name: str) -> bool:
    """Return True if a topic has a name, or its pattern matches it."""
    if topic.pattern is None:
        return topic.name == name
    return re.fullmatch(topic.pattern, name) is not None
