"""Topics on brokers, their logs and their connectors: the parts that all brokers share."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from headgate.connectors.connector import KeyValues, Reading, Records, Sink
from headgate.connectors.options import bad_client_option, option_text, query_text
from headgate.connectors.references import check_secret
from headgate.connectors.setup import SetupOptions, TopicRole
from headgate.connectors.starts import StartSyntax
from headgate.connectors.topics import MadeTopic, Topics, WantedTopic
from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject, as_text, find_text, get_object, get_text
from headgate.flow.names import check_topic_name
from headgate.flow.topics import Topic


class Sender(Protocol):
    """Sends records to the topics of a broker."""

    def send(self, topic: str, records: Records) -> int:
        """Send records, and return the number of acknowledged records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLog(ABC):
    """A cluster, or a namespace of one; equal values connect to it in the same way.

    Attributes:
        options: Names and values of client options, sorted by name; secrets are references.
        config: A properties file, read when a client is created; options override it.
    """

    options: tuple[tuple[str, str], ...] = ()
    config: str | None = None

    broker: ClassVar[str]
    # The name of an option, for messages; and options that are set elsewhere, with a hint.
    option: ClassVar[str]
    set_elsewhere: ClassVar[Mapping[str, str]]
    folder: ClassVar[None] = None

    @property
    @abstractmethod
    def cluster(self) -> str:
        """The servers, as messages show them."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The log as a value of `--on`, without options."""

    @property
    def own_options(self) -> tuple[tuple[str, str], ...]:
        """Options of the address that are not options of clients."""
        return ()

    @staticmethod
    @abstractmethod
    def find_secrets(name: str, value: str) -> list[str] | None:
        """Return the secrets in the value of an option, or None if the whole value is secret."""

    @abstractmethod
    def bind(self, name: str) -> BrokerTopic:
        """Return the topic with that name on this log."""

    @abstractmethod
    def open_topics(self) -> Topics:
        """Return the topics; sends no request yet."""

    @abstractmethod
    def open_sender(self) -> AbstractContextManager[Sender]:
        """Connect to the cluster to send records."""

    @abstractmethod
    def wanted(self, name: str, role: TopicRole, options: SetupOptions) -> WantedTopic:
        """Return the settings of a topic to create."""

    @classmethod
    def check_options(cls, options: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
        """Return client options as text, sorted by name.

        Raises:
            HeadgateError: BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
        """
        checked = []
        for name, value in sorted((options or {}).items()):
            text = option_text(name, value, broker=cls.broker, example=cls.option)
            if name in cls.set_elsewhere:
                hint = cls.set_elsewhere[name]
                raise bad_client_option(cls.broker, name, "it is set elsewhere", hint)
            check_secret(name, text, broker=cls.broker, parts=cls.find_secrets(name, text))
            checked.append((name, text))
        return tuple(checked)

    def fields(self) -> dict[str, Any]:
        """Return all fields by name, as a topic has them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shared = {"options": dict(values.pop("options")), "config": values.pop("config")}
        return {**values, **shared}

    def to_text(self) -> str:
        """Return the connection as JSON for the kernel; equal texts mean the same cluster."""
        connection = {**self.fields(), "config": self._anchored_config()}
        connection.pop("namespace", None)
        return json.dumps(connection, sort_keys=True)

    def anchored(self) -> Self:
        """Return the log with the absolute path of the properties file."""
        return replace(self, config=self._anchored_config())

    def make_topics(
        self, roles: Mapping[str, TopicRole], partitions: int | None
    ) -> tuple[MadeTopic, ...]:
        topics, options = self.open_topics(), SetupOptions(partitions=partitions)
        made = (topics.make(self.wanted(name, role, options)) for name, role in roles.items())
        return tuple(topic for topic in made if not topic.existed)

    @contextmanager
    def open_sink(self, _roles: Mapping[str, TopicRole], key_values: KeyValues) -> Iterator[Sink]:
        with self.open_sender() as sender:

            def send(topic: str, lines: bytes, records: int) -> None:
                acknowledged = sender.send(topic, key_values(topic, lines))
                assert acknowledged == records, f"{acknowledged} of {records} records"

            yield send

    def __str__(self) -> str:
        config = () if self.config is None else (("config", self.config),)
        return f"{self.address}{query_text((*self.own_options, *self.options, *config))}"

    def _anchored_config(self) -> str | None:
        return None if self.config is None else str(Path(self.config).absolute())


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


T = TypeVar("T", bound=BrokerTopic)


class BrokerEnds(Generic[T]):
    """Topics on a broker as options of the kernel's source and sink."""

    SOURCE: str
    IS_PARTITIONED = True

    def own_options(self, topic: T, reading: Reading) -> dict[str, str]:
        """Return the options of the source that only this broker has."""
        raise NotImplementedError

    def source_options(self, topic: T, reading: Reading) -> dict[str, str]:
        names = {"topics": topic.kernel_name}
        start = reading.start or topic.start_text or "earliest"
        return {
            "client": topic.log.to_text(),
            **(names if topic.pattern is None else {"pattern": topic.pattern}),
            "start": topic.starts.kernel_start(start),
            "max.bytes": str(reading.max_batch),
            "max.record": str(reading.max_record),
            "splits": str(reading.splits),
            "on.data.loss": reading.on_data_loss,
            "meta": str(reading.meta).lower(),
            **self.own_options(topic, reading),
        }

    def output_option(self, topic: T) -> dict[str, str]:
        """Return the options of the sink.

        Raises:
            HeadgateError: BAD_TOPIC: the topic is a pattern.
        """
        if topic.pattern is not None:
            servers, value = next(iter(topic.log.fields().items()))
            raise HeadgateError(
                "BAD_TOPIC",
                f"cannot write to topic {topic.name!r}: it is the pattern {topic.pattern!r}, and "
                "rows must go to a single topic",
                hint=f"write to {type(topic).__name__}({topic.name!r}, {servers}={value!r})",
            )
        return {"kind": topic.kind, "topic": topic.kernel_name}

    def prepare(self, _topic: T, _partitions: int, _lineage: str | None) -> None:
        """Do nothing: the kernel, the broker or `headgate setup` creates topics."""


class BrokerConnector(Generic[T]):
    """The members of a connector that are the same for all brokers."""

    has_keys = True

    def log_of(self, topic: T) -> BrokerLog:
        return topic.log

    def where(self, topic: T) -> str:
        return topic.log.address

    def find_cluster(self, topic: T) -> str:
        return topic.log.to_text()

    def reads(self, read: T, topic: Topic) -> bool:
        """Return True if a topic on the same servers has the name or matches the pattern."""
        return (
            isinstance(topic, type(read))
            and not _hosts(read).isdisjoint(_hosts(topic))
            and getattr(read, "namespace", None) == getattr(topic, "namespace", None)
            and has_name(read, topic.name)
        )


def has_name(topic: Topic, name: str) -> bool:
    """Return True if a topic has a name, or its pattern matches it."""
    if topic.pattern is None:
        return topic.name == name
    return re.fullmatch(topic.pattern, name) is not None


def _hosts(topic: BrokerTopic) -> set[str]:
    return set(topic.log.cluster.rpartition("//")[2].split(","))
