"""Attempts as children: started, ordered, listened to and ended by their supervisor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from headgate._codec import encode
from headgate.engine.scratch import remove_scratch
from headgate.jobs.attempts.wire import AttemptSpec, News, decode_news
from headgate.jobs.processes.child import open_output, spawn
from headgate.jobs.processes.messages import Message


class Child(Protocol):
    """A running attempt, as its supervisor sees it."""

    @property
    def pid(self) -> int:
        """The process that runs it."""

    def news(self, seconds: float) -> list[News]:
        """Return what was told since the last call, after waiting no longer than this for it."""

    def last_news(self) -> list[News]:
        """Return the remaining messages of a child that has ended."""

    def order(self, order: str) -> None:
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
        """Remove what ended attempts have left behind; there will be no more of them."""


class ProcessLauncher:
    """Starts each attempt in a process of its own, which holds the driver.

    Args:
        output: What the child and its JVM write to their standard streams.
        verbose: Leave their standard error on the terminal instead.
    """

    def __init__(self, output: Path, *, verbose: bool = False) -> None:
        self._output = output
        self._verbose = verbose
        self._lock_file: Path | None = None

    def launch(self, spec: AttemptSpec) -> ProcessChild:
        """Start an attempt."""
        self._lock_file = spec.settings.spark.lock_file
        return ProcessChild(spec, self._output, verbose=self._verbose)

    def clean_up(self) -> None:
        """Remove what the last driver has left: one that is killed cannot put it away."""
        if self._lock_file is not None:
            remove_scratch(self._lock_file)


class ProcessChild:
    """An attempt in a process of its own, which ends with its supervisor."""

    def __init__(self, spec: AttemptSpec, output: Path, *, verbose: bool) -> None:
        self._process = spawn(
            "headgate.jobs.attempts.worker", output=open_output(output), shows_errors=verbose
        )
        self._process.send(encode(spec))

    @property
    def pid(self) -> int:
        """The child's process."""
        return self._process.pid

    def news(self, seconds: float) -> list[News]:
        """Return what was told since the last call, after waiting no longer than this for it."""
        return self._parse(self._process.take(seconds))

    def last_news(self) -> list[News]:
        """Return the remaining messages of a child that has ended."""
        return self._parse(self._process.take_rest())

    def order(self, order: str) -> None:
        """Hand over an order; one to a child that has ended is lost."""
        self._process.send({"order": order})

    def find_exit(self) -> str | None:
        """Return how the child ended, or None while it lives."""
        death = self._process.find_death()
        return None if death is None else str(death)

    def kill(self) -> None:
        """End the child and its JVM at once."""
        self._process.kill()
        self._process.close()

    def _parse(self, messages: Sequence[Message]) -> list[News]:
        """Return messages as news; a child that sends anything else is killed."""
        news = []
        for message in messages:
            try:
                news.append(decode_news(dict(message)))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                self._process.reject(f"a message that is not news: {error!r}")
                break
        return news
