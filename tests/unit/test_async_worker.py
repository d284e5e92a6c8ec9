"""The process that calls async functions, spoken to as the kernel does."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pytest

from headgate.functions.stored import Callback, RowType, describe, present_python, store

GIVEN = pa.schema([("n", pa.int64())])
ALIVE = 3
Reply = tuple[int, list[int], list[dict[str, Any]], list[Any]]


class Kernel:
    """The other end of a worker's socket."""

    def __init__(self, folder: Path) -> None:
        self.alive = 0
        address = str(folder / "worker")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(address)
            server.listen(1)
            command = [sys.executable, "-m", "headgate.functions.worker", address]
            self.process = subprocess.Popen(command)
            connection, _ = server.accept()
        with connection:
            self.stream = cast("BinaryIO", connection.makefile("rwb"))

    def load(self, function: Callable[..., Any], **patience: Any) -> Reply:
        """Have the worker load a function; the reply is empty."""
        described = describe(function, what="test", is_async=True)
        code = store(Callback(function, RowType(dict)), described, what="test").code
        schema = base64.b64encode(GIVEN.serialize().to_pybytes()).decode()
        spec = {
            "address": 7, "name": "call 'f'", "kind": "CALL", "dead_letters": False, "code": code,
            "given": schema, "returned": schema, **patience,
        }  # fmt: skip
        message = json.dumps(
            {
                "memory": 0,
                "version": present_python(),
                "check": True,
                "path": [],
                "functions": [spec],
            }
        )
        self.stream.write(struct.pack(">i", len(message)) + message.encode())
        return self._reply()

    def call(self, count: int) -> Reply:
        """Have the function called with rows from 0 on."""
        body = pa.RecordBatch.from_pydict({"n": list(range(count))}, schema=GIVEN).serialize()
        self.stream.write(struct.pack(">iii", 7, count, len(body)) + body.to_pybytes())
        return self._reply()

    def _reply(self) -> Reply:
        self.stream.flush()
        while True:
            head = self.stream.read(20)
            if len(head) < 20:
                raise EOFError
            state, rows, count, text, length = struct.unpack(">iiiii", head)
            if state == ALIVE:
                self.alive += 1
                continue
            origins = struct.unpack(f">{max(count, 0)}i", self.stream.read(4 * max(count, 0)))
            words = self.stream.read(text)
            body = self.stream.read(length)
            values = []
            if rows:
                values = pa.ipc.read_record_batch(pa.py_buffer(body), GIVEN).column(0).to_pylist()
            told: Any = json.loads(words) if words else []
            errors: list[dict[str, Any]] = told if state == 0 else [told]
            return state, list(origins), errors, values


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    """Give a worker."""
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.stream.close()
    kernel.process.kill()
    kernel.process.wait()


PATIENCE = {"capacity": 10, "timeout": 5000, "retries": 0}


def test_a_worker_answers_says_that_it_goes_on_and_calls_once(kernel: Kernel) -> None:
    calls: dict[int, int] = {}

    async def slow(row: dict[str, int]) -> dict[str, int]:
        calls[row["n"]] = calls.get(row["n"], 0) + 1
        if row["n"] == 3:
            raise ValueError("three")
        await asyncio.sleep(1.3)
        # The check of determinism would call a second time.
        return {"n": 10 * row["n"] + calls[row["n"]]}

    assert kernel.load(slow, **PATIENCE) == (0, [], [], [])
    state, origins, errors, values = kernel.call(5)
    assert (state, sorted(origins), sorted(values)) == (0, [0, 1, 2, 4], [1, 11, 21, 41])
    (error,) = errors
    assert (error["row"], error["attempts"]) == (3, 1)
    assert error["text"].startswith("ValueError: three (test_async_worker.py:")
    assert kernel.alive >= 1
    # The next batch is on the same loop.
    assert sorted(kernel.call(2)[3]) == [2, 12]


def test_a_function_that_exits_fails_the_call(kernel: Kernel) -> None:
    async def leave(row: dict[str, int]) -> dict[str, int]:
        sys.exit(3)

    kernel.load(leave, **PATIENCE)
    state, _, (failure,), _ = kernel.call(1)
    assert state == 1
    assert failure == {"code": "FUNCTION_FAILED", "message": "call 'f' raised SystemExit: 3"}


def test_a_worker_that_dies_closes_its_socket(kernel: Kernel) -> None:
    async def die(row: dict[str, int]) -> dict[str, int]:
        os._exit(9)

    kernel.load(die, **PATIENCE)
    with pytest.raises((EOFError, ConnectionError)):
        kernel.call(1)
    assert kernel.process.wait(180) == 9


def test_a_worker_ends_when_the_kernel_is_gone_amid_a_call(kernel: Kernel) -> None:
    async def hang(row: dict[str, int]) -> dict[str, int]:
        await asyncio.sleep(60)
        return row

    kernel.load(hang, capacity=1, timeout=100_000, retries=0)
    body = pa.RecordBatch.from_pydict({"n": [1]}, schema=GIVEN).serialize()
    kernel.stream.write(struct.pack(">iii", 7, 1, len(body)) + body.to_pybytes())
    kernel.stream.flush()
    kernel.stream.close()
    assert kernel.process.wait(180) == 0
