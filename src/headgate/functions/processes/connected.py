"""Calls of a process of two connected streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headgate.functions.calling.rows import row_reader
from headgate.functions.keyed import Context, KeyedCoProcess
from headgate.functions.processes.calls import ProcessCalls, ProcessShape
from headgate.functions.processes.wire import Request, read_batch
from headgate.functions.stored import CoProcessCallback, ProcessCallback


class CoProcessCalls(ProcessCalls):
    """Calls a process with the events of two streams, in the order that the kernel gave them."""

    def __init__(
        self,
        callback: CoProcessCallback,
        shape: ProcessShape,
        *,
        name: str,
        uid: str,
        dead_letters: bool,
        check: bool = False,
        read: Callable[[pa.RecordBatch], list[Any]] | None = None,
    ) -> None:
        super().__init__(
            callback,
            shape,
            name=name,
            uid=uid,
            dead_letters=dead_letters,
            check=check,
            read=read,
        )
        assert shape.right is not None
        self._right = shape.right
        self._read_right = read or row_reader(shape.right, callback.right)

    def _rows(self, request: Request) -> list[Any]:
        left = iter(super()._rows(request))
        batch = request.right_events
        right = iter(self._read_right(read_batch(batch, self._right)) if batch else ())
        return [next(right) if side else next(left) for side in request.sides]

    def _handler(self, request: Request) -> Callable[[Any, Context[Any]], None]:
        process, sides, scope = self._process, request.sides, self._scope
        assert isinstance(process, KeyedCoProcess)
        handlers = process.on_left, process.on_right
        return lambda event, ctx: handlers[sides[scope.origin]](event, ctx)


def process_calls(callback: ProcessCallback, shape: ProcessShape, **options: Any) -> ProcessCalls:
    """Return how a process is called; the options are those of `ProcessCalls`."""
    if isinstance(callback, CoProcessCallback):
        return CoProcessCalls(callback, shape, **options)
    return ProcessCalls(callback, shape, **options)
