"""A topic on Kafka, as a value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.kafka.starts import STARTS
from headgate.connectors.options import check_pattern
from headgate.flow.json_values import JsonObject, as_text, find_text, get_object, get_text
from headgate.flow.names import check_topic_name
from headgate.flow.topics import register_topic


@register_topic
@dataclass(frozen=True, slots=True)
class Kafka:
    """A topic on Kafka, independent of the flow's other topics.

    Attributes:
        name: The topic's name, in the flow and on Kafka.
        servers: `host:port`, separated by commas; the default port is 9092.
        options: Client options by the Java client's names, `sasl.username`, `sasl.password` and
            `ssl.ca.location`; secrets must be references, `${env:NAME}` or `${file:/path}`.
        config: A properties file with further options, read when a client is created; a relative
            path starts at the job's working directory.
        pattern: A Java regular expression: all topics whose whole name matches are read as one,
            including topics created later. Such a topic cannot be written.
        start: The start of reading without a stored position: `earliest` (the default), `latest`, a
            time (UTC if it has no zone), or offsets by partition.
    """

    name: str
    servers: str = field(kw_only=True)
    options: Mapping[str, str] = field(kw_only=True, default_factory=dict, hash=False)
    config: str | os.PathLike[str] | None = field(kw_only=True, default=None)
    pattern: str | None = field(kw_only=True, default=None)
    start: str | datetime | Mapping[int, int] | None = field(kw_only=True, default=None)

    kind: ClassVar[str] = "kafka"
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic_name(self.name)
        config = None if self.config is None else os.fspath(self.config)
        client = ClientSpec.of(self.servers, self.options, config)
        start = STARTS.check_start(self.start, topic=self.name)
        is_of_one = start is not None and start.startswith(STARTS.prefix)
        check_pattern(self.name, self.pattern, positions=STARTS.positions if is_of_one else None)
        for attribute, value in (
            ("servers", client.servers),
            ("options", dict(client.options)),
            ("config", client.config),
            ("start", start),
        ):
            object.__setattr__(self, attribute, value)

    @property
    def client(self) -> ClientSpec:
        """The connection of its cluster."""
        config = None if self.config is None else os.fspath(self.config)
        return ClientSpec(self.servers, tuple(sorted(self.options.items())), config)

    @property
    def start_text(self) -> str | None:
        """The start of reading as text; None for the default."""
        return self.start if isinstance(self.start, str) else None

    def describe(self) -> str:
        """Return the name and the servers."""
        what = self.name if self.pattern is None else f"{self.name} (topics {self.pattern})"
        return f"kafka {what} at {self.servers}"

    def to_json(self) -> JsonObject:
        """Return every field; secrets are references."""
        return {
            "name": self.name,
            "servers": self.servers,
            "options": dict(self.options),
            "config": self.client.config,
            "pattern": self.pattern,
            "start": self.start_text,
        }

    @classmethod
    def from_json(cls, holder: JsonObject) -> Kafka:
        """Return the topic that `to_json` wrote."""
        options = get_object(holder, "options")
        return cls(
            get_text(holder, "name"),
            servers=get_text(holder, "servers"),
            options={name: as_text(value, repr(name)) for name, value in options.items()},
            config=find_text(holder, "config"),
            pattern=find_text(holder, "pattern"),
            start=find_text(holder, "start"),
        )
