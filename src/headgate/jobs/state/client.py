"""The client of the state reader: finds the reader of a home, or starts it, and asks it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate._codec import decode
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.processes.child import open_output, spawn
from headgate.jobs.processes.messages import to_line
from headgate.jobs.registry import get_job
from headgate.jobs.state.connection import ReaderFolder, introduction, receive
from headgate.jobs.state.places import check_form, check_operator, find_place
from headgate.jobs.state.values import StateHistory, StateRows, StateValue

IDLE = timedelta(minutes=10)
# For a process to come up; Spark is not waited for.
_START = 60.0
# Spark's own start, a long query, and a little more.
_ANSWER = 420.0
_GREETING = 10.0


class StateDesk:
    """Answers questions on the state of a home's jobs; from any thread, and each call blocks.

    The first question of a home starts its reader, some seconds; it is shared by all desks, and
    ends when nobody asked for a while.

    Args:
        idle: After how long without a question a reader that this desk starts ends.
    """

    def __init__(self, root: Path, *, idle: timedelta = IDLE) -> None:
        self._folder = ReaderFolder(root)
        self._idle = idle
        self._starting = threading.Lock()

    def look_up(self, job: str, uid: str, key: str, *, at: str | None = None) -> StateValue:
        """Return what an operator holds under a key.

        Args:
            key: As somebody types it: `42`, `abc`, `"abc"`, or of several columns
                `{"a": 1, "b": 2}` or `[1, 2]`.
            at: None for the last committed batch; `chk-17`, a savepoint's name, or `latest`.

        Raises:
            HeadgateError: JOB_NOT_FOUND, NOTHING_COMMITTED, CHECKPOINT_NOT_FOUND,
                STATE_OPERATOR_NOT_FOUND, STATE_FORMAT_UNSUPPORTED, STATE_KEY_MISMATCH,
                STATE_UNREADABLE, or one of STATE_READER_….
        """
        check_operator(find_place(self._job(job), at), uid)
        question = {"ask": "look_up", "job": job, "uid": uid, "key": key, "at": at}
        return decode(StateValue, self._ask(question))

    def history(self, job: str, uid: str, key: str) -> StateHistory:
        """Return what an operator held under a key at every retained checkpoint, and now."""
        check_operator(find_place(self._job(job), None), uid)
        question = {"ask": "history", "job": job, "uid": uid, "key": key}
        return decode(StateHistory, self._ask(question))

    def first_rows(
        self, job: str, uid: str, *, at: str | None = None, limit: int = 50
    ) -> StateRows:
        """Return the first rows that an operator holds; which ones is Spark's choice."""
        check_operator(find_place(self._job(job), at), uid)
        question = {"ask": "first_rows", "job": job, "uid": uid, "at": at, "limit": limit}
        return decode(StateRows, self._ask(question))

    def query(
        self,
        job: str,
        sql: str,
        *,
        uid: str | None = None,
        at: str | None = None,
        limit: int = 1000,
    ) -> StateRows:
        """Return the first rows of a query over state.

        Args:
            sql: One query. Its views are `state`, of the operator that is named or the only one,
                and one for each operator by its uid, with underscores for dashes.

        Raises:
            HeadgateError: As `look_up`; STATE_SQL_REFUSED with Spark's words, STATE_SQL_TOO_LONG.
        """
        place = find_place(self._job(job), at)
        check_form(place)
        if uid is not None:
            check_operator(place, uid)
        question = {"ask": "query", "job": job, "sql": sql, "uid": uid, "at": at, "limit": limit}
        return decode(StateRows, self._ask(question))

    def close(self) -> None:
        """End the reader, if there is one; the next question starts another."""
        connection = self._folder.find_connection(_GREETING)
        if connection is None:
            return
        with suppress(OSError, ValueError), connection, connection.makefile("rb") as stream:
            if receive(stream) is not None:
                connection.sendall(to_line({"ask": "end"}))
                receive(stream)

    def _job(self, name: str) -> JobFolder:
        return get_job(self._folder.root, name, verb="read the state of")

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer; a reader that dies over a question is started once more."""
        for _ in range(2):
            answer = self._try(question)
            if answer is None:
                continue
            if "error" in answer:
                raise HeadgateError.from_json(answer["error"])
            found: dict[str, Any] = answer["answer"]
            return found
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
            # Whoever asks next shall not wait for it, too.
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
        """Return a connection to a reader of this release, whose introduction is read."""
        with self._starting:
            deadline = time.monotonic() + _START
            while time.monotonic() < deadline:
                found = self._folder.find_connection(_GREETING)
                if found is None:
                    self._start()
                    continue
                with suppress(OSError, ValueError):
                    # Unbuffered: what follows is read by another stream.
                    with found.makefile("rb", buffering=0) as stream:
                        told = receive(stream)
                    if told == introduction():
                        return found
                    if told is not None:
                        found.sendall(to_line({"ask": "end"}))
                found.close()
                time.sleep(0.05)
        raise self._not_started("another one does not end")

    def _start(self) -> None:
        """Start a reader, and return once it, or another one, can be asked."""
        self._folder.make()
        reader = spawn(
            "headgate.jobs.state.reader",
            str(self._folder.root.absolute()),
            str(self._idle.total_seconds()),
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

    def _not_started(self, why: str) -> HeadgateError:
        return HeadgateError(
            "STATE_READER_NOT_STARTED",
            f"cannot read state: its reader did not start: {why}",
            hint=f"tail {self._folder.output}",
            domain=Domain.INTERNAL,
        )
