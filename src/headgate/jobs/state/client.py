"""The client of the state reader: finds the reader of a home, or starts it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from headgate._codec import decode, encode
from headgate.errors import Domain, HeadgateError
from headgate.jobs.processes.child import open_output, spawn
from headgate.jobs.processes.messages import to_line
from headgate.jobs.state.answers import OUTDATED
from headgate.jobs.state.connection import ReaderFolder, introduction, receive
from headgate.jobs.state.places import find_asked
from headgate.jobs.state.values import State, StateQuestion

IDLE = timedelta(minutes=10)
LONGEST_QUERY = timedelta(minutes=2)
# For a process to come up; Spark is not waited for.
_START = 60.0
# Spark's own start, a long query, and a little more.
_ANSWER = 420.0
_GREETING = 10.0

_Value = TypeVar("_Value")


class StateDesk(State):
    """The state of a home's jobs; from any thread, and each call blocks.

    The first question starts the home's reader of state, which takes some seconds. All desks share
    it, and it exits when idle.

    Args:
        idle: The idle time after which a reader that this desk starts exits.
        longest_query: The time after which such a reader ends a query.
    """

    def __init__(
        self, root: Path, *, idle: timedelta = IDLE, longest_query: timedelta = LONGEST_QUERY
    ) -> None:
        self._folder = ReaderFolder(root)
        self._idle = idle
        self._longest_query = longest_query
        self._starting = threading.Lock()

    def _ask(self, kind: type[_Value], question: StateQuestion) -> _Value:
        # A question that must be refused does not start a reader.
        find_asked(self._folder.root, question)
        return decode(kind, self._request(encode(question)))

    def close(self) -> None:
        """Stop the reader, if there is one; the next question starts another."""
        connection = self._folder.find_connection(_GREETING)
        if connection is None:
            return
        with suppress(OSError, ValueError), connection, connection.makefile("rb") as stream:
            if receive(stream) is not None:
                connection.sendall(to_line({"ask": "end"}))
                receive(stream)

    def _request(self, question: Mapping[str, Any]) -> Any:
        """Return the answer; a reader that dies while it answers is started once more.

        A query is not repeated: it may be what the reader died of.
        """
        for _ in range(2):
            answer = self._try(question)
            if answer is None and question["ask"] == "query":
                raise self._died_of_query()
            if answer is None:
                continue
            if "error" in answer and answer["error"]["code"] == OUTDATED:
                continue
            if "error" in answer:
                raise HeadgateError.from_json(answer["error"])
            return answer["answer"]
        raise HeadgateError(
            "STATE_READER_DIED",
            "cannot read state: its reader exited twice before it answered",
            hint=f"tail {self._folder.output}",
            domain=Domain.INTERNAL,
        )

    def _try(self, question: Mapping[str, Any]) -> dict[str, Any] | None:
        connection = self._connect()
        try:
            with connection, connection.makefile("rb") as stream:
                connection.settimeout(_ANSWER)
                connection.sendall(to_line(question))
                return receive(stream)
        except TimeoutError as error:
            # The next question must not wait for it, too.
            self.close()
            raise HeadgateError(
                "STATE_READER_DIED",
                f"cannot read state: its reader has not responded for {_ANSWER:.0f} s",
                hint=f"tail {self._folder.output}",
                domain=Domain.INTERNAL,
            ) from error
        except (OSError, ValueError):
            return None

    def _connect(self) -> Any:
        """Return a connection to a reader of this release, behind its introduction."""
        with self._starting:
            deadline = time.monotonic() + _START
            while time.monotonic() < deadline:
                connection = self._folder.find_connection(_GREETING)
                if connection is None:
                    self._start()
                    continue
                with suppress(OSError, ValueError):
                    # Unbuffered: another stream reads the rest.
                    with connection.makefile("rb", buffering=0) as stream:
                        greeting = receive(stream)
                    if greeting == introduction():
                        return connection
                    if greeting is not None:
                        connection.sendall(to_line({"ask": "end"}))
                connection.close()
                time.sleep(0.05)
        raise self._not_started("an older one does not exit")

    def _start(self) -> None:
        """Start a reader, and return once it, or another one, accepts questions."""
        self._folder.make()
        reader = spawn(
            "headgate.jobs.state.reader",
            str(self._folder.root.absolute()),
            str(self._idle.total_seconds()),
            str(self._longest_query.total_seconds()),
            output=open_output(self._folder.output),
            is_orphan=True,
        )
        try:
            if reader.receive(_START) is None:
                raise self._not_started(f"its process {reader.get_death().explain()}")
        except TimeoutError:
            raise self._not_started("it hangs") from None
        finally:
            reader.close()

    def _died_of_query(self) -> HeadgateError:
        return HeadgateError(
            "STATE_READER_DIED",
            "cannot answer the query: the reader of state exited while it ran; this or another "
            "query may need more memory than the reader has",
            hint="select less, or send the query again",
            domain=Domain.EXTERNAL,
            retryable=True,
        )

    def _not_started(self, why: str) -> HeadgateError:
        return HeadgateError(
            "STATE_READER_NOT_STARTED",
            f"cannot read state: its reader did not start: {why}",
            hint=f"tail {self._folder.output}",
            domain=Domain.INTERNAL,
        )
