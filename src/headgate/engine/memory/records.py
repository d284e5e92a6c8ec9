"""Records of a flow in memory, from Python values and back. No Spark."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from headgate.errors import HeadgateError
from headgate.flow.formats.avro import Avro
from headgate.flow.formats.changes import Debezium, Upsert
from headgate.flow.formats.columnar import Orc, Parquet
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.csv_records import join_fields
from headgate.flow.formats.format import Format
from headgate.flow.formats.plain import JSON, Json, Raw, Text
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Output, Source

_DECIMAL = re.compile(r'"\\u0000([^"]*)\\u0000"')


def in_plain_formats(graph: Graph) -> Graph:
    """Return a graph without formats of registries and of whole files: they become JSON."""
    nodes = (
        replace(node, format=JSON)
        if isinstance(node, Source | Output) and isinstance(node.format, Avro | Parquet | Orc)
        else node
        for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes))


def write_record(source: Source | None, value: Any) -> bytes:
    """Return a dict or a dataclass as a record of a source; text and bytes stay as they are.

    Args:
        source: None for one that the flow does not have, which is refused later.
    """
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    if source is None:
        return b""
    match source.format:
        case Csv() as form if isinstance(plain, Mapping):
            names = form.columns or source.schema.names
            return join_fields(form, [_field(plain.get(name)) for name in names]).encode()
        case Text() | Raw() if isinstance(plain, Mapping) and tuple(plain) == source.schema.names:
            return write_record(source, plain[source.schema.names[0]])
        case Json() | Avro() | Debezium():
            text = json.dumps(plain, ensure_ascii=False, default=_plain)
            return _DECIMAL.sub(r"\1", text).encode()
    raise HeadgateError(
        "INPUT_UNKNOWN",
        f"cannot write a record of source {source.id!r} in format {source.format.tag!r}: it is a "
        f"{type(value).__name__}",
        hint="pass the record as bytes or text",
    )


def read_record(form: Format, record: bytes) -> Any:
    """Return a record of an output as Python has it: a dict, text or bytes, by the format."""
    match form:
        case Json() | Upsert():
            return json.loads(record)
        case Text() | Csv():
            return record.decode()
    return record


def _field(value: Any) -> str | None:
    """Return a value as a field of CSV."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _plain(value).strip("\0")


def _plain(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        # The codec of the standard library knows numbers as floats only.
        return f"\0{value:f}\0"
    raise HeadgateError(
        "INPUT_UNKNOWN",
        f"cannot write a record: it contains a {type(value).__name__}",
        hint="pass a dict, a dataclass, or the record as text or bytes",
    )
