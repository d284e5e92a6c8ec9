"""How fast async calls are: a service that takes 20 ms, and a function that takes no time.

    .venv/bin/python benchmarks/async_calls.py

The last line is JSON: rows a second with one and with a hundred calls under way, and what a call
costs beside a `map`, with the recording of its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import httpx

from headgate import Flow
from headgate.flow.streams.stream import Stream
from headgate.testing import run_flow

LATENCY = 0.02
ANSWER = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"zone": 12}'
)
Row = dict[str, Any]


class Ask:
    """Asks the service for a zone."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: httpx.AsyncClient | None = None

    async def __call__(self, row: Row) -> Row:
        """Return the row with its zone."""
        if self.client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            self.client = httpx.AsyncClient(base_url=self.url, limits=limits)
        answer = (await self.client.get("/zone")).json()
        return {"n": row["n"], "zone": answer["zone"]}


async def immediately(row: Row) -> Row:
    """Return the row at once."""
    return {"n": row["n"], "zone": 12}


def directly(row: Row) -> Row:
    """Return the row without an event loop."""
    return {"n": row["n"], "zone": 12}


def serve(told: Connection) -> None:
    """Answer requests after the latency; tell the port first."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(LATENCY)
                writer.write(ANSWER)

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def service() -> Iterator[str]:
    """Give the address of a service in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def rows_a_second(count: int, add: Callable[[Stream], Stream]) -> float:
    """Return the rows a second of a flow with one operator, in memory."""
    flow = Flow("bench")
    add(flow.stream("rows", "n BIGINT")).to("out")
    rows = [{"n": n} for n in range(count)]
    begun = time.monotonic()
    made = run_flow(flow, {"rows": rows})["out"]
    taken = time.monotonic() - begun
    assert [row["n"] for row in made] == list(range(count))
    assert all(row["zone"] == 12 for row in made)
    return count / taken


def called(function: Callable[[Row], Awaitable[Row]], capacity: int) -> Callable[[Stream], Stream]:
    """Return how a stream gets a call."""
    return lambda stream: (
        stream.call("ask", function, schema="n BIGINT, zone BIGINT", capacity=capacity).ok
    )


def mapped(stream: Stream) -> Stream:
    """Return the stream with a map."""
    return stream.map("ask", directly, schema="n BIGINT, zone BIGINT")


def main() -> None:
    """Measure, and print the figures."""
    # Starts Spark and a process of functions, and compiles what is hot.
    for _ in range(3):
        rows_a_second(20_000, called(immediately, 100))
        rows_a_second(20_000, mapped)
    by_call = rows_a_second(100_000, called(immediately, 100))
    by_map = rows_a_second(100_000, mapped)
    with service() as url:
        one = rows_a_second(200, called(Ask(url), 1))
        hundred = rows_a_second(10_000, called(Ask(url), 100))
    figures = {
        "latency_ms": LATENCY * 1000,
        "rows_per_s": {"capacity_1": round(one, 1), "capacity_100": round(hundred, 1)},
        "call_us_more_than_map": round((1 / by_call - 1 / by_map) * 1e6, 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
