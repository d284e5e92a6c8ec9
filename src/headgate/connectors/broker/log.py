"""The logs of brokers, as values: the part that all brokers share."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from headgate._references import check_secret
from headgate.connectors.broker.options import bad_client_option, option_text, query_text
from headgate.connectors.contract.connector import KeyValues, Records, Sink
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.topics import MadeTopic, Topics, WantedTopic

if TYPE_CHECKING:
    # Topics import this module: each has its log.
    from headgate.connectors.broker.topic import BrokerTopic


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
