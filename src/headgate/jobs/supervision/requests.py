"""From an intent to the event of the machine that it stands for."""

from __future__ import annotations

from datetime import datetime

from headgate.jobs.lifecycle.intent import Intent, Verb
from headgate.jobs.lifecycle.vocabulary import (
    CancelWanted,
    PauseWanted,
    Request,
    RestartWanted,
    ResumeWanted,
    SavepointWanted,
    StopWanted,
)


def to_request(intent: Intent, *, at: datetime) -> Request:
    """Return what an intent asks of the machine."""
    arguments = intent.arguments
    match intent.verb:
        case Verb.STOP:
            drain = bool(arguments.get("drain"))
            return StopWanted(at, drain, arguments.get("savepoint"), intent.number)
        case Verb.CANCEL:
            return CancelWanted(at)
        case Verb.PAUSE:
            return PauseWanted(at)
        case Verb.RESUME:
            return ResumeWanted(at)
        case Verb.SAVEPOINT:
            return SavepointWanted(at, str(arguments.get("to") or ""), intent.number)
        case Verb.RESTART:
            return RestartWanted(at)
