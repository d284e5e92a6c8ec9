"""Python functions in a flow: every row once, in order, whatever becomes of the worker."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bench import Bench, bag, refused
from memory_flow import MemoryFlow, as_bytes
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord
from headgate.windows import collect, count, first, last, tumbling


@dataclass
class Part:
    name: str
    size: int | None


@dataclass
class Order:
    id: int
    price: float
    tags: list[str] = field(default_factory=list)
    part: Part | None = None
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class Total:
    id: int
    total: float
    part: Part | None


ORDERS: list[dict[str, Any]] = [
    {"id": 1, "price": 2.5, "tags": ["a", "b"], "part": {"name": "p", "size": None}},
    {"id": 2, "price": 4.0, "tags": [], "part": None, "counts": {"x": 1, "y": 2}},
    {"id": 3, "price": 0.0, "tags": ["c"], "part": {"name": "q", "size": 7}},
]


def total(order: Order) -> Total:
    return Total(order.id, order.price * 2, order.part)


def numbered(spark: SparkSession, function: Any, **options: Any) -> MemoryFlow:
    flow = Flow("functions")
    flow.stream("in", "n BIGINT").map("f", function, schema="n BIGINT", **options).to("out")
    return MemoryFlow(spark, flow)


def numbers(*values: int) -> list[dict[str, int]]:
    return [{"n": value} for value in values]


def failure(memory: MemoryFlow, *values: int) -> str:
    with pytest.raises(Py4JJavaError) as failed:
        memory.feed("in", *numbers(*values))
    return str(failed.value.java_exception.toString())


# What functions make of rows.


def test_map_gives_what_the_function_returns(spark: SparkSession) -> None:
    flow = Flow("functions")
    flow.stream("orders", Order).map("total", total).to("out")
    rows = MemoryFlow(spark, flow).feed("orders", *ORDERS)["out"]
    assert rows == [
        {"id": row["id"], "total": row["price"] * 2, "part": row["part"]} for row in ORDERS
    ]


def test_functions_follow_each_other_and_rows_for_others_pass(spark: SparkSession) -> None:
    least = 1.0

    def words(order: Order) -> Iterator[Part]:
        for tag in order.tags:
            yield Part(tag, order.id)

    flow = Flow("functions")
    stream = flow.stream("orders", Order)
    stream.filter(lambda row: row.price > least).flat_map("words", words).to("out")
    stream.to("all")
    rows = MemoryFlow(spark, flow).feed("orders", *ORDERS)
    assert rows["out"] == [{"name": "a", "size": 1}, {"name": "b", "size": 1}]
    assert [row["id"] for row in rows["all"]] == [1, 2, 3]


def test_map_batches_takes_tables(spark: SparkSession) -> None:
    import pyarrow.compute as pc

    def double(table: pa.Table) -> pa.Table:
        kept = table.filter(pc.greater(table["price"], 0.0))
        return kept.set_column(1, "price", pc.multiply(kept["price"], 2.0))

    flow = Flow("functions")
    flow.stream("orders", "id BIGINT, price DOUBLE").map_batches("double", double).to("out")
    rows = MemoryFlow(spark, flow).feed("orders", *ORDERS)["out"]
    assert rows == [{"id": 1, "price": 5.0}, {"id": 2, "price": 8.0}]


def test_functions_work_before_between_and_behind_operators(spark: SparkSession) -> None:
    flow = Flow("functions")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    orders = flow.stream("orders", "id BIGINT, user BIGINT, at BIGINT", event_time="at")
    twice = orders.flat_map(
        "twice", lambda row: [row, row._replace(id=-row.id)], schema="id BIGINT, user BIGINT"
    )
    with_user = twice.enrich("with-user", users, on="user", into="row")
    shout = with_user.matched.map(
        "shout",
        lambda row: {"id": row.id, "name": row.row.name.upper()},
        schema="id BIGINT, name STRING",
    )
    windows = shout.key_by("name").window("per-name", tumbling("1s"))
    windows.aggregate(orders=count(), ids=collect("id", limit=100)).updates.map(
        "sorted",
        lambda row: {"name": row.name, "orders": row.orders, "ids": sorted(row.ids)},
        schema="name STRING, orders BIGINT, ids ARRAY<BIGINT>",
    ).to("out")
    with_user.missing.to("missing")
    memory = MemoryFlow(spark, flow)
    users_first = [
        MemoryRecord("users", as_bytes({"id": n, "name": f"u{n}"}), sequence=n) for n in range(3)
    ]
    events = [
        MemoryRecord("orders", as_bytes({"id": n, "user": n % 4, "at": 100}), offset=n, sequence=n)
        for n in range(1, 41)
    ]
    first = memory.batch([*users_first, *events], seed=7)
    last = memory.batch([], watermark=1000)
    assert sorted(row["id"] for row in first["missing"]) == sorted(
        sign * n for n in range(1, 41) if n % 4 == 3 for sign in (-1, 1)
    )
    assert sorted(last["out"], key=lambda row: str(row["name"])) == [
        {
            "name": f"U{user}",
            "orders": 20,
            "ids": sorted(sign * n for n in range(1, 41) if n % 4 == user for sign in (-1, 1)),
        }
        for user in range(3)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_record_keep_their_order_behind_a_shuffle(spark: SparkSession, seed: int) -> None:
    flow = Flow("functions")
    users = flow.table("users", "id BIGINT NOT NULL", key="id", load="together")
    spread = flow.stream("in", "n BIGINT").flat_map(
        "spread",
        lambda row: [{"n": row.n, "k": 1, "i": i} for i in range(row.n % 5)],
        schema="n BIGINT, k BIGINT, i BIGINT",
    )
    again = spread.flat_map(
        "again",
        lambda row: [{"n": row.n, "i": row.i, "j": j, "k": 1} for j in range(3)],
        schema="n BIGINT, i BIGINT, j BIGINT, k BIGINT",
    )
    with_user = again.enrich("with-user", users, on="k", into="user")
    with_user.missing.to("out", key="k")
    with_user.matched.to("matched")
    rows = MemoryFlow(spark, flow).feed("in", *numbers(*range(30)), seed=seed)["out"]
    wanted = [(n, i, j) for n in range(30) for i in range(n % 5) for j in range(3)]
    assert [(row["n"], row["i"], row["j"]) for row in rows] == wanted


@pytest.mark.parametrize("seed", range(4))
def test_the_first_and_last_of_rows_of_one_record_are_the_same_in_any_order(
    spark: SparkSession, seed: int
) -> None:
    flow = Flow("edges")
    spread = flow.stream("in", "n BIGINT, at BIGINT", event_time="at").flat_map(
        "spread",
        lambda _: [{"k": 1, "i": (i * 7) % 10} for i in range(10)],
        schema="k BIGINT, i BIGINT",
    )
    window = spread.key_by("k").window("w", tumbling("1s"))
    edges = window.aggregate(first=first("i"), last=last("i")).updates
    edges.select("first", "last").to("out")
    memory = MemoryFlow(spark, flow)
    memory.batch([MemoryRecord("in", as_bytes({"n": 1, "at": 5}))], seed=seed)
    assert memory.batch([], watermark=1000)["out"] == [{"first": 0, "last": 3}]


def test_more_rows_than_one_exchange_takes_all_come_back(spark: SparkSession) -> None:
    memory = numbered(spark, lambda row: {"n": row.n + 1})
    rows = memory.feed("in", *numbers(*range(20_000)))["out"]
    assert [row["n"] for row in rows] == list(range(1, 20_001))


@pytest.mark.long
def test_a_row_of_50_mb_passes(spark: SparkSession) -> None:
    flow = Flow("large")
    flow.stream("in", "text STRING").map(
        "f", lambda row: {"text": row.text[::-1], "size": len(row.text)},
        schema="text STRING, size BIGINT",
    ).to("out")  # fmt: skip
    text = random.Random(1).choice("ab") + "x" * (50 << 20)
    memory = MemoryFlow(spark, flow, max_record=64 << 20)
    (row,) = memory.feed("in", {"text": text})["out"]
    assert row == {"text": text[::-1], "size": len(text)}


def test_a_job_in_a_folder_with_a_long_path_calls_functions(
    spark: SparkSession, tmp_path: Path
) -> None:
    # The path of a Unix socket has at most 107 bytes, and a job's scratch folder may have more.
    deep = tmp_path / ("a-long-name" * 10)
    deep.mkdir()
    system = spark._jvm.System  # type: ignore[union-attr]
    before = system.setProperty("java.io.tmpdir", str(deep))
    try:
        assert numbered(spark, lambda row: {"n": row.n - 11}).feed("in", *numbers(12))["out"] == [
            {"n": 1}
        ]
    finally:
        system.setProperty("java.io.tmpdir", before)


def test_a_worker_sees_the_same_hash_zone_and_encoding_everywhere(spark: SparkSession) -> None:
    def about(_: Any) -> dict[str, str]:
        return {
            "text": f"{hash('headgate')} {time.tzname[0]} {sys.getfilesystemencoding()} "
            f"{os.environ['PYTHONHASHSEED']}"
        }

    flow = Flow("about")
    flow.stream("in", "n BIGINT").map("f", about, schema="text STRING").to("out")
    (row,) = MemoryFlow(spark, flow).feed("in", {"n": 1})["out"]
    assert row["text"].split()[1:] == ["UTC", "utf-8", "0"]


# What fails.


def fails_on_two(row: Any) -> dict[str, int]:
    if row.n == 2:
        raise ValueError("two is too much")
    return {"n": row.n}


def test_a_failing_function_fails_the_task_with_row_and_place(spark: SparkSession) -> None:
    text = failure(numbered(spark, fails_on_two), 1, 2, 3)
    assert "FUNCTION_FAILED: map 'f' failed on Row(n=2): ValueError: two is too much" in text
    assert "test_functions.py" in text


def test_a_failing_row_becomes_a_dead_letter_and_the_others_pass(spark: SparkSession) -> None:
    rows = numbered(spark, fails_on_two, on_error="dead-letter").feed("in", *numbers(1, 2, 3))
    assert rows["out"] == numbers(1, 3)
    (letter,) = rows["dead-letters"]
    assert (letter["code"], letter["source"], letter["offset"]) == ("FUNCTION_FAILED", "map 'f'", 1)
    assert letter["reason"].startswith("ValueError: two is too much (test_functions.py:")


def leave(row: Any) -> Any:
    sys.exit(f"row {row.n}")


def die(_: Any) -> Any:
    print("about to die", flush=True)
    os._exit(7)


def kill(_: Any) -> Any:
    os.kill(os.getpid(), 9)


def hog(_: Any) -> Any:
    return {"n": len(bytearray(2 << 30))}


def interrupt(_: Any) -> Any:
    raise KeyboardInterrupt


def cancel(_: Any) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (leave, "FUNCTION_FAILED: a function raised SystemExit: row 1"),
        (interrupt, "FUNCTION_FAILED: a function raised KeyboardInterrupt"),
        (cancel, "FUNCTION_FAILED: a function raised CancelledError"),
        (die, "PYTHON_WORKER_DIED: the worker of map 'f' ended: exit code 7; its last lines: "
              "about to die"),
        (kill, "PYTHON_WORKER_DIED: the worker of map 'f' ended: killed by signal 9"),
        (hog, "FUNCTION_FAILED: map 'f' failed on Row(n=1): MemoryError"),
    ],
)  # fmt: skip
def test_a_worker_that_ends_fails_the_task_and_the_next_one_is_new(
    spark: SparkSession, function: Any, message: str
) -> None:
    def sometimes(row: Any) -> Any:
        return function(row) if row.n == 1 else {"n": row.n}

    memory = numbered(spark, sometimes)
    assert message in failure(memory, 1)
    assert memory.feed("in", *numbers(2, 3))["out"] == numbers(2, 3)


def fork(row: Any) -> dict[str, int]:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return {"n": row.n}


def test_a_function_that_forks_gives_its_rows_once(spark: SparkSession) -> None:
    memory = numbered(spark, fork)
    # An answer of the child would be taken for that of the next call.
    for number in range(3):
        assert memory.feed("in", *numbers(number))["out"] == numbers(number)


SEEN: list[int] = []


def remember(row: Any) -> dict[str, int]:
    SEEN.append(row.n)
    return {"n": len(SEEN)}


def test_what_a_function_leaves_in_a_module_stays_in_its_worker(spark: SparkSession) -> None:
    memory = numbered(spark, remember)
    assert memory.feed("in", *numbers(7, 7))["out"] == numbers(1, 2)
    assert SEEN == []


# Whole jobs.


FLOW = """
from dataclasses import dataclass
from collections.abc import Iterator
from headgate import Flow
import beside_{number}

