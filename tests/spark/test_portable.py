"""Portable savepoints: state as Parquet, equal to a plain reference, and taken back as changed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from bench import Bench, refused
from doc_blocks import ROOT, read_blocks
from pyspark.sql import SparkSession
from store_reference import StoreReference

from headgate.engine.portable.state import TableForm, taken_rows, write_rows
from headgate.engine.session.session import open_session
from headgate.engine.settings import HeldFiles, SparkSettings
from headgate.flow.schemas.schema import Field, ListOf, Primitive, Schema, schema_of
from headgate.jobs.checkpoints.portable import take_portable
from headgate.jobs.job_folder import JobFolder

FIXTURE = ROOT / "tests" / "fixtures" / "portable-0.6.tar.gz"
FLOW = ROOT / "examples" / "orders" / "flow.py"
JOB = "order-enrichment"


def user(number: int, name: str) -> dict[str, Any]:
    times = {"createdAt": 1, "deletedAt": -1, "mergedAt": -1, "parentUserId": -1}
    return {"id": number, "firstName": name, "lastName": "Ash", "emailAddress": "a@x", **times}


def item(number: int) -> dict[str, Any]:
    words = {"adjective": "red", "category": "toys", "modifier": "big", "name": "Ball"}
    return {"id": number, "createdAt": 1, **words, "price": 2.5}


def order(number: int, of: int) -> dict[str, Any]:
    names = {"itemName": "Ball", "itemCategory": "toys", "price": 2.5}
    times = {"createdAt": 1, "paidAt": 2}
    return {"invoiceId": number, "lineItemId": 1, "userId": of, "itemId": 1, **names, **times}


def mend(savepoint: Path) -> None:
    """Change a savepoint as the guide shows it."""
    [block] = [
        each
        for each in read_blocks(ROOT / "docs" / "guide" / "portable-savepoints.md")
        if each.kind == "python"
    ]
    names: dict[str, Any] = {}
    exec(compile(block.text, "portable-savepoints.md", "exec"), names)
    names["edit_users"](savepoint)


def rows_of(savepoint: Path, uid: str) -> dict[str, Any]:
    """Return the rows of an operator as DuckDB reads them, by key; None for a marker."""
    with duckdb.connect() as db:
        found = db.execute(
            f"SELECT key, deleted, row FROM read_parquet('{savepoint}/state/{uid}/*.parquet')"
        ).fetchall()
    assert len({key for key, _, _ in found}) == len(found)
    assert all(deleted is (row is None) for _, deleted, row in found)
    return {key: row for key, _, row in found}


def test_a_job_starts_from_a_savepoint_that_the_guides_example_changed(bench: Bench) -> None:
    bench.put("items", [item(1), item(2)])
    bench.put("users", [user(number, f"U{number}") for number in range(1, 7)])
    bench.put("users", [user(1, "Ann"), {"id": 6, "$deleted": True}])
    bench.put("orders", [order(1, of=1), order(2, of=9)])
    reference = StoreReference()
    reference.take(bench.topics)
    bench.run(FLOW, parallelism=2)

    folder = bench.root / "taken"
    taken = take_portable(JobFolder(bench.home, JOB), to=folder)

    assert (taken.folder, taken.rows) == (folder, {"with-user": 6, "with-item": 2})
    users = {str(number): row for number, row in reference.users.items()}
    assert rows_of(folder, "with-user") == {**users, "6": None}
    assert rows_of(folder, "with-item") == {str(n): row for n, row in reference.items.items()}
    assert [each.name for each in bench.home.rglob("*.tmp-*")] == []

    mend(folder)
    # Nothing but the savepoint may be of use: what was read is not there any more.
    for topic in ("users", "items"):
        for file in (bench.topics / topic).glob("*.jsonl"):
            file.write_bytes(b"\n" * file.stat().st_size)
    bench.put("users", [user(5, "Eve")])
    bench.put("orders", [order(10 + number, of=number) for number in range(1, 8)])
    done = bench.run(FLOW, restore_from=str(folder), parallelism=3)

    assert done.totals.inputs == {"items": 0, "orders": 7, "users": 1}
    new = [row for row in bench.read("enriched-orders") if row["invoiceId"] > 10]
    assert {row["invoiceId"]: row["user"]["firstName"] for row in new} == {
        11: "Ann",
        12: "Beatrice",
        14: "U4",
        15: "Eve",
        17: "Gus",
    }
    assert {row["invoiceId"] for row in bench.read("missing-users")} == {2, 13, 16}
    # A change of a row that was added by hand takes its place; and the state is the run's own now.
    bench.put("users", [user(7, "Gil")])
    mended = folder.rename(bench.root / "gone")
    bench.put("orders", [order(21, of=7), order(22, of=2)])
    bench.run(FLOW)
    last = [row for row in bench.read("enriched-orders") if row["invoiceId"] > 20]
    assert {row["invoiceId"]: row["user"]["firstName"] for row in last} == {
        21: "Gil",
        22: "Beatrice",
    }
    assert json.loads((mended / "portable.json").read_text())["format"] == 1


def test_a_savepoint_of_release_0_6_is_restored(bench: Bench) -> None:
    with tarfile.open(FIXTURE) as archive:
        if hasattr(tarfile, "data_filter"):
            # Python knows filters from 3.11.4 on.
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(bench.root)
    # Behind the savepoint: a price that is older than the one in state, and orders.
    bench.put("prices", [{"shop": "s", "item": 1, "price": 5, "at": "2026-10-30T00:00:00Z"}])
    asked = [(7, "s", 1), (8, "s", 1), (3, 'x"y', 3), (-1, "é☃", 0), (5, "s", 2)]
    bench.put(
        "orders",
        [
            {"n": n, "user": user, "shop": shop, "item": item}
            for n, (user, shop, item) in enumerate(asked)
        ],
    )
    done = bench.run(bench.root / "flow.json", restore_from=str(bench.root / "portable"))

    assert done.totals.inputs == {"orders": 5, "prices": 1, "users": 0}
    assert sorted(bench.read("priced"), key=lambda row: row["n"]) == [
        {"n": 0, "name": "Änne", "tags": [], "price": 9.99},
        {"n": 2, "name": "U3", "tags": ["t0", None], "price": 3.25},
        {"n": 3, "name": "", "tags": None, "price": 0.25},
    ]
    # Deleted rows are markers in there.
    assert bench.read("missing-users") == [{"n": 1}]
    assert bench.read("missing-prices") == [{"n": 4}]


# The rest is about files alone, and needs no job.

RICH = schema_of(
    "id BIGINT NOT NULL, name STRING NOT NULL, level INT, share FLOAT, price DECIMAL(10,2), "
    "born DATE, seen TIMESTAMP, raw BINARY, ok BOOLEAN, tags ARRAY<STRING>, "
    "counts MAP<STRING, SMALLINT>, home STRUCT<street: STRING NOT NULL, lines: ARRAY<INT>>"
)
VALUES: dict[str, Any] = {
    "id": 1,
    "name": "Ann",
    "level": 3,
    "share": 0.5,
    "price": Decimal("9.99"),
    "born": date(1999, 12, 31),
    "seen": datetime(2026, 11, 15, 10, 5, tzinfo=UTC),
    "raw": b"\x00\xff",
    "ok": True,
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "home": {"street": "High", "lines": [1, 2]},
}
BARE: dict[str, Any] = dict.fromkeys(VALUES) | {"id": 2, "name": "Bob"}


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    spark = open_session(SparkSettings(parallelism=2, log_file=folder / "logs" / "spark.log"))
    try:
        yield spark
    finally:
        spark.stop()


def put(folder: Path, rows: list[dict[str, Any]], name: str = "a.parquet") -> HeldFiles:
    """Write rows as Arrow takes them out of plain values: its own types, its own order."""
    folder.mkdir(parents=True, exist_ok=True)
    found = pa.Table.from_pylist(rows).schema
    types = pa.schema([each.with_type(_with_map(each.type)) for each in found])
    pq.write_table(pa.Table.from_pylist(rows, types), folder / name)
    return HeldFiles(folder)


def _with_map(found: pa.DataType) -> pa.DataType:
    """Return a type with a map for `counts`, which Arrow takes for a struct by itself."""
    if not pa.types.is_struct(found):
        return found
    counts = pa.map_(pa.string(), pa.int64())
    return pa.struct([each.with_type(counts) if each.name == "counts" else each for each in found])


def form(schema: Schema | str, *before: Schema) -> TableForm:
    return TableForm((*before, schema_of(schema)), ("id",))


def test_rows_come_back_as_they_were_whoever_wrote_them(tmp_path: Path) -> None:
    root = tmp_path / "a folder [of {mine}*]"
    shuffled = dict(reversed(VALUES.items()))
    version: dict[str, Any] = {"lane": 0, "sequence": 2.0, "timestamp": None}
    given: list[dict[str, Any]] = [
        {"key": "1", "row": shuffled, **version},
        {"key": None, "deleted": None, "row": {"name": "Bob", "id": 2}, **version},
        {"key": "3", "deleted": True, "row": None, "lane": 7, "sequence": 8.0, "timestamp": 9.0},
    ]
    with session(tmp_path) as spark:
        put(root / "in", given[:1], "one.parquet")
        held = put(root / "in", given[1:], "two.data")
        (root / "in" / "_notes").write_text("no Parquet")
        state = taken_rows(spark, held, form(RICH), uid="with-user")
        assert write_rows(spark, state, form(RICH), root / "out") == 3
        wider = RICH.with_fields(
            Field("mail", Primitive("string"), True),
            Field("marks", ListOf(Primitive("int"), False), False, [1, 2]),
        )
        write_rows(spark, state, form(wider, RICH), root / "wider")
        again = taken_rows(spark, HeldFiles(root / "out"), form(RICH), uid="with-user")
        assert sorted(again.collect()) == sorted(state.collect())
        # A savepoint of the old schema, taken by a flow with the new one.
        grown = taken_rows(spark, HeldFiles(root / "out"), form(wider, RICH), uid="with-user")
        write_rows(spark, grown, form(wider, RICH), root / "grown")

    old = pq.read_table(root / "out").to_pylist()
    rows = {each["key"]: each["row"] for each in old}
    plain = {"seen": VALUES["seen"], "counts": [("x", 1)]}
    assert rows == {"1": {**VALUES, **plain}, "2": BARE, "3": None}
    assert {each["key"]: each["sequence"] for each in old} == {"1": None, "2": None, "3": 8}
    assert {each["key"]: each["deleted"] for each in old} == {"1": False, "2": False, "3": True}
    added = {"mail": None, "marks": [1, 2]}
    for name in ("wider", "grown"):
        found = {each["key"]: each["row"] for each in pq.read_table(root / name).to_pylist()}
        assert found == {"1": {**VALUES, **plain, **added}, "2": {**BARE, **added}, "3": None}


REFUSED: list[tuple[list[dict[str, Any]], str, str]] = [
    ([{"row": {"id": 1, "name": 5}}], "PORTABLE_COLUMN", "'row.name' must be STRING, got BIGINT"),
    ([{"key": "1"}], "PORTABLE_COLUMN", "'row' is missing"),
    (
        [{"key": 1, "row": {"id": 1, "name": "A"}}],
        "PORTABLE_COLUMN",
        "'key' must be STRING, got BIGINT",
    ),
    ([{"row": {"id": 1, "name": None}}, {"row": {"id": 2, "name": "B"}}], "PORTABLE_ROW", "null"),
    ([{"key": "2", "row": {"id": 1, "name": "A"}}], "PORTABLE_ROW", "its row is of key '1'"),
    ([{"row": {"id": 1, "name": "A"}}] * 2, "PORTABLE_ROW", "key '1': it occurs 2 times"),
    ([{"deleted": True, "row": {"id": None, "name": "A"}}], "PORTABLE_ROW", "deleted and has no"),
    (
        [{"row": {"id": 1, "name": "A"}, "lane": 0, "sequence": 1.5, "timestamp": 0}],
        "PORTABLE_UNREADABLE",
        "'sequence' holds 1.5",
    ),
    (
        [{"row": {"id": 1, "name": "A", "level": 1 << 40}}],
        "PORTABLE_UNREADABLE",
        "CAST_OVERFLOW",
    ),
]


def test_rows_that_are_no_state_of_the_table_are_refused(tmp_path: Path) -> None:
    table = form("id BIGINT NOT NULL, name STRING NOT NULL, level INT")
    with session(tmp_path) as spark:
        for number, (rows, code, told) in enumerate(REFUSED):
            held = put(tmp_path / str(number), rows)
            with refused(code) as caught:
                taken_rows(spark, held, table, uid="with-user")
            assert told in caught.value.message, caught.value
            assert "'with-user'" in caught.value.message
        empty = tmp_path / "empty"
        empty.mkdir()
        for content in (None, b"PAR1 and nothing else"):
            if content is not None:
                (empty / "a.parquet").write_bytes(content)
            with refused("PORTABLE_UNREADABLE") as caught:
                taken_rows(spark, HeldFiles(empty), table, uid="with-user")
            assert "Traceback" not in caught.value.message
