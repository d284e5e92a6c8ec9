"""The side of the parent: a child process, from its spawn to its death."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from headgate.errors import HeadgateError
from headgate.jobs.processes.messages import GarbledMessageError, Message, receive, send

# The environment variable that names the descriptor a child sends its messages to.
REPLIES = "HEADGATE_REPLIES"
# How often a wait for a message looks whether the child still lives.
_LOOK_EVERY = 0.1
# How long to wait for the last messages of a child that has ended.
_LAST_MESSAGES = 5.0
# How much of the output is looked at for its last lines.
_TAIL = 4096
_LAST_LINES = 5
_STANDARD_ERROR = 2


class ChildDiedError(Exception):
    """A child ended without an answer; the message follows a subject: "was killed by signal 9"."""


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended.

    Attributes:
        code: Its exit code; the number of a signal below zero; None if it is not known, of a child
            that went on as an orphan.
        lines: The last lines that it wrote to its output, oldest first.
        garbled: What it sent instead of a message, and was killed for; empty for nothing.
    """

    code: int | None
    lines: tuple[str, ...] = ()
    garbled: str = ""

    def explain(self) -> str:
        """Return how it ended as what follows a subject: "was killed by signal 9"."""
        if self.code is None:
            return str(self)
        was_killed = self.garbled or self.code < 0
        return f"was {self}" if was_killed else f"ended with {self}"

    def __str__(self) -> str:
        if self.garbled:
            return f"killed because it sent {self.garbled}"
        if self.code is not None and self.code < 0:
            return f"killed by signal {-self.code}"
        how = "exited at once" if self.code is None else f"exit code {self.code}"
        # The last line explains the end of a process that was not killed.
        return f"{how}: {self.lines[-1]}" if self.lines and self.code != 0 else how


