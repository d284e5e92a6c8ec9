"""Signals as wishes, taken when it suits the one they are for."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class StopSignals:
    """SIGINT and SIGTERM as wishes: the first asks for a stop, the second for a cancel.

    The handler only counts: it may come in the middle of anything.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._wishes = 0
        self._kept: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for each in self._SIGNALS:
                self._kept[each] = signal.signal(each, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._kept.items():
            signal.signal(each, handler)

    def take(self) -> bool:
        """Tell whether there is a wish that nobody has taken."""
        if not self._wishes:
            return False
        self._wishes -= 1
        return True

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._wishes += 1
