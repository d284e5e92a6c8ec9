"""The side of the child: its orders, its answers, and the end of its parent."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from headgate.jobs.processes.child import REPLIES
from headgate.jobs.processes.messages import Message, receive, send


class Parent:
    """The process that spawned this one."""

    def __init__(self) -> None:
        # Not for processes that this one starts: the pipe ends when this process does.
        self._replies: int | None = int(os.environ.pop(REPLIES))
        os.set_inheritable(self._replies, False)
        self._lock = threading.Lock()

    def receive(self) -> dict[str, Any]:
        """Return the next message; ends this process where the parent is gone."""
        message = receive(sys.stdin.buffer)
        if message is None:
            sys.exit(1)
        return message

    def send(self, message: Message) -> bool:
        """Send a message; return whether the parent can still take it."""
        with self._lock:
            if self._replies is None:
                return False
            try:
                send(self._replies, message)
            except BrokenPipeError:
                # The parent did not wait, or is gone.
                self._close()
                return False
            return True

    def answer(self, message: Message) -> bool:
        """Send the only message; return whether nothing was answered before."""
        sent = self.send(message)
        with self._lock:
            self._close()
        return sent

    def listen(self, take: Callable[[dict[str, Any]], object], end: Callable[[], object]) -> None:
        """Take later messages on a thread of its own, and call `end` there when the parent is gone.

        An invalid message counts as that end: a child that cannot be stopped must not go on.
        """

        def work() -> None:
            try:
                while (message := receive(sys.stdin.buffer)) is not None:
                    take(message)
            except Exception as error:  # noqa: BLE001 - whatever it is, this process ends
                sys.stderr.write(f"cannot read a message of the parent: {error!r}\n")
                sys.stderr.flush()
            finally:
                end()

        threading.Thread(target=work, name="parent", daemon=True).start()

    def _close(self) -> None:
        if self._replies is not None:
            os.close(self._replies)
            self._replies = None


def become_orphan() -> None:
    """Go on in a process of its own, which outlives the parent; the parent's child ends with 0.

    An orphan belongs to the system, which collects it when it ends.
    """
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)


def kill_group() -> None:
    """End this process and all of its session at once."""
    os.killpg(0, signal.SIGKILL)
