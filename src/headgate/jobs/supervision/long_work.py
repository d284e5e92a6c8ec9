"""Work that takes long, on a thread of its own, so that the supervisor keeps answering."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

_Result = TypeVar("_Result")


class LongWork(Generic[_Result]):
    """One piece of work, which begins at once; its end is looked for, and never waited for.

    Args:
        work: Is given a function that tells whether the work was abandoned, and asks it now and
            then. A thread cannot be killed.
    """

    def __init__(self, name: str, work: Callable[[Callable[[], bool]], _Result]) -> None:
        self._work = work
        self._abandoned = threading.Event()
        self._result: Future[_Result] = Future()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self._result.done()

    def get(self) -> _Result:
        """Return what the work gave, or raise what it raised; waits until it is over."""
        return self._result.result()

    def abandon(self) -> None:
        """Ask the work to end soon; what it gives from now on is of no use."""
        self._abandoned.set()

    def join(self) -> None:
        """Wait until nothing of it runs any more."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._result.set_result(self._work(self._abandoned.is_set))
        except BaseException as error:  # noqa: BLE001 - raised where the result is taken
            self._result.set_exception(error)