class ChildProcess:
    """A child process in a session of its own.

    A thread reads its messages, so that the child never waits for its parent. At the end of a
    `with` block the child is killed, if it has not ended by then.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        replies: int,
        output: IO[bytes] | None,
        *,
        begin: int,
        is_orphan: bool,
    ) -> None:
        self._process = process
        self._is_orphan = is_orphan
        self._output = output
        # Where its own output begins, in a file that others have written to.
        self._begin = begin
        self._garbled = ""
        # None stands for the end of the pipe.
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._has_ended = False
        self._thread = threading.Thread(
            target=self._listen, args=(replies,), name=f"child-{process.pid}", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.kill()
        self.close()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def send(self, message: Message) -> None:
        """Send a message; one to a child that has ended is lost."""
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            send(pipe.fileno(), message)

    def end_input(self) -> None:
        """Close the child's standard input; a child that ends with its parent ends now."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def receive(self, timeout: float | None = None) -> dict[str, Any] | None:
        """Return the next message; None if the child, or an orphan it became, has ended.

        Raises:
            TimeoutError: There was none for so many seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._has_ended:
            is_dead = self._is_dead()
            try:
                message = self._messages.get(timeout=_LAST_MESSAGES if is_dead else _LOOK_EVERY)
            except queue.Empty:
                if is_dead:
                    # A process that the child started still holds the pipe.
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError from None
                continue
            if message is not None:
                return message
            self._has_ended = True
        return None

    def ask(self, order: Message, timeout: float | None = None) -> dict[str, Any]:
        """Send the only order to the child, and return its answer.

        Raises:
            HeadgateError: The child answered with an error.
            ChildDiedError: The child ended without an answer.
            TimeoutError: There was no answer for so many seconds; the child is killed.
        """
        try:
            self.send(order)
            self.end_input()
            answer = self.receive(timeout)
            if answer is None:
                raise ChildDiedError(self.get_death().explain())
        except TimeoutError:
            self.kill()
            raise
        finally:
            self.close()
        if "error" in answer:
            raise HeadgateError.from_json(answer["error"])
        return dict(answer["answer"])

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the messages since the last call, after waiting no longer than this for one."""
        messages = []
        with contextlib.suppress(queue.Empty):
            message = self._messages.get(timeout=seconds)
            while True:
                if message is None:
                    self._has_ended = True
                else:
                    messages.append(message)
                message = self._messages.get_nowait()
        return messages

    def take_rest(self) -> list[dict[str, Any]]:
        """Return all messages that are left of a child that has ended."""
        messages = []
        with contextlib.suppress(queue.Empty):
            while not self._has_ended:
                message = self._messages.get(timeout=_LAST_MESSAGES)
                if message is None:
                    self._has_ended = True
                else:
                    messages.append(message)
        return messages

    def find_death(self) -> Death | None:
        """Return how the child ended, or None while it lives."""
        code = self._process.poll()
        return None if code is None else self.get_death()

    def get_death(self) -> Death:
        """Return how the child ended; waits until it has. How an orphan ends is not known."""
        code = self._process.wait()
        return Death(
            None if self._is_orphan and code == 0 else code, self._last_lines(), self._garbled
        )

    def reject(self, garbled: str) -> None:
        """Kill the child for what it sent."""
        self._garbled = self._garbled or garbled
        self.kill()

    def kill(self) -> None:
        """End the child and all processes of its session at once, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, timeout: float) -> bool:
        """Wait for the child to end by itself; return whether it has."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """Give back the descriptors of a child that has ended."""
        self.end_input()
        if self._output is not None:
            self._output.close()

    def _is_dead(self) -> bool:
        """Return True if no message can follow; for an orphan only the end of the pipe shows it."""
        code = self._process.poll()
        return code is not None and (code != 0 or not self._is_orphan)

    def _last_lines(self) -> tuple[str, ...]:
        """Return the last lines of the output since the spawn; none where it is not kept."""
        if self._output is None or self._output.closed:
            return ()
        descriptor = self._output.fileno()
        size = os.fstat(descriptor).st_size
        begin = max(self._begin, size - _TAIL)
        text = os.pread(descriptor, max(0, size - begin), begin).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return tuple(lines[-_LAST_LINES:])

    def _listen(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            try:
                while (message := receive(pipe)) is not None:
                    self._messages.put(message)
            except GarbledMessageError as garbled:
                self._garbled = str(garbled)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        self._messages.put(None)


def spawn(
    module: str,
    *arguments: str,
    output: IO[bytes] | None = None,
    shows_errors: bool = False,
    inherits: Sequence[int] = (),
    is_orphan: bool = False,
) -> ChildProcess:
    """Start a module in a process and a session of its own.

    Args:
        output: A file, open for reading and appending, which takes both standard streams of the
            child and is closed with it; None to send both to standard error of this process.
        shows_errors: Leave the child's standard error as it is here, although there is an output.
        inherits: Descriptors that the child keeps, beside its own.
        is_orphan: The module calls `become_orphan`: its process ends at once, and it goes on.
    """
    reading, writing = os.pipe()
    stream = _STANDARD_ERROR if output is None else output.fileno()
    begin = 0 if output is None else os.fstat(stream).st_size
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=None if shows_errors or output is None else stream,
            # What a buffer kept from a child that is gone would be written again, in vain.
            bufsize=0,
            pass_fds=(writing, *inherits),
            env={"PYTHONIOENCODING": "utf-8", **os.environ, REPLIES: str(writing)},
            # Ctrl-C at a terminal is for the parent, and a kill of the child reaches its JVM, too.
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return ChildProcess(process, reading, output, begin=begin, is_orphan=is_orphan)


def open_output(file: Path | None = None, *, anew: bool = False) -> IO[bytes]:
    """Return a file that takes a child's output, and make its folder.

    Args:
        file: None for one without a name, of which only the last lines are of use.
        anew: Empty the file first.
    """
    if file is None:
        return tempfile.TemporaryFile()
    file.parent.mkdir(parents=True, exist_ok=True)
    return file.open("w+b" if anew else "a+b")
