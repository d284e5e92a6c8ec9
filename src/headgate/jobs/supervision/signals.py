"""Signals, counted when they come and taken when the supervisor looks."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class StopSignals:
    """Counts SIGINT and SIGTERM while the block runs; the machine decides what each one means.

    The handler only counts: it may come in the middle of anything.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._untaken = 0
        self._kept: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in self._SIGNALS:
                self._kept[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._kept.items():
            signal.signal(number, handler)

    def take(self) -> bool:
        """Take one signal; return whether there was one."""
        if not self._untaken:
            return False
        self._untaken -= 1
        return True

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._untaken += 1
