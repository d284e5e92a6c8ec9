"""Tables of PostgreSQL as options of the kernel's source and sink."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from headgate.connectors.contract.connector import Reading
from headgate.connectors.postgres.descriptor import Postgres
from headgate.errors import HeadgateError

SOURCE = "io.headgate.kernel.postgres.PostgresSource"
IS_PARTITIONED = False
HOLDS_LINES = False


def modules(_topic: Postgres) -> tuple[str, ...]:
    """Return the kernel's module of databases."""
    return (Postgres.kind,)


def record_options(_topic: Postgres) -> dict[str, Any]:
    """Return nothing: a record is a JSON object."""
    return {}


def source_options(topic: Postgres, reading: Reading) -> dict[str, str]:
    """Return the options of the source.

    Raises:
        HeadgateError: BAD_START: a table is read as a whole.
    """
    start = reading.start or "earliest"
    if not start.startswith("{") and start != "earliest":
        raise HeadgateError(
            "BAD_START",
            f"cannot start reading {topic.describe()} at {start!r}: a table is read as a whole",
            hint="omit --start for it",
        )
    schema, table = topic.target
    every = topic.every
    return {
        "client": topic.log.to_text(),
        "table": json.dumps({"schema": schema, "table": table, "query": topic.query}),
        "columns": json.dumps([column["name"] for column in reading.schema.get("fields", ())]),
        "key": json.dumps(reading.key),
        "topic": topic.name,
        "start": start,
        "refresh.ms": "0" if every is None else str(every // timedelta(milliseconds=1)),
        "max.bytes": str(reading.max_batch),
        "max.record": str(reading.max_record),
        "splits": str(reading.splits),
    }


def output_option(topic: Postgres) -> dict[str, str]:
    """Return the options of the sink.

    Raises:
        HeadgateError: BAD_TOPIC: the topic is a query.
    """
    if topic.query is not None:
        raise HeadgateError(
            "BAD_TOPIC",
            f"cannot write to {topic.describe()}: a query can only be read",
            hint=f"name the table: Postgres({topic.name!r}, url={topic.url!r}, table='…')",
        )
    schema, table = topic.target
    key = None if topic.key is None else list(topic.key)
    target = json.dumps({"schema": schema, "table": table, "key": key})
    return {"kind": topic.kind, "topic": target}


def replaces(topic: Postgres, key: str | None) -> bool:
    """Return True if the output has a key: then rows are updated."""
    return key is not None or topic.key is not None


def prepare(_topic: Postgres, _partitions: int, _lineage: str | None) -> None:
    """Do nothing: `headgate setup` creates tables, and the kernel checks them."""


def file_spec(_topic: Postgres) -> None:
    """Return None: a table takes rows."""
