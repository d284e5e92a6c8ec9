"""A Kafka cluster, and a topic on it, as values.

Options have the Java client's names. `sasl.username`, `sasl.password` and `ssl.ca.location` (a PEM
file) are supported too. The prefixes `consumer.`, `producer.` and `admin.` limit an option to that
kind of client.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar

from headgate.connectors.broker.log import BrokerLog, Sender
from headgate.connectors.broker.options import bad_client_option, parse_query, parse_servers
from headgate.connectors.broker.topic import BrokerTopic
from headgate.connectors.contract.setup import SetupOptions, TopicRole, wanted_topic
from headgate.connectors.contract.starts import OFFSETS, StartSyntax
from headgate.connectors.contract.topics import Topics, WantedTopic
from headgate.connectors.kafka import jaas
from headgate.errors import HeadgateError
from headgate.flow.topics import register_topic

SCHEME = "kafka://"
DEFAULT_PORT = 9092
READ_COMMITTED = "read_committed"
# Names of the option with the isolation level, the one that counts first.
_ISOLATION = ("consumer.isolation.level", "isolation.level")

bad_option = functools.partial(bad_client_option, "Kafka")


@dataclass(frozen=True, slots=True)
class KafkaLog(BrokerLog):
    """A cluster: `kafka://host:9092?name=value`.

    Attributes:
        servers: `host:port`, separated by commas.
    """

    servers: str

    broker: ClassVar[str] = "Kafka"
    option: ClassVar[str] = "linger.ms"
    set_elsewhere: ClassVar[Mapping[str, str]] = {"bootstrap.servers": "use servers='host:9092'"}

    @classmethod
    def of(
        cls,
        servers: str,
        options: Mapping[str, object] | None = None,
        config: str | os.PathLike[str] | None = None,
    ) -> KafkaLog:
        """Return the checked cluster.

        Raises:
            HeadgateError: BAD_SERVERS, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
        """
        hosts = parse_servers(servers, port=DEFAULT_PORT, fault=_bad_servers)
        file = os.fspath(config) if config else None
        return cls(",".join(hosts), options=cls.check_options(options), config=file)

    @classmethod
    def parse(cls, text: str) -> KafkaLog:
        """Return the cluster for a value of `--on` that begins with `kafka://`.

        Raises:
            HeadgateError: BAD_SERVERS, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
        """
        servers, _, query = text.removeprefix(SCHEME).partition("?")
        servers, _, path = servers.partition("/")
        if path:
            # A user name and a password may precede the servers.
            address = f"{SCHEME}{servers.rpartition('@')[2]}"
            raise HeadgateError(
                "BAD_SERVERS",
                f"cannot use {address}/{path} as a log: the flow names the topics, so the address "
                "must not have a path",
                hint=f"use --on {address}",
            )
        options = dict(parse_query(query, broker=cls.broker))
        config = options.pop("config", None)
        return cls.of(servers, options, config)

    @property
    def cluster(self) -> str:
        return self.servers

    @property
    def address(self) -> str:
        return f"{SCHEME}{self.servers}"

    @staticmethod
    def find_secrets(name: str, value: str) -> list[str] | None:
        is_login = name.lower().endswith("sasl.jaas.config")
        return jaas.find_secrets(value) if is_login else None

    def bind(self, name: str) -> Kafka:
        return Kafka(name, **self.fields())

    def open_topics(self) -> Topics:
        # Embedded topics do not need Kafka's client library.
        from headgate.connectors.kafka.topics.topics import KafkaTopics

        return KafkaTopics(self)

    def open_sender(self) -> AbstractContextManager[Sender]:
        from headgate.connectors.kafka.topics.producing import KafkaSender

        return KafkaSender(self)

    def wanted(self, name: str, role: TopicRole, options: SetupOptions) -> WantedTopic:
        return wanted_topic(name, role, options)


@register_topic
@dataclass(frozen=True, slots=True)
class Kafka(BrokerTopic):
    """A topic on Kafka, independent of the flow's other topics.

    Attributes:
        name: The topic's name, in the flow and on the cluster.
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

    servers: str = field(kw_only=True)

    kind: ClassVar[str] = "kafka"
    starts: ClassVar[StartSyntax] = OFFSETS

    @property
    def log(self) -> KafkaLog:
        return KafkaLog.of(self.servers, self.options, self.config)

    @property
    def isolation(self) -> str:
        """The isolation level at which jobs read it."""
        return next(
            (self.options[name] for name in _ISOLATION if name in self.options), READ_COMMITTED
        )


def _bad_servers(problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SERVERS",
        f"cannot connect to Kafka: servers must be host:port, separated by commas; {problem}",
        hint="use localhost:9092, or host1:9092,host2:9092",
    )
