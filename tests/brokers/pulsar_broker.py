"""A real Pulsar broker for tests, and what tests do with it: make topics, write, read them all."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulsar
from eventually import eventually

from headgate.brokers import lifecycle
from headgate.brokers.broker import Broker, BrokerOptions
from headgate.brokers.pulsar import PULSAR
from headgate.brokers.pulsar_settings import TOKEN, find_security
from headgate.brokers.security import AUTHORITY

_PATIENCE_S = 30
_NAMESPACE = "public/default"
_QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


@dataclass(frozen=True, slots=True)
class Record:
    """A message as a reader of the Python client gets it.

    Attributes:
        value: Empty where there was none: Pulsar does not tell them apart.
        at: Its message id: ledger, entry, place in its batch (-1 outside of one).
    """

    value: bytes
    key: str
    properties: Mapping[str, str]
    partition: int
    at: tuple[int, int, int]
    publish_ms: int
    event_ms: int


@dataclass(frozen=True, slots=True)
class PulsarBroker:
    """A broker in a folder of the test's own; it may be stopped, killed and started again.

    Attributes:
        settings: The broker's own, over those it has by default.
        found: Where it is, which stays the same over restarts.
    """

    data: Path
    secure: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The host and the port."""
        return self.found["address"]

    @property
    def url(self) -> str:
        """What `--on` takes."""
        return self.found["url"]

    @property
    def service(self) -> str:
        """What a client connects to."""
        return f"{'pulsar+ssl' if self.secure else 'pulsar'}://{self.address}"

    @property
    def admin(self) -> str:
        """The address of its administration."""
        asked = urllib.parse.urlsplit(self.url).query
        return urllib.parse.parse_qs(asked)["admin"][0]

    def start(self) -> Broker:
        """Start it where it does not run."""
        options = BrokerOptions(
            data=self.data,
            port=None if self.found else 0,
            secure=self.secure,
            settings=self.settings,
        )
        broker, _ = lifecycle.start(PULSAR, options)
        self.found.update(address=broker.address or "", url=broker.url or "")
        return broker

    def stop(self) -> None:
        """Stop it; its records stay."""
        lifecycle.stop(PULSAR, self.data)

    def kill(self) -> None:
        """End it as a power failure would."""
        pid = lifecycle.look(PULSAR, self.data).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def client(self, **options: Any) -> pulsar.Client:
        """Return a client; whoever asks for it closes it."""
        access = find_security(self.data)
        if access is not None:
            token = (self.data / TOKEN).read_text()
            options.setdefault("authentication", pulsar.AuthenticationToken(token))
            options["tls_trust_certs_file_path"] = str(self.data / AUTHORITY)
        options = {"operation_timeout_seconds": _PATIENCE_S, "logger": _QUIET, **options}
        return pulsar.Client(self.service, **options)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return what the administration answers, as JSON values; None where it says nothing.

        Args:
            path: What follows /admin/v2/.
        """
        access = find_security(self.data)
        request = urllib.request.Request(
            f"{self.admin}/admin/v2/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Content-Type": "application/json",
                **({} if access is None else access.headers()),
            },
        )
        trust = None if access is None else access.trust()
        with urllib.request.urlopen(request, timeout=_PATIENCE_S, context=trust) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def make_topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        namespace: str = _NAMESPACE,
        deduplicated: bool = False,
    ) -> str:
        """Make a topic, of a name that no other test has unless one is given; return its name.

        Args:
            partitions: 0 for a plain topic.
        """
        topic = name or f"t-{uuid.uuid4().hex[:12]}"
        path = f"persistent/{namespace}/{topic}"
        if partitions:
            self.ask("PUT", f"{path}/partitions", partitions)
        else:
            self.ask("PUT", path)
        if deduplicated:
            self.ask("POST", f"{path}/deduplicationEnabled", True)
        return topic

    def drop_topic(self, name: str, *, namespace: str = _NAMESPACE) -> None:
        """Remove a topic and its records."""
        path = f"persistent/{namespace}/{name}"
        partitions = f"{path}/partitions" if self.partitions(name, namespace=namespace) else path
        self.ask("DELETE", f"{partitions}?force=true")

    def drop_topics(self) -> None:
        """Remove every topic but the broker's own."""
        path = f"persistent/{_NAMESPACE}"
        partitioned = self.ask("GET", f"{path}/partitioned")
        plain = [name for name in self.ask("GET", path) if "-partition-" not in name]
        for name in sorted({each.rpartition("/")[2] for each in (*partitioned, *plain)}):
            if not name.startswith("__"):
                self.drop_topic(name)

    def partitions(self, topic: str, *, namespace: str = _NAMESPACE) -> int:
        """Return how many partitions a topic has; 0 for a plain one."""
        count: int = self.ask("GET", f"persistent/{namespace}/{topic}/partitions")["partitions"]
        return count

    def send(
        self,
        topic: str,
        values: Iterable[bytes | str | None],
        *,
        key: str | None = None,
        partition: int | None = None,
        properties: Mapping[str, str] | None = None,
        event_ms: int | None = None,
        namespace: str = _NAMESPACE,
        **producer: Any,
    ) -> None:
        """Write records and wait until the broker has them all.

        Args:
            partition: All go to this one; None leaves it to the client.
            producer: What the client's create_producer takes, such as batching_enabled.
        """
        name = _full(topic, namespace, partition)
        failed: list[Any] = []

        def told(result: Any, _: Any) -> None:
            if result != pulsar.Result.Ok:
                failed.append(result)

        client = self.client()
        try:
            sender = client.create_producer(name, block_if_queue_full=True, **producer)
            for value in values:
                content = value.encode() if isinstance(value, str) else value
                sender.send_async(
                    content,
                    told,
                    partition_key=key,
                    properties=dict(properties or {}),
                    event_timestamp=event_ms,
                )
            sender.flush()
        finally:
            client.close()
        assert failed == []

    def read(self, topic: str, *, namespace: str = _NAMESPACE) -> list[Record]:
        """Return every record of a topic, by partition and message id."""
        count = self.partitions(topic, namespace=namespace)
        client = self.client()
        try:
            return [
                record
                for partition in (range(count) if count else [None])
                for record in _read_to_the_end(client, _full(topic, namespace, partition))
            ]
        finally:
            client.close()

    def values(self, topic: str, *, namespace: str = _NAMESPACE) -> list[bytes]:
        """Return the value of every record of a topic, by partition and message id."""
        return [record.value for record in self.read(topic, namespace=namespace)]

    def changes(self, topic: str) -> list[tuple[bytes, bytes | None]]:
        """Return the key and the value of every record, in the order of each partition."""
        return [(each.key.encode(), each.value or None) for each in self.read(topic)]

    def marks(self, topic: str) -> list[str]:
        """Return what every record says of where it came from."""
        return [each.properties["headgate"] for each in self.read(topic)]

    def truncate(self, topic: str, *, namespace: str = _NAMESPACE) -> None:
        """Remove the records of a topic, read or not.

        Pulsar refuses this while a job moves its subscription forward.
        """

        def is_done() -> bool:
            try:
                self.ask("DELETE", f"persistent/{namespace}/{topic}/truncate")
            except urllib.error.HTTPError as error:
                if "Reset cursor in progress" in str(error):
                    return False
                raise
            return True

        eventually(is_done)


def _full(topic: str, namespace: str, partition: int | None) -> str:
    end = "" if partition is None else f"-partition-{partition}"
    return f"persistent://{namespace}/{topic}{end}"


def _open_reader(client: pulsar.Client, name: str) -> Any:
    """Open a reader at the beginning; a broker that has just come back may need some tries."""
    deadline = time.monotonic() + 4 * _PATIENCE_S
    while True:
        try:
            return client.create_reader(name, pulsar.MessageId.earliest)
        except pulsar.PulsarException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _read_to_the_end(client: pulsar.Client, name: str) -> list[Record]:
    partition = name.rpartition("-partition-")[2]
    reader = _open_reader(client, name)
    read: list[Record] = []
    try:
        while reader.has_message_available():
            message = reader.read_next(_PATIENCE_S * 1000)
            at = message.message_id()
            read.append(
                Record(
                    value=message.data(),
                    key=message.partition_key(),
                    properties=message.properties(),
                    partition=int(partition) if partition.isdecimal() else 0,
                    at=(at.ledger_id(), at.entry_id(), at.batch_index()),
                    publish_ms=message.publish_timestamp(),
                    event_ms=message.event_timestamp(),
                )
            )
    finally:
        reader.close()
    return read
