"""The reader of state: a separate process for one home, with a small Spark that stays running.

It never touches a job's JVM. It exits after some idle minutes, on request, or when its folder is
deleted.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from headgate.errors import Domain, HeadgateError
from headgate.jobs.processes.messages import to_line
from headgate.jobs.processes.parent import Parent, become_orphan
from headgate.jobs.state.answers import OUTDATED, Answers
from headgate.jobs.state.connection import LONGEST_ANSWER, ReaderFolder, introduction, receive
from headgate.jobs.state.places import find_stores

if TYPE_CHECKING:
    from headgate.engine.state.reading import StateReader

# The only message of a reader to the process that started it: a reader accepts questions.
_UP = {"up": True}
# The time in which an exiting reader releases the lock.
_PATIENCE = 30.0
_LOOK_EVERY = 0.5
# The longest time between a connection and its question.
_PROMPT = 30.0
# After this time a reader is considered to hang. Queries have a shorter limit of their own.
_LOOK_UP = 180.0
_QUERY = 360.0
LONGEST = {"look_up": _LOOK_UP, "history": _LOOK_UP, "first_rows": _QUERY, "query": _QUERY}


class Daemon:
    """Answers questions from the socket, each on its own thread.

    Args:
        idle: The seconds without a question after which it exits.
        reader: Returns the reader of state once it has started.
        is_well: Tells whether the reader can still answer; otherwise the daemon exits.
        stores: The object stores that the reader can read.
        longest: By question, the seconds after which it is considered to hang, and exits.
    """

    def __init__(
        self,
        folder: ReaderFolder,
        *,
        idle: float,
        reader: Callable[[], StateReader],
        is_well: Callable[[], bool] = lambda: True,
        stores: Collection[str] = (),
        longest: Mapping[str, float] = LONGEST,
    ) -> None:
        self._longest = longest
        self._is_well = is_well
        self._folder = folder
        self._idle = idle
        self._answers = Answers(folder.root, folder.path / "work", reader, stores=stores)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._busy = 0
        self._last = time.monotonic()
        self._mine: tuple[int, int] | None = None

    def stop(self) -> None:
        """Exit after the present questions, and accept no more."""
        self._stopping.set()
        self._leave()

    def serve(self, listening: socket.socket) -> None:
        """Answer questions until it is time to exit."""
        listening.settimeout(_LOOK_EVERY)
        self._mine = self._find_mark()
        while not self._is_over():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            with self._lock:
                self._busy += 1
            threading.Thread(target=self._take, args=(connection,), daemon=True).start()
        self._leave()
        deadline = time.monotonic() + _PATIENCE
        while self._busy and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY / 10)
        self._answers.close()

    def _leave(self) -> None:
        """Remove the socket, unless another reader owns it: the next question starts a reader."""
        if self._mine is not None and self._find_mark() == self._mine:
            self._folder.socket_file.unlink(missing_ok=True)

    def _find_mark(self) -> tuple[int, int] | None:
        """Return the identity of the present socket, or None if there is none."""
        try:
            status = self._folder.socket_file.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def _is_over(self) -> bool:
        with self._lock:
            idle = not self._busy and time.monotonic() - self._last > self._idle
        return idle or self._stopping.is_set() or self._find_mark() != self._mine

    def _take(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                connection.settimeout(_PROMPT)
                connection.sendall(to_line(introduction()))
                question = receive(stream)
                if question is not None:
                    connection.settimeout(_PROMPT)
                    connection.sendall(_fitting(to_line(self._answer(question))))
        except (OSError, ValueError):
            # The client has closed the connection.
            pass
        finally:
            with self._lock:
                self._busy -= 1
                self._last = time.monotonic()

    def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if question.get("ask") == "end":
            self.stop()
            return {"answer": {"pid": os.getpid()}}
        try:
            return {"answer": self._answer_in_time(question)}
        except HeadgateError as error:
            failure = error
            if error.code == OUTDATED:
                # The client asks the next reader.
                self.stop()
        except Exception as error:  # noqa: BLE001 - the client must learn of any error
            failure = self._failed(error)
            # A killed JVM exits a moment after its connections.
            time.sleep(_LOOK_EVERY)
        if not self._is_well():
            self.stop()
            if failure.code == "STATE_READER_FAILED":
                # Without an answer, the client repeats the question to the next reader.
                raise ConnectionError
        return {"error": failure.to_json()}

    def _answer_in_time(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer, or exit if it takes too long."""
        answer: Future[dict[str, Any]] = Future()

        def work() -> None:
            try:
                answer.set_result(self._answers.answer(question))
            except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
                answer.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        limit = self._longest.get(str(question.get("ask")), _LOOK_UP)
        if not wait([answer], limit).done:
            # The next question starts another reader.
            self.stop()
            raise HeadgateError(
                "STATE_READER_DIED",
                f"cannot read state: its reader got no result for {limit:g} s, and exits",
                hint=f"tail {self._folder.output}",
                domain=Domain.INTERNAL,
                retryable=True,
            )
        return answer.result()

    def _failed(self, error: Exception) -> HeadgateError:
        import traceback

        traceback.print_exception(error)
        sys.stderr.flush()
        return HeadgateError(
            "STATE_READER_FAILED",
            f"cannot read state: {type(error).__name__}: {error}".partition("\n")[0],
            hint=f"tail {self._folder.output}",
            domain=Domain.INTERNAL,
        )


