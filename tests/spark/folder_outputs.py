"""What readers of a folder see: visible files alone, read by other libraries than Headgate's."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
from pyarrow import orc, parquet

Row = dict[str, Any]


def visible(folder: Path) -> list[Path]:
    """Return the files that a reader of the folder sees."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and _is_seen(file, folder))


def _is_seen(file: Path, folder: Path) -> bool:
    parts = file.relative_to(folder).parts
    return not any(part.startswith(("_", ".")) for part in parts)


def staged(folder: Path) -> list[Path]:
    """Return the files with rows that are not visible yet."""
    return sorted(folder.glob("_headgate/*/staged/*.rows"))


def text_of(file: Path) -> str:
    """Return the text of a file of lines, whatever compressed it."""
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    if file.suffix == ".zst":
        content = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return content.decode()


def read_json(folder: Path) -> list[Row]:
    """Return the rows of JSON lines."""
    return [json.loads(line) for file in visible(folder) for line in text_of(file).splitlines()]


def read_csv(folder: Path) -> list[Row]:
    """Return the rows of CSV, all of them texts."""
    return [row for file in visible(folder) for row in _csv_rows(file)]


def _csv_rows(file: Path) -> Iterator[Row]:
    yield from csv.DictReader(text_of(file).splitlines(keepends=True))


def read_parquet(folder: Path) -> list[Row]:
    """Return the rows of Parquet, without the columns in the names of folders."""
    return [
        row
        for file in visible(folder)
        for row in parquet.ParquetFile(file).read().to_pylist(maps_as_pydicts="strict")
    ]


def read_orc(folder: Path) -> list[Row]:
    """Return the rows of ORC."""
    return [
        row
        for file in visible(folder)
        for row in orc.ORCFile(file).read().to_pylist(maps_as_pydicts="strict")
    ]


def read_avro(folder: Path) -> list[Row]:
    """Return the rows of Avro's container files."""
    rows: list[Row] = []
    for file in visible(folder):
        with file.open("rb") as content:
            rows += fastavro.reader(content)  # type: ignore[arg-type]
    return rows


def query(sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query of DuckDB, whose session is in UTC."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(sql).fetchall()
