"""A topic on Pulsar, as a value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from headgate.connectors.options import check_pattern
from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.names import DEFAULT_NAMESPACE, check_namespace, full_name
from headgate.connectors.pulsar.starts import STARTS
from headgate.flow.json_values import JsonObject, as_text, find_text, get_object, get_text
from headgate.flow.names import check_topic_name
from headgate.flow.topics import register_topic


@register_topic
@dataclass(frozen=True, slots=True)
class Pulsar:
    """A topic on Pulsar, independent of the flow's other topics.

    Attributes:
        name: The topic's name, in the flow and in its namespace.
        service: `pulsar://host:port` or `pulsar+ssl://host:port`, further hosts after commas; the
            default port is 6650, or 6651 with TLS.
        admin: The address of the admin API; by default `http://HOST:8080`, or `https://HOST:8443`
            with TLS, at the first host.
        namespace: `tenant/namespace`.
        options: Client options by the Java client's names, and `token`; secrets must be references,
            `${env:NAME}` or `${file:/path}`.
        config: A properties file with further options, read when a client is created; a relative
            path starts at the job's working directory.
        pattern: A Java regular expression: all topics of the namespace whose whole name matches are
            read as one, including topics created later. Such a topic cannot be written.
        start: The start of reading without a stored position: `earliest` (the default), `latest`, a
            time (UTC if it has no zone), or `ledger:entry` by partition.
    """

    name: str
    service: str = field(kw_only=True)
    admin: str | None = field(kw_only=True, default=None)
    namespace: str = field(kw_only=True, default=DEFAULT_NAMESPACE)
    options: Mapping[str, str] = field(kw_only=True, default_factory=dict, hash=False)
    config: str | os.PathLike[str] | None = field(kw_only=True, default=None)
    pattern: str | None = field(kw_only=True, default=None)
    start: str | datetime | Mapping[int, str] | None = field(kw_only=True, default=None)

    kind: ClassVar[str] = "pulsar"
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic_name(self.name)
        check_namespace(self.namespace)
        config = None if self.config is None else os.fspath(self.config)
        client = ClientSpec.of(self.service, self.admin, self.options, config)
        start = STARTS.check_start(self.start, topic=self.name)
        is_of_one = start is not None and start.startswith(STARTS.prefix)
        check_pattern(self.name, self.pattern, positions=STARTS.positions if is_of_one else None)
        for attribute, value in (
            ("service", client.service),
            ("admin", client.admin),
            ("options", dict(client.options)),
            ("config", client.config),
            ("start", start),
        ):
            object.__setattr__(self, attribute, value)

    @property
    def client(self) -> ClientSpec:
        """The connection of its cluster."""
        config = None if self.config is None else os.fspath(self.config)
        options = tuple(sorted(self.options.items()))
        return ClientSpec(self.service, self.admin or "", options, config)

    @property
    def full_name(self) -> str:
        """The full name: `persistent://tenant/namespace/name`."""
        return full_name(self.namespace, self.name)

    @property
    def start_text(self) -> str | None:
        """The start of reading as text; None for the default."""
        return self.start if isinstance(self.start, str) else None

    def describe(self) -> str:
        """Return the name and the service."""
        name = self.name if self.namespace == DEFAULT_NAMESPACE else f"{self.namespace}/{self.name}"
        what = name if self.pattern is None else f"{name} (topics {self.pattern})"
        return f"pulsar {what} at {self.service}"

    def to_json(self) -> JsonObject:
        """Return every field; secrets are references."""
        return {
            "name": self.name,
            "service": self.service,
            "admin": self.admin,
            "namespace": self.namespace,
            "options": dict(self.options),
            "config": self.client.config,
            "pattern": self.pattern,
            "start": self.start_text,
        }

    @classmethod
    def from_json(cls, holder: JsonObject) -> Pulsar:
        """Return the topic that `to_json` wrote."""
        options = get_object(holder, "options")
        return cls(
            get_text(holder, "name"),
            service=get_text(holder, "service"),
            admin=find_text(holder, "admin"),
            namespace=get_text(holder, "namespace"),
            options={name: as_text(value, repr(name)) for name, value in options.items()},
            config=find_text(holder, "config"),
            pattern=find_text(holder, "pattern"),
            start=find_text(holder, "start"),
        )
