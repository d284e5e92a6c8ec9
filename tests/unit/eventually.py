"""How tests wait: for a condition, never for a time."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def eventually(
    condition: Callable[[], T | None],
    *,
    within: float = 300.0,
    every: float = 0.1,
    what: str | Callable[[], object] = "the condition",
    alive: subprocess.Popen[Any] | None = None,
) -> T:
    """Poll a condition until it returns something true, and return that.

    Args:
        within: Seconds after which the test fails; generous, since a machine may be busy.
        every: Seconds between two looks.
        what: What is waited for, or a function that describes the state on failure.
        alive: A process the condition depends on; if it ends first, the test fails at once and
            shows its output.
    """
    deadline = time.monotonic() + within
    while not (found := condition()):
        if alive is not None and alive.poll() is not None:
            said = [each for each in alive.communicate() if each]
            raise AssertionError(f"the process ended before {_text(what)}: {said}")
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within:g} s in vain: {_text(what)}")
        time.sleep(every)
    return found


def _text(what: str | Callable[[], object]) -> str:
    return what if isinstance(what, str) else str(what())
