"""Attempts as children: started, ordered, listened to and ended by their supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Protocol

from headgate._codec import encode
from headgate.engine.scratch import remove_scratch
from headgate.jobs.attempts.wire import NEWS_DESCRIPTOR, AttemptSpec, News, decode_news

# A child that has ended leaves no more than a few lines in its pipe.
_LAST_NEWS = 5.0


class Child(Protocol):
    """A running attempt, as its supervisor sees it."""

    @property
    def pid(self) -> int:
        """The process that runs it."""

    def news(self, seconds: float) -> list[News]:
        """Return what was told since the last call, after waiting no longer than this for it."""

    def last_news(self) -> list[News]:
        """Return all that is left to tell of a child that has ended."""

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
        self._output.parent.mkdir(parents=True, exist_ok=True)
        return ProcessChild(spec, self._output, verbose=self._verbose)

    def clean_up(self) -> None:
        """Remove what the last driver has left: one that is killed cannot put it away."""
        if self._lock_file is not None:
            remove_scratch(self._lock_file)


class ProcessChild:
    """A child process. A thread reads its news, so that it never waits for its supervisor."""

    def __init__(self, spec: AttemptSpec, output: Path, *, verbose: bool) -> None:
        reading, writing = os.pipe()
        with output.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headgate.jobs.attempts.worker"],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=None if verbose else sink,
                pass_fds=(writing,),
                env={**os.environ, NEWS_DESCRIPTOR: str(writing)},
                # A group of its own: whoever kills the child kills its JVM too.
                start_new_session=True,
            )
        os.close(writing)
        self._news: queue.Queue[News | None] = queue.Queue()
        self._told_all = False
        threading.Thread(target=self._listen, args=(reading,), daemon=True).start()
        self._say(encode(spec))

    @property
    def pid(self) -> int:
        """The child's process."""
        return self._process.pid

    def news(self, seconds: float) -> list[News]:
        """Return what was told since the last call, after waiting no longer than this for it."""
        found: list[News] = []
        with contextlib.suppress(queue.Empty):
            first = self._news.get(timeout=seconds)
            while True:
                self._told_all = self._told_all or first is None
                if first is not None:
                    found.append(first)
                first = self._news.get_nowait()
        return found

    def last_news(self) -> list[News]:
        """Return all that is left to tell of a child that has ended: its pipe has an end."""
        found: list[News] = []
        with contextlib.suppress(queue.Empty):
            while not self._told_all:
                news = self._news.get(timeout=_LAST_NEWS)
                self._told_all = news is None
                if news is not None:
                    found.append(news)
        return found

    def order(self, order: str) -> None:
        """Hand over an order; one to a child that has ended is lost."""
        self._say({"order": order})

    def find_exit(self) -> str | None:
        """Return how the child ended, or None while it lives."""
        code = self._process.poll()
        if code is None:
            return None
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def kill(self) -> None:
        """End the child and its JVM at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()

    def _say(self, value: object) -> None:
        pipe = self._process.stdin
        if pipe is None:
            return
        with contextlib.suppress(BrokenPipeError):
            pipe.write(json.dumps(value).encode() + b"\n")
            pipe.flush()

    def _listen(self, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8") as pipe:
            for line in pipe:
                # A child that is killed may leave half a line.
                if line.endswith("\n"):
                    self._news.put(decode_news(json.loads(line)))
        self._news.put(None)
