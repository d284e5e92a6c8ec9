"""Async calls of whole flows: one answer for each row, the same in every repetition."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from located_flow import Order, located
from located_service import Service, check, orders, served
from memory_flow import MemoryFlow, as_bytes
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord


@pytest.fixture
def service() -> Iterator[Service]:
    """Give the service that the functions ask."""
    with served() as service:
        yield service


def feed(memory: MemoryFlow, rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Run one batch of orders, each at the position of its id, in any order."""
    records = [
        MemoryRecord("orders", as_bytes(row), sequence=row["id"], offset=row["id"]) for row in rows
    ]
    return {
        output: sorted(made, key=lambda row: int(row["id"]))
        for output, made in memory.batch(records).items()
    }


def test_recorded_answers_are_used_again_in_whatever_order_rows_come(
    spark: SparkSession, service: Service, tmp_path: Path, seed: int
) -> None:
    given = orders(120)
    # Each one is a new attempt of the first batch, which records in the same folder.
    flow = located(service.url, capacity=1)
    first = feed(MemoryFlow(spark, flow, answers=tmp_path), given)
    check(service, 120, first["nowhere"], first["failed"])
    asked = sum(service.calls.values())
    (tmp_path / "geo/0/.1.tmp").write_bytes(b"half a file")
    random.Random(seed).shuffle(given)
    assert feed(MemoryFlow(spark, flow, answers=tmp_path), given) == first
    assert sum(service.calls.values()) == asked

    # Some answers are missing, and the others are of a stage with other tasks.
    files = sorted((tmp_path / "geo/0").glob("*.answers"))
    assert len(files) == 2
    files[0].unlink()
    files[1].rename(files[1].with_name(files[1].name.replace("00000-00001-", "00004-00007-")))
    third = feed(MemoryFlow(spark, located(service.url, ordered=False), answers=tmp_path), given)
    check(service, 120, third["nowhere"], third["failed"])
    same = [row for row in third["nowhere"] if row in first["nowhere"]]
    again = [n for n, answers in service.given.items() if len(answers) == 2]
    assert len(same) == len(first["nowhere"]) - len(again)
    assert 0 < len(again) <= 100


def test_a_corrupted_file_of_answers_is_refused(
    spark: SparkSession, service: Service, tmp_path: Path
) -> None:
    flow = located(service.url)
    MemoryFlow(spark, flow, answers=tmp_path).feed("orders", *orders(20))
    (file,) = (tmp_path / "geo/0").glob("*.answers")
    whole = file.read_bytes()
    for content in (whole[:-1], whole[:40] + b"\xff" + whole[41:], b"", whole[:8] + b"\0\0\0\2"):
        file.write_bytes(content)
        with pytest.raises(Py4JJavaError) as failed:
            MemoryFlow(spark, flow, answers=tmp_path).feed("orders", *orders(20))
        assert "ANSWERS_CORRUPTED: cannot repeat a batch" in str(failed.value.java_exception)


def test_rows_leave_in_the_order_in_which_they_came_or_in_which_calls_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    async def later(row: Any) -> dict[str, int]:
        import asyncio

        await asyncio.sleep(0.05 * (6 - row.id))
        return {"id": row.id}

    given = orders(5)
    for ordered, wanted in ((True, [1, 2, 3, 4, 5]), (False, [5, 4, 3, 2, 1])):
        flow = Flow("order")
        flow.stream("in", Order).call("geo", later, schema="id BIGINT", ordered=ordered).ok.to(
            "out"
        )
        folder = tmp_path / str(ordered)
        for _ in range(2):
            rows = MemoryFlow(spark, flow, answers=folder).feed("in", *given)["out"]
            assert [row["id"] for row in rows] == wanted


def test_answers_of_an_earlier_batch_are_removed(
    spark: SparkSession, service: Service, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    memory = MemoryFlow(spark, located(service.url), answers=tmp_path)
    for _ in range(4):
        memory.feed("orders", *draw.sample(orders(90), 5))
    assert [entry.name for entry in (tmp_path / "geo").iterdir()] == ["3"]


def test_a_preview_calls_the_service_and_shows_what_failed(service: Service) -> None:
    shown = located(service.url).preview({"orders": orders(60), "zones": []}, rows=5)
    assert shown.counts["failed"] == len([row for row in orders(60) if row["id"] % 11 == 0])
    assert shown.counts["nowhere"] + shown.counts["failed"] == 60
    assert len(shown["nowhere"]) == 5
    assert {row["id"] for row in shown["failed"]} <= {row["id"] for row in orders(60)}
    # Answers are those of one preview: the next one asks again.
    again = located(service.url).preview({"orders": orders(60), "zones": []}, rows=60)
    check(service, 60, again["nowhere"], again["failed"])
    answered = {row["id"]: row["answer"] for row in again["nowhere"]}
    assert all(row["answer"] != answered[row["id"]] for row in shown["nowhere"])