def _fitting(line: bytes) -> bytes:
    """Return an answer, or a refusal if it is too large."""
    if len(line) <= LONGEST_ANSWER:
        return line
    mib = 1024 * 1024
    refusal = HeadgateError(
        "STATE_ANSWER_TOO_LARGE",
        f"cannot show state: the answer has {len(line) / mib:.1f} MiB, and the maximum is "
        f"{LONGEST_ANSWER // mib} MiB",
        hint="select fewer or shorter columns, or a smaller --rows",
    )
    return to_line({"error": refusal.to_json()})


class _Opening:
    """Starts Spark while the first questions arrive."""

    def __init__(
        self, folder: ReaderFolder, longest_query: timedelta, stores: Collection[str]
    ) -> None:
        self._folder = folder
        self._stores = tuple(stores)
        self._longest_query = longest_query
        self._reader: Future[StateReader] = Future()
        threading.Thread(target=self._open, daemon=True).start()

    def get(self) -> StateReader:
        """Return the reader as soon as it has started."""
        return self._reader.result()

    def is_well(self) -> bool:
        """Tell whether Spark is starting, or its JVM is running."""
        if not self._reader.done():
            return True
        return self._reader.exception() is None and self.get().is_alive()

    def _open(self) -> None:
        try:
            from headgate.engine.state.reading import StateReader

            log = self._folder.path / "logs" / "spark.log"
            scratch = self._folder.path / "scratch"
            self._reader.set_result(
                StateReader(
                    log_file=log,
                    scratch=scratch,
                    longest_query=self._longest_query,
                    stores=self._stores,
                )
            )
        except BaseException as error:  # noqa: BLE001 - every question raises it
            self._reader.set_exception(error)


def main() -> None:
    """Run the reader of a home, unless it has one."""
    root, idle = Path(sys.argv[1]), float(sys.argv[2])
    longest_query = timedelta(seconds=float(sys.argv[3]))
    parent = Parent()
    become_orphan()
    folder = ReaderFolder(root)
    folder.make()
    with (folder.path / "lock").open("a+") as lock:
        if not _take_lock(lock, folder):
            parent.answer(_UP)
            return
        stores = find_stores(root)
        opening = _Opening(folder, longest_query, stores)
        daemon = Daemon(
            folder, idle=idle, reader=opening.get, is_well=opening.is_well, stores=stores
        )
        signal.signal(signal.SIGTERM, lambda *_: daemon.stop())
        with folder.listen() as listening:
            parent.answer(_UP)
            daemon.serve(listening)
        sys.stdout.flush()
        # The JVM exits with this process, and has no data to keep.
        os._exit(0)


def _take_lock(lock: IO[str], folder: ReaderFolder) -> bool:
    """Return whether this process is the reader; False if another one answers."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = folder.find_connection(1.0)
            if other is not None:
                other.close()
                return False
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
            continue
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        return True


if __name__ == "__main__":
    main()
