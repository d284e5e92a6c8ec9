"""Files for tests of folders, made by other programs than Headgate."""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyarrow import orc, parquet

Row = dict[str, Any]

AVRO = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": ["null", "string"]}],
}


def rows(first: int, count: int) -> list[Row]:
    """Return rows with a number and a text."""
    return [{"n": n, "text": f"text {n} é😀"} for n in range(first, first + count)]


def publish(file: Path, content: bytes) -> Path:
    """Let a file appear whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    making = file.with_name(f".{file.name}.making")
    making.write_bytes(content)
    making.replace(file)
    return file


def encode(form: str, content: Sequence[Row], *, compression: str = "none") -> bytes:
    """Return a file with rows."""
    match form:
        case "json":
            return squeeze("".join(json.dumps(row) + "\n" for row in content).encode(), compression)
        case "text":
            return squeeze("".join(row["text"] + "\n" for row in content).encode(), compression)
        case "csv":
            out = io.StringIO(newline="")
            writer = csv.DictWriter(out, list(content[0]))
            writer.writeheader()
            writer.writerows(content)
            return squeeze(out.getvalue().encode(), compression)
        case "parquet" | "orc":
            sink = pa.BufferOutputStream()
            write_table(form, pa.Table.from_pylist(list(content)), sink, compression)
            return bytes(sink.getvalue().to_pybytes())
        case "avro":
            made = io.BytesIO()
            codec = {"none": "null", "gzip": "deflate", "zstd": "zstandard"}.get(compression)
            fastavro.writer(made, AVRO, content, codec=codec or compression, sync_interval=2000)
            return made.getvalue()
        case _:
            raise ValueError(form)


def write_table(form: str, table: pa.Table, sink: Any, compression: str) -> None:
    if form == "parquet":
        parquet.write_table(table, sink, compression=compression, row_group_size=100)
    else:
        name = {"none": "uncompressed", "gzip": "zlib"}.get(compression, compression)
        orc.write_table(table, sink, compression=name, stripe_size=4096, batch_size=64)


def squeeze(content: bytes, compression: str) -> bytes:
    """Return compressed content; Snappy in the blocks that Hadoop's programs write."""
    match compression:
        case "none":
            return content
        case "gzip":
            return gzip.compress(content)
        case "zstd":
            return bytes(pa.compress(content, codec="zstd", asbytes=True))
        case "snappy":
            block = pa.compress(content, codec="snappy", asbytes=True)
            return struct.pack(">II", len(content), len(block)) + bytes(block)
        case _:
            raise ValueError(compression)


SUFFIX = {"none": "", "gzip": ".gz", "zstd": ".zst", "snappy": ".snappy"}
EXTENSION = {
    "json": ".jsonl",
    "csv": ".csv",
    "text": ".txt",
    "parquet": ".parquet",
    "orc": ".orc",
    "avro": ".avro",
}


def file_name(form: str, name: str, compression: str) -> str:
    """Return the name that such a file usually has."""
    of_lines = form in ("json", "csv", "text")
    return name + EXTENSION[form] + (SUFFIX[compression] if of_lines else "")