@dataclass
class Number:
    n: int

@dataclass
class Copy:
    n: int
    copy: int

def copies(row: Number) -> Iterator[Copy]:
    for copy in range(beside_{number}.count(row.n)):
        yield Copy(row.n, copy)

flow = Flow("copies")
made = flow.stream("in", Number).flat_map("copies", copies)
made.filter(lambda row: row.copy < LIMIT).to("out")
LIMIT = 2
"""


def test_a_job_calls_functions_of_its_file_and_of_modules_beside_it(bench: Bench) -> None:
    number = random.Random(bench.root.name).randrange(1 << 30)
    (bench.root / f"beside_{number}.py").write_text("def count(n):\n    return n % 4\n")
    file = bench.root / "flow.py"
    file.write_text(FLOW.format(number=number))
    bench.put("in", numbers(*range(500)))
    bench.run(file, parallelism=2)
    bench.put("in", numbers(*range(500, 1000)))
    bench.run(file, parallelism=2)
    wanted = [{"n": n, "copy": copy} for n in range(1000) for copy in range(min(n % 4, 2))]
    assert bench.bag("out") == bag(wanted)


def test_a_job_finds_a_function_that_is_not_deterministic(bench: Bench) -> None:
    flow = Flow("checked")
    flow.stream("in", "n BIGINT").map("f", remember, schema="n BIGINT").to("out")
    bench.put("in", numbers(7))
    with refused("FUNCTION_NOT_DETERMINISTIC") as error:
        bench.run(flow, parallelism=1, check_determinism=True)
    assert "{'n': 1} of row 0, then {'n': 2} of row 0" in error.value.message
    assert bench.read("out") == []


def test_a_job_that_fails_in_a_function_resumes_with_a_corrected_one(bench: Bench) -> None:
    def flow(function: Any) -> Flow:
        made = Flow("fixed")
        made.stream("in", "n BIGINT").map("f", function, schema="n BIGINT").to("out")
        return made

    bench.put("in", numbers(*range(10)))
    with refused("FUNCTION_FAILED") as error:
        bench.run(flow(fails_on_two), parallelism=1)
    assert "two is too much" in error.value.message
    bench.run(flow(lambda row: {"n": row.n * 10}), parallelism=1)
    assert bench.bag("out") == bag(numbers(*(n * 10 for n in range(10))))


def test_a_message_is_no_longer_than_an_array(spark: SparkSession) -> None:
    functions = spark.sparkContext._jvm.io.headgate.kernel.functions  # type: ignore[union-attr]
    body = functions.MessageBody("map 'f'", 10_000)
    for _ in range(10):
        body.write(bytes(1000), 0, 1000)
    with pytest.raises(Py4JJavaError) as failed:
        body.writeInt(1)
    shown = str(failed.value.java_exception.toString())
    assert "FUNCTION_MESSAGE_TOO_LARGE: map 'f': what one call needs has more than" in shown
    assert body.size() == 10_000
