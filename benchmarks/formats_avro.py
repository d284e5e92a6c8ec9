"""The store's topics in Avro: made of those in JSON, and read back as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import fastavro
from confluent_kafka import Producer, TopicPartition
from kafka_outputs import KafkaReader, read_pieces

_HEADER = 5
_MANY = 10_000
_TYPES = {int: "long", float: "double", str: "string"}


class Registry(Protocol):
    """Where schemas are registered."""

    def add(self, subject: str, schema: Any) -> int:
        """Register a schema, and return its id."""

    def get(self, id_: int) -> Any:
        """Return a schema."""


def copy_topic(servers: str, registry: Registry, name: str, since: list[TopicPartition]) -> int:
    """Write the records of a topic from some place on to one in Avro, each to its partition."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50})
    schema, header, count = None, b"", 0
    for piece in read_pieces(servers, since):
        for message in piece:
            value = json.loads(bytes(message.value() or b""))
            if schema is None:
                fields = [{"name": name, "type": _TYPES[type(of)]} for name, of in value.items()]
                raw = {"type": "record", "name": name, "fields": fields}
                id_ = registry.add(f"avro-{name}-value", raw)
                schema, header = fastavro.parse_schema(raw), b"\0" + id_.to_bytes(4, "big")
            out = io.BytesIO()
            out.write(header)
            fastavro.schemaless_writer(out, schema, value)
            key: Any = message.key()
            partition: Any = message.partition()
            while True:
                try:
                    producer.produce(f"avro-{name}", out.getvalue(), key, partition)
                    break
                except BufferError:
                    producer.poll(0.1)
            count += 1
            if count % _MANY == 0:
                producer.poll(0)
    if producer.flush(60):
        raise RuntimeError(f"not all records of avro-{name} were sent")
    return count


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads topics in Avro as if they were those in JSON."""

    json: KafkaReader
    registry: Registry

    def find_ends(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Return where topics end now."""
        return self.json.find_ends([f"avro-{topic}" for topic in topics])

    def beginning(self, topic: str) -> list[TopicPartition]:
        """Return where a topic begins."""
        return self.json.beginning(f"avro-{topic}")

    def read(self, since: list[TopicPartition]) -> Iterator[tuple[str, bytes]]:
        """Yield topic and value of all records a committed reader finds up to the end."""
        schemas: dict[bytes, Any] = {}
        for topic, record in self.json.read(since):
            header = record[:_HEADER]
            if header not in schemas:
                schema = self.registry.get(int.from_bytes(header[1:], "big"))
                schemas[header] = fastavro.parse_schema(schema)
            source = io.BytesIO(record)
            source.seek(_HEADER)
            value = fastavro.schemaless_reader(source, schemas[header], None)
            yield topic.removeprefix("avro-"), json.dumps(value, separators=(",", ":")).encode()
