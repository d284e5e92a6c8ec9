"""What users write for a process that sees all rows of a broadcast table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headgate.functions.keyed import Context, In, KeyedProcess, Out, Timer

Rule = TypeVar("Rule")

if TYPE_CHECKING:

    class _Process(Generic[In, Out]):
        # Not a KeyedProcess to type checkers, which would compare the contexts.
        def open(self) -> None: ...
else:
    _Process = KeyedProcess


class BroadcastContext(Context[Out], Generic[Rule, Out]):
    """What surrounds an event or a timer, and the rows of the broadcast."""

    __slots__ = ()

    @property
    def broadcast(self) -> Mapping[Any, Rule]:
        """All rows of the broadcast by key, in the order of their keys; it cannot be changed.

        A key of several columns is a tuple. The rows are the same for all events and timers of a
        batch: the changes of the batch are in them.
        """
        raise RuntimeError(
            "the broadcast is there within on_event and on_timer only; use "
            "headgate.testing.Harness to call a process in a test"
        )


class BroadcastProcess(_Process[In, Out], Generic[In, Rule, Out]):
    """A process that sees all rows of a broadcast: derive from it, and pass an object of it.

    On a stream with keys it has state and timers, like a `KeyedProcess`. Without `key_by` it has
    neither, and `ctx.key` is None.
    """

    def on_event(self, event: In, ctx: BroadcastContext[Rule, Out], /) -> None:
        """Take an event."""
        raise NotImplementedError

    def on_timer(self, timer: Timer, ctx: BroadcastContext[Rule, Out], /) -> None:
        """Take a timer that is due."""
        raise NotImplementedError
