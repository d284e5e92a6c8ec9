"""A supervisor for tests of the verbs: it holds the job's lock and follows intents, without Spark.

It moves a job through the same machine as the real one, so that what it refuses is what the real
one refuses. Its attempts run at once and end when they are told to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import find_echo, find_intent
from headgate.jobs.lifecycle.machine import Machine, step
from headgate.jobs.lifecycle.restart import parse_strategy
from headgate.jobs.lifecycle.vocabulary import (
    AttemptEnded,
    AttemptRunning,
    Event,
    KillAttempt,
    Order,
    OrderAttempt,
    SavepointEnded,
    Submitted,
    TakeSavepoint,
)
from headgate.jobs.supervision.supervisor import to_wanted

LINEAGE = "20261115T120000-abcdef"
COUNTS: dict[str, Any] = {
    "inputs": {"orders": 1200, "users": 40},
    "outputs": {"enriched-orders": 1190, "missing-users": 10},
    "lag_bytes": {"orders": 4096, "users": 0},
    "state_rows": {"with-user": 40},
    "state_bytes": {"with-user": 2048},
    "batch": 7,
    "batches": 8,
    "records_per_s": 321,
}


class FakeSupervisor:
    """Supervises a job on a thread, until it is in a final state.

    Args:
        savepoint: Called for a savepoint with the folder that was asked for.
        deaf: Follow nothing, as one that hangs.
    """

    def __init__(
        self,
        home: JobFolder,
        *,
        savepoint: Callable[[str], dict[str, Any]] | None = None,
        deaf: bool = False,
        **status: Any,
    ) -> None:
        self._home = home
        self._machine = Machine(job=home.name, strategy=parse_strategy("none"))
        self._take = savepoint or self._savepoint
        self._deaf = deaf
        self._status = status
        self._error: dict[str, str] | None = None
        self._echoed = find_echo(home)
        self._held = threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> FakeSupervisor:
        self._thread.start()
        assert self._held.wait(180)
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.vanish()

    def vanish(self) -> None:
        """Let go of the job at once, as one that was killed."""
        self._end.set()
        self._thread.join(10)

    def _run(self) -> None:
        with self._home.locked():
            self._apply(Submitted(_now()))
            self._apply(AttemptRunning(_now()))
            self._held.set()
            while not self._end.wait(0.01) and not self._machine.state.is_final:
                self._notice()
            # A moment between the last word and the end, as with a real process.
            self._end.wait(0.02)

    def _notice(self) -> None:
        intent = find_intent(self._home)
        if self._deaf or intent is None or intent.number <= self._echoed:
            return
        self._note("INTENT", number=intent.number, verb=intent.verb.value, by=intent.by)
        self._echoed, self._error = intent.number, None
        try:
            self._apply(to_wanted(intent, at=_now()))
        except HeadgateError as error:
            self._error = error.as_dict()
        self._tell()

    def _apply(self, event: Event) -> None:
        self._machine, actions = step(self._machine, event)
        self._tell()
        for action in actions:
            if isinstance(action, TakeSavepoint):
                self._save(action.to)
                self._apply(SavepointEnded(_now()))
            elif action in (OrderAttempt(Order.STOP), OrderAttempt(Order.DRAIN), KillAttempt()):
                self._apply(AttemptEnded(_now(), caught_up=False))

    def _save(self, to: str) -> None:
        try:
            self._note("SAVEPOINT", **self._take(to))
        except HeadgateError as error:
            self._error = error.as_dict()
            self._note("SAVEPOINT_FAILED", **error.as_dict())

    def _savepoint(self, to: str) -> dict[str, Any]:
        folder = Path(to) if to else self._home.savepoints_folder / "sp-7"
        return {"savepoint": folder.name, "folder": str(folder), "batch": 7, "bytes": 2048}

    def _note(self, kind: str, **facts: Any) -> None:
        self._home.add_event(_now(), kind, **facts)

    def _tell(self) -> None:
        self._home.write_status(
            {
                "job": self._home.name,
                "lineage": LINEAGE,
                "resumed_from": None,
                "loading_tables": False,
                "elapsed_s": 1.0,
                "folder": str(self._home.path),
                "checkpoint": None,
                **COUNTS,
                **self._machine.to_json(),
                "pid": os.getpid(),
                "child": None,
                "intent": self._echoed,
                "intent_error": self._error,
                "at": _now().isoformat(),
                **self._status,
            }
        )


def _now() -> datetime:
    return datetime.now(UTC)
