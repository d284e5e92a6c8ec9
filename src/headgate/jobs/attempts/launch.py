"""Attempts as child processes of their supervisor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from headgate._codec import encode
from headgate.engine.session.driver_lock import remove_scratch
from headgate.jobs.attempts.wire import AttemptSpec, News, decode_news
from headgate.jobs.lifecycle.vocabulary import Order
from headgate.jobs.processes.child import ChildProcess, open_output, spawn
from headgate.jobs.processes.messages import Message


class Child(Protocol):
    """A running attempt, as its supervisor sees it."""

    @property
    def pid(self) -> int:
        """The process that runs it."""

    def news(self, seconds: float) -> list[News]:
        """Return the news since the last call, after waiting no longer than this for it."""

    def last_news(self) -> list[News]:
        """Return the remaining messages of a child that has ended."""

    def order(self, order: Order) -> None:
        """Hand over an order; one to a child that has ended is lost."""

    def find_exit(self) -> str | None:
        """Return how the child ended, or None while it lives."""

    def kill(self) -> None:
        """End the child and its JVM at once, and wait until the child is gone."""


class Launcher(Protocol):
    """Starts attempts."""

    def launch(self, spec: AttemptSpec) -> Child:
        """Start an attempt."""

    def clean_up(self) -> None:
        """Remove the files that ended attempts left; no attempt follows."""


class ProcessLauncher:
    """Starts each attempt in a process of its own, which holds the driver.

    Args:
        output: Takes the standard streams of the child and its JVM.
        verbose: Leave their standard error on the terminal instead.
    """

    def __init__(self, output: Path, *, verbose: bool = False) -> None:
        self._output = output
        self._verbose = verbose
        self._lock_file: Path | None = None

    def launch(self, spec: AttemptSpec) -> Child:
        self._lock_file = spec.settings.spark.lock_file
        process = spawn(
            "headgate.jobs.attempts.worker",
            output=open_output(self._output),
            shows_errors=self._verbose,
        )
        process.send(encode(spec))
        return _ProcessChild(process)

    def clean_up(self) -> None:
        # A driver that is killed cannot remove its files.
        if self._lock_file is not None:
            remove_scratch(self._lock_file)


class _ProcessChild:
    """An attempt in a process of its own, which ends with its supervisor."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process
        self.pid = process.pid

    def news(self, seconds: float) -> list[News]:
        return self._parse(self._process.take(seconds))

    def last_news(self) -> list[News]:
        return self._parse(self._process.take_rest())

    def order(self, order: Order) -> None:
        self._process.send({"order": order})

    def find_exit(self) -> str | None:
        death = self._process.find_death()
        return None if death is None else str(death)

    def kill(self) -> None:
        self._process.kill()
        self._process.close()

    def _parse(self, messages: Sequence[Message]) -> list[News]:
        """Return messages as news; a child that sends anything else is killed."""
        news = []
        for message in messages:
            try:
                news.append(decode_news(message))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                self._process.reject(f"a message that is not news: {error!r}")
                break
        return news
