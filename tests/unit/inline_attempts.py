"""Attempts in this process, on a thread: for tests that share a JVM."""

from __future__ import annotations

import contextlib
import os
import queue
import threading

from headgate.jobs.attempts.wire import AttemptSpec, News
from headgate.jobs.attempts.worker import work
from headgate.jobs.lifecycle.vocabulary import Order


class InlineLauncher:
    """Starts attempts on threads of this process, which share its JVM."""

    def launch(self, spec: AttemptSpec) -> InlineChild:
        """Start an attempt."""
        return InlineChild(spec)

    def clean_up(self) -> None:
        """Leave everything as it is: the JVM lives on."""


class InlineChild:
    """An attempt on a thread of this process."""

    def __init__(self, spec: AttemptSpec) -> None:
        self._orders: queue.Queue[Order] = queue.Queue()
        self._news: queue.Queue[News] = queue.Queue()
        self._thread = threading.Thread(
            target=work, args=(spec, self._orders, self._news.put), daemon=True
        )
        self._thread.start()

    @property
    def pid(self) -> int:
        """This process."""
        return os.getpid()

    def news(self, seconds: float) -> list[News]:
        """Return what was told since the last call, after waiting no longer than this for it."""
        found: list[News] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._news.get(timeout=seconds))
            while True:
                found.append(self._news.get_nowait())
        return found

    def last_news(self) -> list[News]:
        """Return the remaining messages of an attempt that has ended."""
        return self.news(0)

    def order(self, order: Order) -> None:
        """Hand over an order."""
        self._orders.put(order)

    def find_exit(self) -> str | None:
        """Return that the thread has ended, or None while it lives."""
        return None if self._thread.is_alive() else "its thread ended"

    def kill(self) -> None:
        """End the attempt before its next batch: a thread cannot be killed."""
        self._orders.put(Order.STOP)
        self._thread.join()
