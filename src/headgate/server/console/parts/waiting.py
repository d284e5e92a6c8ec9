"""Questions that take long: asked in a thread, with an honest word on how long it has been."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from headgate.server.console.parts.live import Live
from headgate.server.console.parts.widgets import begin_read

P = ParamSpec("P")
T = TypeVar("T")
_TELL_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What was answered, and how long it took."""

    value: T
    seconds: float


async def ask_slowly(
    status: Live,
    says: Callable[[float], str],
    function: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Answer[T]:
    """Return the answer of a function that waits; meanwhile say how long it has been.

    Args:
        status: Where that is said; empty afterwards.
        says: What is said after so many seconds.

    Raises:
        HeadgateError: What the function raised, or NOT_SIGNED_IN once the session has ended.
    """
    began = time.monotonic()
    answer = begin_read(function, *args, **kwargs)
    try:
        while not answer.done():
            status.show(says(time.monotonic() - began))
            await asyncio.wait({answer}, timeout=_TELL_EVERY_S)
    finally:
        status.show("")
    return Answer(answer.result(), time.monotonic() - began)
