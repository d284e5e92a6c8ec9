"""Calls of an async function with the rows of a batch, as many at once as it has capacity for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.functions.calling.calls import FunctionFailed, Results, RowError, error_text
from headgate.functions.calling.results import BadResult, row_writer
from headgate.functions.calling.rows import row_reader
from headgate.functions.stored import Callback

# The pauses before the second, third, ... attempt, in seconds: doubled each time, up to the last.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
# How long a call that was cancelled may take to end; then it is left behind.
_GRACE = 1.0
# How often the kernel hears that calls go on.
_ALIVE_EVERY = 1.0
# A loop that is late by more than this was blocked by a function.
_BLOCKED = 1.0
# How long no attempt may end, beyond its time, before the kernel stops hearing so.
_STUCK = 30.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How many calls are made at once, and how long they may take.

    Attributes:
        timeout: The maximum time of one attempt, in seconds.
        retries: How often a failed call is made again.
    """

    capacity: int
    timeout: float
    retries: int


class AsyncCalls:
    """Calls an async function row by row, on an event loop that lives as long as the process.

    Between batches the loop stands still. A call fails if the function raises, does not return in
    time, or returns a row that does not fit; all but the last are tried again.
    """

    def __init__(
        self,
        callback: Callback,
        name: str,
        given: pa.Schema,
        returned: pa.Schema,
        patience: Patience,
    ) -> None:
        self.function = callback.function
        self.name = name
        self.patience = patience
        self.left_behind: set[asyncio.Task[Any]] = set()
        self._given = given
        self._read = row_reader(given, callback.argument)
        self._write = row_writer(returned)
        self._loop = asyncio.new_event_loop()

    def __call__(self, body: bytes, say_alive: Callable[[], None]) -> Results:
        """Return the results in the order in which their calls ended, and the rows that failed.

        Args:
            body: The rows, as a record batch.
            say_alive: Called about once a second while calls go on.
        """
        rows = self._read(pa.ipc.read_record_batch(pa.py_buffer(body), self._given))
        batch = _Batch(self, rows, say_alive)
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(batch.run())
        except (SystemExit, KeyboardInterrupt) as error:
            raise FunctionFailed(
                "FUNCTION_FAILED", f"{self.name} raised {type(error).__name__}: {error}"
            ) from error
        return self._results(batch)

    def _results(self, batch: _Batch) -> Results:
        places = [place for place, _, _ in batch.answers]
        values = [value for _, _, value in batch.answers]
        try:
            return Results(len(values), places, self._write(values), tuple(batch.errors))
        except BadResult:
            return self._one_by_one(batch)

    def _one_by_one(self, batch: _Batch) -> Results:
        """Separate the rows with a wrong result."""
        good, errors = [], list(batch.errors)
        for place, attempts, value in batch.answers:
            try:
                self._write([value])
            except BadResult as error:
                errors.append(RowError(place, f"FUNCTION_BAD_RESULT: {error}", attempts))
            else:
                good.append((place, value))
        written = self._write([value for _, value in good])
        return Results(len(good), [place for place, _ in good], written, tuple(errors))


class _Batch:
    """The calls of one batch.

    Attributes:
        answers: The place of a row, how often it was called for, and the result; by their ends.
    """

    def __init__(self, calls: AsyncCalls, rows: list[Any], say_alive: Callable[[], None]) -> None:
        self.answers: list[tuple[int, int, Any]] = []
        self.errors: list[RowError] = []
        self._calls = calls
        self._patience = calls.patience
        self._left: Iterator[tuple[int, Any]] = iter(enumerate(rows))
        self._count = len(rows)
        self._say_alive = say_alive
        self._last_end = 0.0

    async def run(self) -> None:
        self._last_end = asyncio.get_running_loop().time()
        count = min(self._patience.capacity, self._count)
        lanes = asyncio.gather(*(self._take() for _ in range(count)))
        ticking = asyncio.create_task(self._tick())
        try:
            ends: tuple[asyncio.Future[Any], ...] = (lanes, ticking)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            # The ticking ends only when the kernel is gone; then no further call is made.
            await next(end for end in ends if end.done())
        finally:
            ticking.cancel()

    async def _take(self) -> None:
        """Make one call after the other, as long as rows are left."""
        for place, row in self._left:
            await self._answer(place, row)

    async def _answer(self, place: int, row: Any) -> None:
        last = 1 + self._patience.retries
        for attempt in range(1, last + 1):
            try:
                result = await self._try(row)
            except (Exception, asyncio.CancelledError) as error:
                self._last_end = asyncio.get_running_loop().time()
                if isinstance(error, MemoryError):
                    raise
                if attempt == last:
                    self.errors.append(RowError(place, error_text(error), attempt))
                else:
                    await asyncio.sleep(pause_before(attempt + 1))
            else:
                self._last_end = asyncio.get_running_loop().time()
                self.answers.append((place, attempt, result))
                return

    async def _try(self, row: Any) -> Any:
        """Make one attempt, in a task of its own: what it cancels is itself."""
        task = asyncio.create_task(self._call(row))
        done, _ = await asyncio.wait({task}, timeout=self._patience.timeout)
        if done:
            return task.result()
        task.cancel()
        await asyncio.wait({task}, timeout=_GRACE)
        if not task.done():
            self._calls.left_behind.add(task)
        task.add_done_callback(self._forget)
        raise TimeoutError(f"no answer within {self._patience.timeout:g} s")

    async def _call(self, row: Any) -> Any:
        return await self._calls.function(row)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._calls.left_behind.discard(task)
        # asyncio prints an exception that is never read.
        if not task.cancelled():
            task.exception()

    async def _tick(self) -> None:
        """Say that calls go on, and tell the log if a function blocks the loop."""
        loop = asyncio.get_running_loop()
        is_reported = False
        longest = self._patience.timeout + _GRACE + _LONGEST_PAUSE + _STUCK
        while True:
            due = loop.time() + _ALIVE_EVERY
            await asyncio.sleep(_ALIVE_EVERY)
            late = loop.time() - due
            if late > _BLOCKED and not is_reported:
                is_reported = True
                print(
                    f"{self._calls.name} blocked its event loop for {late:.1f} s: other calls had "
                    "to wait, and may have run out of time",
                    file=sys.stderr,
                )
            if loop.time() - self._last_end < longest:
                self._say_alive()


def pause_before(attempt: int) -> float:
    """Return the seconds to wait before an attempt, from the second on."""
    # An exponent without limit would overflow.
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(attempt - 2, 10))
