"""Calls of a process of two streams: sides take turns as the kernel says, and are checked twice."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from headgate import Context, KeyedCoProcess, ListOf
from headgate.functions.calling.calls import FunctionFailed
from headgate.functions.declared import describe_process
from headgate.functions.processes.connected import CoProcessCalls, process_calls
from headgate.functions.processes.memory import MemoryKernel, Work, shape_of
from headgate.functions.python_types import python_type
from headgate.functions.states.columns import arrow_field
from headgate.functions.stored import CoProcessCallback, RowType, stored_states


@dataclass
class Left:
    n: int


@dataclass
class Right:
    word: str
    n: int


@dataclass
class Seen:
    text: str


class Noting(KeyedCoProcess[Left, Right, Seen]):
    """Emits what its key has seen so far."""

    seen: ListOf[str]

    def on_left(self, row: Left, ctx: Context[Seen]) -> None:
        self._note(f"{row.n}", ctx)

    def on_right(self, row: Right, ctx: Context[Seen]) -> None:
        self._note(f"{row.word}{row.n}", ctx)
        if row.word == "bad":
            raise ValueError("a bad word")

    def _note(self, text: str, ctx: Context[Seen]) -> None:
        self.seen.append(text)
        ctx.emit(Seen(f"{ctx.key}: {' '.join(self.seen)}"))


class Restless(Noting):
    """Gives other results each time."""

    def __init__(self) -> None:
        self.count = itertools.count()

    def on_right(self, row: Right, ctx: Context[Seen]) -> None:
        self._note(f"{row.word}{next(self.count)}", ctx)


def kernel_of(process: Noting, *, dead_letters: bool = False, check: bool = True) -> MemoryKernel:
    states = stored_states(describe_process(process).states)
    given, right = (
        pa.schema([arrow_field(*one) for one in python_type(row).fields]) for row in (Left, Right)
    )
    keys = pa.schema([("key", pa.string())])
    outputs = [("out", python_type(Seen))]
    shape = shape_of(states, given=given, keys=keys, outputs=outputs, has_timers=False, right=right)
    callback = CoProcessCallback(process, RowType(Left), states, RowType(Right))
    calls = process_calls(
        callback, shape, name="co-process 'c'", uid="c", dead_letters=dead_letters, check=check
    )
    assert isinstance(calls, CoProcessCalls)
    return MemoryKernel(calls, shape)


def work(key: str, *events: tuple[Any, ...]) -> Work:
    """Return events of a key: those with one column are left ones."""
    return Work(key.encode(), (key,), events, sides=[len(event) - 1 for event in events])


def call(kernel: MemoryKernel, *of: Work) -> tuple[list[tuple[int, str]], list[int]]:
    """Return what was emitted, each with its origin, and the origins of what failed."""
    made = kernel.call(of, now=0, watermark=0, batch=1)
    rows = [(origin, text) for origin, (text,) in made.rows[0]]
    return rows, [origin for origin, _ in made.errors]


@pytest.mark.parametrize("dead_letters", [False, True])
def test_sides_take_turns_within_each_key(dead_letters: bool) -> None:
    kernel = kernel_of(Noting(), dead_letters=dead_letters)
    rows, errors = call(
        kernel, work("a", ("x", 1), (2,), (3,), ("y", 4)), work("b", (5,)), work("c", ("z", 6))
    )
    assert rows == [
        (0, "a: x1"),
        (1, "a: x1 2"),
        (2, "a: x1 2 3"),
        (3, "a: x1 2 3 y4"),
        (4, "b: 5"),
        (5, "c: z6"),
    ]
    assert errors == []
    # One side may have no rows in a call.
    assert call(kernel, work("b", (7,))) == ([(0, "b: 5 7")], [])
    assert call(kernel, work("c", ("z", 8))) == ([(0, "c: z6 z8")], [])


def test_a_failed_event_of_either_side_leaves_nothing() -> None:
    kernel = kernel_of(Noting(), dead_letters=True)
    rows, errors = call(kernel, work("a", (1,), ("bad", 2), (3,), ("bad", 4), ("x", 5)))
    assert rows == [(0, "a: 1"), (2, "a: 1 3"), (4, "a: 1 3 x5")]
    assert errors == [1, 3]
    with pytest.raises(FunctionFailed, match=r"failed on Right\(word='bad', n=2\): .* in on_right"):
        call(kernel_of(Noting()), work("a", (1,), ("bad", 2)))


def test_other_results_of_a_second_call_are_refused() -> None:
    kernel = kernel_of(Restless())
    assert call(kernel, work("a", (1,))) == ([(0, "a: 1")], [])
    with pytest.raises(FunctionFailed) as caught:
        call(kernel, work("a", (1,), ("x", 2)))
    assert caught.value.code == "FUNCTION_NOT_DETERMINISTIC"
    assert "a: 1 1 x0" in str(caught.value)
