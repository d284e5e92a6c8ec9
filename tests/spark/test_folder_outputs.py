"""Folders as outputs: every format as independent libraries read it, and when files appear."""

from __future__ import annotations

import base64
import json
import threading
import urllib.parse
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from bench import Bench, bag, refused, stop_now
from eventually import eventually
from folder_outputs import (
    Row,
    query,
    read_avro,
    read_csv,
    read_json,
    read_orc,
    read_parquet,
    staged,
    text_of,
    visible,
)
from pyarrow import parquet

from headgate import Flow, Folder

TYPES = """
    id BIGINT NOT NULL, name STRING, price DOUBLE, share FLOAT, amount DECIMAL(12,2),
    count INT, small SMALLINT, tiny TINYINT, ok BOOLEAN, day DATE, at TIMESTAMP, data BINARY,
    tags ARRAY<STRING>, user STRUCT<id: BIGINT, name: STRING, since: DATE>,
    attrs MAP<STRING, BIGINT>, lines ARRAY<STRUCT<item: BIGINT, price: DECIMAL(8,3)>>
"""


def samples() -> list[Row]:
    """Return rows of all types as Python has them, nulls and extremes among them."""
    full: Row = {
        "id": 1,
        "name": 'é😀 "x", y',
        "price": 0.1,
        "share": 0.5,
        "amount": Decimal("1234567890.12"),
        "count": -(2**31),
        "small": 2**15 - 1,
        "tiny": -128,
        "ok": True,
        "day": date(2026, 11, 19),
        "at": datetime(2026, 11, 19, 23, 59, 59, 123456, tzinfo=UTC),
        "data": b"\x00\xff\n",
        "tags": ["a", None, ""],
        "user": {"id": 7, "name": None, "since": date(1582, 10, 4)},
        "attrs": {"b": 2, "a": None},
        "lines": [{"item": 1, "price": Decimal("0.125")}, None],
    }
    empty = dict.fromkeys(full) | {"id": 2}
    old = full | {
        "id": 3,
        "name": "",
        "amount": Decimal("-0.01"),
        "day": date(1, 1, 1),
        "at": datetime(1500, 2, 28, 1, 2, 3, 4, tzinfo=UTC),
        "tags": [],
        "attrs": {},
        "lines": [],
        "data": b"",
    }
    many = [full | {"id": 10 + n, "count": n, "tags": ["t"] * (n % 5)} for n in range(3000)]
    return [full, empty, old, *many]


def as_json(row: Row) -> Row:
    """Return a row as JSON has it."""

    def form(value: Any) -> Any:
        match value:
            case datetime():
                return value.isoformat().replace("+00:00", "Z")
            case date():
                return value.isoformat()
            case bytes():
                return base64.b64encode(value).decode()
            case Decimal():
                return float(value)
            case list():
                return [form(each) for each in value]
            case dict():
                return {name: form(each) for name, each in value.items()}
            case _:
                return value

    return {name: form(value) for name, value in row.items()}


def source_line(row: Row) -> str:
    """Return a row as a record of the input; decimals keep all digits."""
    return json.dumps(as_json(row), default=str)


FOLDERS = {
    "parquet": [None, "none", "snappy", "gzip"],
    "orc": [None, "none", "snappy", "gzip"],
    "avro": [None, "none", "zstd"],
    "json": [None, "gzip", "zstd"],
}


# pyarrow reads the timestamps of ORC as nanoseconds, which begin in 1677.
IN_ARROW = datetime(1700, 2, 28, 1, 2, 3, 4, tzinfo=UTC)


def folder_name(form: str, compression: str | None) -> str:
    return f"{form}-{compression or 'usual'}"


def all_formats(root: Path) -> Flow:
    """Return a flow that writes the same rows in every format."""
    flow = Flow("copy")
    rows = flow.stream("rows", TYPES)
    for form, compressions in FOLDERS.items():
        for compression in compressions:
            name = folder_name(form, compression)
            shown = rows
            if form == "orc":
                shown = rows.with_columns(
                    at=f"CASE WHEN id = 3 THEN TIMESTAMP '{IN_ARROW.isoformat()}' ELSE at END"
                )
            shown.to(Folder(root / name, format=form, compression=compression))
    flat = rows.select("id", "name", "amount", "day", "at", "ok")
    flat.to(Folder(root / "csv", format="csv"))
    flat.to(Folder(root / "csv-gzip", format="csv", compression="gzip", header=False))
    rows.select("name").where("name IS NOT NULL").to(Folder(root / "text", format="text"))
    rows.to(Folder(root / "days", format="parquet", partition_by=["day", "tiny"]))
    return flow


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """Give a folder of folders, one for each format, with the same rows."""
    bench = Bench(tmp_path_factory.mktemp("formats"))
    rows = samples()
    bench.put("rows", [source_line(row) for row in rows])
    bench.run(all_formats(bench.root), max_batch=300_000)
    assert bench.read("dead-letters") == []
    return bench.root, rows


