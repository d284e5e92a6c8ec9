"""Calls of an async function: every row is answered once, whatever the function does."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headgate import Flow
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.functions.calling.async_calls import AsyncCalls, Patience, pause_before
from headgate.functions.calling.calls import FunctionFailed, Results
from headgate.functions.stored import Callback, RowType

GIVEN = pa.schema([("n", pa.int64())])
RETURNED = pa.schema([pa.field("n", pa.int64(), nullable=False)])


def calls_of(
    function: Callable[[Any], Any], *, capacity: int = 100, timeout: float = 5.0, retries: int = 0
) -> AsyncCalls:
    patience = Patience(capacity, timeout, retries)
    return AsyncCalls(Callback(function, RowType(dict)), "call 'f'", GIVEN, RETURNED, patience)


def call(calls: AsyncCalls, count: int, alive: Callable[[], None] = lambda: None) -> Results:
    batch = pa.RecordBatch.from_pydict({"n": list(range(count))}, schema=GIVEN)
    return calls(batch.serialize().to_pybytes(), alive)


def answered(results: Results) -> dict[int, int]:
    """Return the value of each row that was answered, and check that each row has one outcome."""
    assert results.batch is not None
    assert results.origins is not None
    values = dict(zip(results.origins, results.batch.column("n").to_pylist(), strict=True))
    assert len(values) == len(results.origins)
    failed = {error.row for error in results.errors}
    assert len(failed) == len(results.errors)
    assert not failed & values.keys()
    return values


def end(calls: AsyncCalls) -> None:
    """Cancel what a failed batch has left; a worker ends instead."""
    tasks = asyncio.all_tasks(calls._loop)
    for task in tasks:
        task.cancel()
    calls._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


async def echo(row: dict[str, int]) -> dict[str, int]:
    return row


@pytest.mark.parametrize("capacity", [1, 7, 100])
def test_as_many_calls_are_under_way_as_there_is_capacity(capacity: int) -> None:
    under_way, most = 0, 0

    async def count(row: dict[str, int]) -> dict[str, int]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return {"n": -row["n"]}

    values = answered(call(calls_of(count, capacity=capacity), 40))
    assert values == {n: -n for n in range(40)}
    assert most == min(capacity, 40)


def test_results_are_in_the_order_in_which_calls_end() -> None:
    async def later(row: dict[str, int]) -> dict[str, int]:
        await asyncio.sleep(0.02 * (5 - row["n"]))
        return row

    assert call(calls_of(later), 5).origins == [4, 3, 2, 1, 0]


def test_a_call_is_tried_again_and_its_attempts_are_counted() -> None:
    tried: dict[int, int] = {}

    async def third(row: dict[str, int]) -> dict[str, int]:
        tried[row["n"]] = tried.get(row["n"], 0) + 1
        if tried[row["n"]] <= row["n"]:
            raise ConnectionError(f"refused {row['n']}")
        return row

    results = call(calls_of(third, retries=2), 5)
    assert sorted(answered(results)) == [0, 1, 2]
    errors = {error.row: (error.attempts, error.text) for error in results.errors}
    assert sorted(errors) == [3, 4]
    assert errors[3][0] == 3
    assert errors[3][1].startswith("ConnectionError: refused 3 (test_async_calls.py:")
    assert tried == {0: 1, 1: 2, 2: 3, 3: 3, 4: 3}


def test_pauses_double_and_have_a_limit() -> None:
    assert [pause_before(attempt) for attempt in (2, 3, 4, 8, 9, 1000)] == [
        0.1, 0.2, 0.4, 6.4, 10.0, 10.0,
    ]  # fmt: skip


def test_a_call_that_hangs_runs_out_of_time_and_others_do_not() -> None:
    async def hang(row: dict[str, int]) -> dict[str, int]:
        if row["n"] == 1:
            await asyncio.Event().wait()
        return row

    results = call(calls_of(hang, timeout=0.05, retries=1), 3)
    assert sorted(answered(results)) == [0, 2]
    (error,) = results.errors
    assert (error.row, error.attempts) == (1, 2)
    assert error.text == "TimeoutError: no answer within 0.05 s"


def test_a_call_that_ignores_its_cancellation_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headgate.functions.calling.async_calls._GRACE", 0.02)
    open_again = asyncio.Event()

    async def stubborn(row: dict[str, int]) -> dict[str, int]:
        while row["n"] == 0 and not open_again.is_set():
            try:
                await asyncio.wait_for(open_again.wait(), 10)
            except asyncio.CancelledError:
                continue
        return row

    calls = calls_of(stubborn, timeout=0.05)
    results = call(calls, 2)
    assert sorted(answered(results)) == [1]
    assert [error.row for error in results.errors] == [0]
    assert len(calls.left_behind) == 1
    # It ends in the middle of a later batch, to which its answer does not belong.
    open_again.set()
    assert sorted(answered(call(calls, 2))) == [0, 1]
    assert not calls.left_behind


def test_a_function_that_blocks_is_answered_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("headgate.functions.calling.async_calls._BLOCKED", 0.1)
    monkeypatch.setattr("headgate.functions.calling.async_calls._ALIVE_EVERY", 0.02)

    async def block(row: dict[str, int]) -> dict[str, int]:
        await asyncio.sleep(0.05)
        if row["n"] == 0:
            time.sleep(0.3)
        await asyncio.sleep(0.05)
        return row

    assert sorted(answered(call(calls_of(block), 3))) == [0, 1, 2]
    assert "call 'f' blocked its event loop for 0." in capfd.readouterr().err


def raise_cancelled() -> Any:
    raise asyncio.CancelledError


def cancel_itself() -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return {"n": 1}


@pytest.mark.parametrize(
    ("odd", "text"),
    [
        (raise_cancelled, "CancelledError"),
        (lambda: 7, "FUNCTION_BAD_RESULT: a result must be a dataclass, a dict or a row, got int"),
        (lambda: None, "FUNCTION_BAD_RESULT"),
        (lambda: {"m": 1}, "FUNCTION_BAD_RESULT: the result has no 'n'"),
        (lambda: {"n": "one"}, "FUNCTION_BAD_RESULT: 'n' must be int64"),
        (lambda: {"n": None}, "FUNCTION_BAD_RESULT: 'n' must not be None"),
    ],
)
def test_an_odd_end_of_a_call_is_its_own_failure(odd: Callable[[], Any], text: str) -> None:
    async def answer(row: dict[str, int]) -> Any:
        await asyncio.sleep(0)
        return odd() if row["n"] == 2 else row

    results = call(calls_of(answer, capacity=1, retries=1), 5)
    assert answered(results) == {0: 0, 1: 1, 3: 3, 4: 4}
    (error,) = results.errors
    assert error.row == 2
    assert error.text.startswith(text)
    # A wrong row would be wrong again.
    assert error.attempts == (1 if "BAD_RESULT" in text else 2)


def test_a_call_that_cancels_itself_harms_no_other() -> None:
    async def answer(row: dict[str, int]) -> Any:
        return cancel_itself() if row["n"] == 2 else row

    results = call(calls_of(answer, capacity=1), 5)
    assert {0, 1, 3, 4} <= answered(results).keys()


@pytest.mark.parametrize("ends", [sys.exit, lambda: (_ for _ in ()).throw(KeyboardInterrupt())])
def test_a_function_that_ends_its_process_fails_the_batch(ends: Callable[[], Any]) -> None:
    async def leave(row: dict[str, int]) -> dict[str, int]:
        if row["n"] == 1:
            ends() if ends is sys.exit else next(ends())
        return row

    calls = calls_of(leave)
    with pytest.raises(FunctionFailed, match=r"call 'f' raised (SystemExit|KeyboardInterrupt)"):
        call(calls, 3)
    end(calls)


def test_memory_that_runs_out_fails_the_batch() -> None:
    async def large(row: dict[str, int]) -> dict[str, int]:
        raise MemoryError

    calls = calls_of(large, retries=3)
    with pytest.raises(MemoryError):
        call(calls, 2)
    end(calls)


def test_the_kernel_hears_that_calls_go_on_until_none_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "headgate.functions.calling.async_calls"
    monkeypatch.setattr(f"{module}._ALIVE_EVERY", 0.01)
    for name in ("_STUCK", "_GRACE", "_LONGEST_PAUSE"):
        monkeypatch.setattr(f"{module}.{name}", 0.0)
    heard: list[float] = []

    async def slow(row: dict[str, int]) -> dict[str, int]:
        await asyncio.sleep(0.05)
        return row

    calls = calls_of(slow, capacity=1, timeout=0.2)
    begun = time.monotonic()
    call(calls, 10, lambda: heard.append(time.monotonic() - begun))
    # Ten calls of 50 ms take longer than the time of one, and each end is a sign of life.
    assert heard[-1] > 0.3


def test_calls_end_soon_after_the_kernel_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.functions.calling.async_calls._ALIVE_EVERY", 0.01)
    asked = 0

    async def slow(row: dict[str, int]) -> dict[str, int]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return row

    def gone() -> None:
        raise BrokenPipeError

    calls = calls_of(slow, capacity=1)
    with pytest.raises(BrokenPipeError):
        call(calls, 500, gone)
    assert asked < 100
    end(calls)


def test_the_loop_is_the_same_in_every_batch() -> None:
    loops = set()

    async def where(row: dict[str, int]) -> dict[str, int]:
        loops.add(id(asyncio.get_running_loop()))
        return row

    calls = calls_of(where)
    for _ in range(3):
        call(calls, 2)
    assert len(loops) == 1


def test_no_rows_are_no_calls() -> None:
    results = call(calls_of(echo), 0)
    assert (results.rows, answered(results)) == (0, {})


# What a flow accepts.


class Asker:
    """An object that is called."""

    async def __call__(self, row: dict[str, int]) -> dict[str, int]:
        return row


async def with_limit(limit: int, row: dict[str, int]) -> dict[str, int]:
    return {"n": min(limit, row["n"])}


@pytest.mark.parametrize("function", [echo, Asker(), functools.partial(with_limit, 3)])
def test_async_functions_and_objects_are_accepted(function: Any) -> None:
    flow = Flow("calls")
    geo = flow.stream("in", "n BIGINT").call(
        "geo", function, schema="n BIGINT", capacity=5, timeout="250ms", retries=0, ordered=False
    )
    geo.ok.to("out")
    geo.failed.to("failed")
    assert geo.failed.schema.to_ddl() == (
        "n BIGINT, failure STRUCT<error: STRING NOT NULL, attempts: INT NOT NULL> NOT NULL"
    )
    graph = flow.graph()
    assert Graph.from_json(graph.to_json()) == graph
    assert "5 at once, 250ms each, 0 retries, unordered" in flow.explain()


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ({"capacity": 0}, "BAD_FUNCTION", "capacity must be an integer from 1 to 10000, got 0"),
        ({"capacity": True}, "BAD_FUNCTION", "capacity must be an integer"),
        ({"retries": -1}, "BAD_FUNCTION", "retries must be an integer from 0 to 100, got -1"),
        ({"timeout": "0s"}, "BAD_DURATION", "timeout must be from 1ms to 1h"),
        ({"timeout": "2h"}, "BAD_DURATION", "timeout must be from 1ms to 1h"),
        ({"function": lambda row: row}, "BAD_FUNCTION", "is not an async function"),
        ({"schema": None}, "BAD_FUNCTION", "the columns of its results are not known"),
    ],
)
def test_a_call_that_cannot_work_is_refused(options: dict[str, Any], code: str, text: str) -> None:
    stream = Flow("calls").stream("in", "n BIGINT")
    given = {"function": echo, "schema": "n BIGINT", **options}
    with pytest.raises(HeadgateError, match="cannot add call 'geo' to flow 'calls'") as refused:
        stream.call("geo", **given)
    assert refused.value.code == code
    assert text in str(refused.value)
    assert refused.value.hint


def test_a_column_named_failure_is_refused() -> None:
    stream = Flow("calls").stream("in", "n BIGINT, Failure STRING")
    with pytest.raises(HeadgateError, match="have a column 'failure'") as refused:
        stream.call("geo", echo, schema="n BIGINT")
    assert refused.value.code == "DUPLICATE_COLUMN"


def test_map_points_to_call_for_an_async_function() -> None:
    with pytest.raises(HeadgateError) as refused:
        Flow("calls").stream("in", "n BIGINT").map("geo", echo, schema="n BIGINT")
    assert "use call for an async function" in refused.value.hint
