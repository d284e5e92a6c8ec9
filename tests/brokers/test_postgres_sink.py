"""Rows in PostgreSQL: every type, upserts, refusals, and what is noted of batches."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, refused
from postgres_server import Database

from headgate import Flow
from headgate.connectors.contract.setup import SetupOptions
from headgate.connectors.contract.written import Answer, Batches, Writers
from headgate.connectors.registry import get_connector
from headgate.jobs.topics.setup import set_up

ROW = "id BIGINT NOT NULL, word STRING"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def copying(bench: Bench, database: Database, schema: str = ROW, **more: Any) -> Flow:
    """Return a flow that writes what it reads into table `out`."""
    flow = Flow("copy")
    key = more.pop("by", None)
    flow.stream("in", schema).to(database.topic("out", **more), key=key)
    return flow


TYPES = (
    "id BIGINT NOT NULL, tiny TINYINT, small SMALLINT, mid INT, truth BOOLEAN, f FLOAT, d DOUBLE, "
    "money DECIMAL(38,18), word STRING, raw BINARY, day DATE, at TIMESTAMP, nums ARRAY<INT>, "
    "words ARRAY<STRING>, times ARRAY<TIMESTAMP>, nest STRUCT<a: INT, b: STRING>, "
    "map MAP<STRING, DOUBLE>, deep ARRAY<ARRAY<INT>>"
)
MICROS = "2026-11-19T21:00:00.123456Z"
VALUES: list[dict[str, Any]] = [
    {
        "id": 9_223_372_036_854_775_807,
        "tiny": -128,
        "small": 32767,
        "mid": -2_147_483_648,
        "truth": True,
        "f": 0.1,
        "d": 5e-324,
        "money": 12345678901234567890.123456789012345678,
        "word": 'a "quoted" \\ word\n\u2028 ünï 😀',
        "raw": base64.b64encode(bytes(range(256))).decode(),
        "day": "0001-01-01",
        "at": MICROS,
        "nums": [1, None, -3],
        "words": ["a,b", '"', "NULL", "", None],
        "times": [MICROS],
        "nest": {"a": 1, "b": "x"},
        "map": {"k": 1.5},
        "deep": [[1], [2, 3]],
    },
    {"id": -1, "word": "", "raw": "", "nums": [], "words": [], "map": {}},
    {"id": 0, "d": 1.7976931348623157e308, "at": "1969-12-31T23:59:59.999999Z"},
]


def test_every_type_arrives_exactly(bench: Bench, database: Database) -> None:
    money = "12345678901234567890.123456789012345678"
    lines = [json.dumps(row) for row in VALUES]
    lines[0] = lines[0].replace(json.dumps(VALUES[0]["money"]), money)
    bench.put("in", lines)
    flow = copying(bench, database, TYPES, by="id")
    set_up(str(bench.flow_file(flow)), f"files:{bench.topics}", SetupOptions())
    bench.run(flow)
    rows = database.rows("SELECT * FROM out ORDER BY id DESC")
    moment = dt.datetime(2026, 11, 19, 21, 0, 0, 123456, dt.UTC)
    (first, zero, empty) = rows
    assert first == (
        9_223_372_036_854_775_807,
        -128,
        32767,
        -2_147_483_648,
        True,
        pytest.approx(0.1, rel=1e-6),
        5e-324,
        Decimal(money),
        VALUES[0]["word"],
        bytes(range(256)),
        dt.date(1, 1, 1),
        moment,
        [1, None, -3],
        ["a,b", '"', "NULL", "", None],
        [moment],
        {"a": 1, "b": "x"},
        {"k": 1.5},
        [[1], [2, 3]],
    )
    assert (zero[6], zero[11]) == (
        1.7976931348623157e308,
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
    )
    assert empty[8:10] == ("", b"")
    assert empty[12:14] == ([], [])
    assert empty[16] == {}
    assert all(value is None for value in empty[1:8])


def test_the_last_row_of_a_key_wins_also_within_a_batch(bench: Bench, database: Database) -> None:
    database.run("CREATE TABLE out (id bigint PRIMARY KEY, word text)")
    bench.put("in", [{"id": n % 7, "word": f"w{n}"} for n in range(20_000)])
    flow = copying(bench, database, by="id")
    bench.run(flow)
    expected = {n % 7: f"w{n}" for n in range(20_000)}
    assert dict(database.rows("SELECT id, word FROM out")) == expected
    bench.put("in", [{"id": 3, "word": None}, {"id": 9, "word": "new"}])
    bench.run(flow)
    assert dict(database.rows("SELECT id, word FROM out")) == {**expected, 3: None, 9: "new"}


def test_keys_that_only_the_database_takes_for_equal_end_with_the_last(
    bench: Bench, database: Database
) -> None:
    database.run(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    database.run('CREATE TABLE out (id bigint, word text COLLATE "loose" PRIMARY KEY)')
    bench.put("in", [{"id": 1, "word": "A"}, {"id": 2, "word": "b"}, {"id": 3, "word": "a"}])
    bench.run(copying(bench, database, "id BIGINT, word STRING", by="word"))
    assert sorted(database.rows("SELECT id, lower(word) FROM out")) == [(2, "b"), (3, "a")]


def test_without_a_key_every_row_is_appended_and_with_several_columns_they_are_the_key(
    bench: Bench, database: Database
) -> None:
    database.run("CREATE TABLE out (place bigserial PRIMARY KEY, id bigint, word varchar)")
    database.run("CREATE TABLE pairs (id bigint, word text, PRIMARY KEY (word, id))")
    flow = Flow("both")
    rows = flow.stream("in", ROW)
    rows.to(database.topic("out"))
    rows.to(database.topic("pairs", key=("id", "word")))
    bench.put("in", [{"id": n % 3, "word": "x"} for n in range(30)])
    bench.run(flow)
    assert database.rows("SELECT id, count(*) FROM out GROUP BY id ORDER BY id") == [
        (0, 10),
        (1, 10),
        (2, 10),
    ]
    assert len(database.rows("SELECT * FROM pairs")) == 3


REFUSED_TABLES = {
    "id int PRIMARY KEY, word text": "column 'id' is integer",
    "id bigint PRIMARY KEY, word varchar(3), more int NOT NULL": "column 'more' must not be null",
    "id bigint PRIMARY KEY": "it has no column for 'word'",
    "id bigint, word text": "no primary key or unique index",
    "id bigint UNIQUE, word text": "no primary key or unique index",
    "id bigint PRIMARY KEY, word bytea": "column 'word' is bytea",
    "id bigint PRIMARY KEY, word text GENERATED ALWAYS AS ('x') STORED": "computes column 'word'",
}


@pytest.mark.parametrize("columns", REFUSED_TABLES)
def test_a_table_that_does_not_fit_is_refused_before_the_first_batch(
    bench: Bench, database: Database, columns: str
) -> None:
    database.run(f"CREATE TABLE out ({columns})")
    bench.put("in", [{"id": 1, "word": "x"}])
    with refused("TABLE_MISMATCH") as error:
        bench.run(copying(bench, database, by="id"))
    assert "table public.out" in error.value.message
    assert REFUSED_TABLES[columns] in error.value.message


def test_a_table_that_is_missing_is_refused(bench: Bench, database: Database) -> None:
    bench.put("in", [{"id": 1, "word": "x"}])
    with refused("TOPIC_MISSING"):
        bench.run(copying(bench, database))


REFUSED_ROWS = {
    "word varchar(3)": ("word", "too long"),
    "word uuid": ("word", "uuid"),
    "word text NOT NULL": ("word", "null value"),
    "word text CHECK (word <> 'longer')": ("out_word_check", "violates check"),
}


@pytest.mark.parametrize("column", REFUSED_ROWS)
def test_a_row_that_the_database_refuses_fails_the_job_by_table_key_and_column(
    bench: Bench, database: Database, column: str
) -> None:
    database.run(f"CREATE TABLE out (id bigint PRIMARY KEY, {column})")
    good = "7e57d004-2b97-0e7a-b45f-5387367791cd" if "uuid" in column else "ok"
    bad = None if "NOT NULL" in column else "longer"
    bench.put("in", [{"id": 1, "word": good}, {"id": 42, "word": bad}, {"id": 3, "word": good}])
    with refused("ROW_REFUSED") as error:
        bench.run(copying(bench, database, by="id"), restart="fixed-delay:5,0s")
    for part in ("public.out", "id 42", *REFUSED_ROWS[column]):
        assert part in error.value.message
    assert not error.value.retryable
    # Other tasks of the batch may have committed theirs.
    assert not database.rows("SELECT * FROM out WHERE id = 42")


def test_dead_letters_can_go_to_a_table(bench: Bench, database: Database) -> None:
    flow = Flow("letters", dead_letters=database.topic("letters"))
    flow.stream("in", ROW).to("out")
    set_up(str(bench.flow_file(flow)), f"files:{bench.topics}", SetupOptions())
    bench.put("in", [b"no json", {"id": 1}])
    bench.run(flow)
    assert database.rows("SELECT topic, raw FROM letters") == [("in", b"no json")]


def test_the_batches_of_a_run_are_known(bench: Bench, database: Database) -> None:
    database.run("CREATE TABLE out (id bigint, word text)")
    flow = copying(bench, database)
    bench.put("in", [{"id": n} for n in range(5)])
    bench.run(flow)
    notes = database.rows(
        "SELECT lineage, epoch, written_rows FROM headgate_epochs WHERE task >= 0"
    )
    lineage, batch, _rows = notes[0]
    assert sum(note[2] for note in notes) == 5
    topic = database.topic("out")
    writing = get_connector(topic).writing
    writers = Writers(lineage, f"headgate.copy.{lineage}", ())
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    found = writing.find_written({"out": topic}, writers, Batches(batch, None, moment))["out"]
    assert (found.answer, found.rows) == (Answer.YES, 5)
    after = writing.find_written({"out": topic}, writers, Batches(batch + 1, None, moment))["out"]
    assert after.answer is Answer.NO