def keyed(rows: list[Row]) -> dict[Any, Row]:
    """Return rows by their id, of which each is there once."""
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), Counter(row["id"] for row in rows).most_common(3)
    return found


@pytest.mark.parametrize("compression", FOLDERS["parquet"])
def test_pyarrow_reads_parquet_as_it_was(
    written: tuple[Path, list[Row]], compression: str | None
) -> None:
    root, rows = written
    folder = root / folder_name("parquet", compression)
    assert keyed(read_parquet(folder)) == keyed(rows)
    schema = parquet.ParquetFile(visible(folder)[0]).schema_arrow
    assert str(schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert str(schema.field("amount").type) == "decimal128(12, 2)"


@pytest.mark.parametrize("compression", FOLDERS["orc"])
def test_pyarrow_reads_orc_as_it_was(
    written: tuple[Path, list[Row]], compression: str | None
) -> None:
    root, rows = written
    wanted = keyed(rows)
    wanted[3] = {**wanted[3], "at": IN_ARROW}
    assert keyed(read_orc(root / folder_name("orc", compression))) == wanted


@pytest.mark.parametrize("compression", FOLDERS["avro"])
def test_fastavro_reads_avro_as_it_was(
    written: tuple[Path, list[Row]], compression: str | None
) -> None:
    root, rows = written
    assert keyed(read_avro(root / folder_name("avro", compression))) == keyed(rows)


@pytest.mark.parametrize("compression", FOLDERS["json"])
def test_json_lines_are_what_python_writes(
    written: tuple[Path, list[Row]], compression: str | None
) -> None:
    root, rows = written
    found = keyed(read_json(root / folder_name("json", compression)))
    for number, row in keyed(rows).items():
        wanted = as_json(row)
        assert Decimal(str(found[number].pop("amount") or 0)) == (
            (wanted.pop("amount") and row["amount"]) or 0
        )
        times = found[number].pop("at"), wanted.pop("at")
        assert [t and datetime.fromisoformat(t) for t in times] == [row["at"], row["at"]]
        assert found[number] == wanted


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_duckdb_reads_the_folder_without_hidden_files(
    written: tuple[Path, list[Row]], form: str
) -> None:
    root, rows = written
    pattern = root / folder_name(form, None) / "*.*"
    read = {"parquet": "read_parquet", "json": "read_json"}[form]
    found = query(f"SELECT count(*), sum(id), max(user.id), count(name) FROM {read}('{pattern}')")
    names = sum(row["name"] is not None for row in rows)
    assert found == [(len(rows), sum(row["id"] for row in rows), 7, names)]


def test_csv_is_what_pythons_own_module_reads(written: tuple[Path, list[Row]]) -> None:
    root, rows = written
    found = keyed([{**row, "id": int(row["id"])} for row in read_csv(root / "csv")])
    for number, row in keyed(rows).items():
        line = found[number]
        assert line["name"] == (row["name"] or "")
        assert line["amount"] == ("" if row["amount"] is None else str(row["amount"]))
        assert line["day"] == ("" if row["day"] is None else row["day"].isoformat())
        assert line["ok"] == ("" if row["ok"] is None else "true")
    plain = query(f"SELECT count(*), sum(id) FROM read_csv('{root}/csv/*.csv')")
    assert plain == [(len(rows), sum(row["id"] for row in rows))]
    bare = [text_of(file) for file in visible(root / "csv-gzip")]
    assert sum(text.count("\n") for text in bare) == len(rows)


def test_text_is_a_line_for_each_row(written: tuple[Path, list[Row]]) -> None:
    root, rows = written
    lines = [line for file in visible(root / "text") for line in text_of(file).split("\n")[:-1]]
    assert Counter(lines) == Counter(row["name"] for row in rows if row["name"] is not None)


def test_partition_columns_are_in_the_names_of_folders_alone(
    written: tuple[Path, list[Row]],
) -> None:
    root, rows = written
    files = visible(root / "days")
    assert {file.parent.relative_to(root / "days").as_posix() for file in files} == {
        "day=2026-11-19/tiny=-128",
        "day=0001-01-01/tiny=-128",
        "day=__HIVE_DEFAULT_PARTITION__/tiny=__HIVE_DEFAULT_PARTITION__",
    }
    for file in files:
        assert {"day", "tiny"}.isdisjoint(parquet.ParquetFile(file).schema_arrow.names)
    wanted = Counter((row["day"], row["tiny"]) for row in rows)
    table = ds.dataset(root / "days", format="parquet", partitioning="hive").to_table()
    found = Counter(
        (day and date.fromisoformat(str(day)), tiny)
        for day, tiny in zip(table["day"].to_pylist(), table["tiny"].to_pylist(), strict=True)
    )
    assert found == wanted
    duck = query(
        f"SELECT day, count(*) FROM read_parquet('{root}/days/*/*/*.parquet', "
        "hive_partitioning = true) WHERE day IS NOT NULL GROUP BY day ORDER BY day"
    )
    assert [count for _, count in duck] == [1, len(rows) - 2]


def test_nothing_hidden_is_left_but_the_record_of_what_was_published(
    written: tuple[Path, list[Row]],
) -> None:
    root, _ = written
    for folder in root.iterdir():
        hidden = [f for f in folder.glob("_headgate/**/*") if f.is_file()]
        assert {file.parent.name for file in hidden} <= {"rolls"}
        assert len(hidden) in (0, 2)


def copying(folder: Folder, schema: str = "id BIGINT, shop STRING") -> Flow:
    flow = Flow("copy")
    flow.stream("rows", schema).to(folder)
    return flow


def test_values_of_partitions_are_escaped_as_hive_does(bench: Bench) -> None:
    shops = ["a/b", "x=y", "100 %", "é😀", "", None, "..", "a:b", "_hidden", "\x01", "c" * 240]
    rows = [{"id": n, "shop": shop} for n, shop in enumerate(shops)]
    bench.put("rows", [*rows, {"id": 99, "shop": "l" * 300}])
    out = bench.root / "out"
    bench.run(copying(Folder(out, partition_by="shop")))
    found = {
        json.loads(line)["id"]: urllib.parse.unquote(file.parent.name.removeprefix("shop="))
        for file in visible(out)
        for line in text_of(file).splitlines()
    }
    null = "__HIVE_DEFAULT_PARTITION__"
    assert found == {n: shop or null for n, shop in enumerate(shops)}
    assert {file.parent.parent for file in visible(out)} == {out}
    (letter,) = bench.read("dead-letters")
    assert "too long for the name of a folder" in letter["reason"]


def test_thousands_of_partitions_are_written_one_after_the_other(bench: Bench) -> None:
    rows = [{"id": n, "shop": f"shop {n * 7919 % 1500}"} for n in range(4500)]
    bench.put("rows", rows)
    out = bench.root / "out"
    folder = Folder(out, format="csv", partition_by="shop")
    bench.run(copying(folder, "id BIGINT NOT NULL, shop STRING"), parallelism=2)
    found = [
        {"id": int(row["id"]), "shop": urllib.parse.unquote(file.parent.name[5:])}
        for file in visible(out)
        for row in read_csv_file(file)
    ]
    assert bag(found) == bag(rows)
    assert len(visible(out)) == 1500


def read_csv_file(file: Path) -> list[Row]:
    header, *lines = text_of(file).splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def test_files_are_published_by_size_while_the_job_runs(bench: Bench) -> None:
    rows = [{"id": n, "shop": f"{n:0100d}"} for n in range(20_000)]
    for start in range(0, len(rows), 1000):
        bench.put("rows", rows[start : start + 1000])
    out = bench.root / "out"
    done = bench.run(copying(Folder(out, roll_size="200KB")), max_batch=50_000, parallelism=2)
    sizes = [file.stat().st_size for file in visible(out)]
    assert bag(read_json(out)) == bag(rows)
    total = sum(sizes)
    # Far fewer than batches, and of about the size: the first are larger, since rows compress.
    assert done.totals.batches > 20
    assert 3 <= len(sizes) <= total / 100_000
    assert max(sizes) < total / 2


def test_an_idle_job_publishes_by_age(bench: Bench) -> None:
    out = bench.root / "out"
    bench.put("rows", [{"id": 1, "shop": "a"}])

    def stop_when_visible() -> None:
        eventually(lambda: visible(out), what="a file by age")
        stop_now()

    looking = threading.Thread(target=stop_when_visible)
    looking.start()
    done = bench.run(copying(Folder(out, roll_age="1s")), until_caught_up=False)
    looking.join()
    assert done.state == "STOPPED"
    assert bag(read_json(out)) == bag([{"id": 1, "shop": "a"}])
    assert not staged(out)


def test_an_output_needs_columns_beside_those_of_its_folders(bench: Bench) -> None:
    bench.put("rows", [])
    with refused("BAD_OUTPUT"):
        bench.run(copying(Folder(bench.root / "a", partition_by=["id", "shop"])))
    with refused("UNKNOWN_COLUMN"):
        bench.run(copying(Folder(bench.root / "b", partition_by=["day"])))
