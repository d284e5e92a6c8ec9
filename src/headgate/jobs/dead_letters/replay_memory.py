"""The replays of dead letters: a file in the job's folder, with one line for each step.

    {"format": 1, "step": "sending", "batch": ID, "at": …, "by": …, "topic": …, "letters": […],
     "records": […]}
    {"format": 1, "step": "sent", "batch": ID, "at": …}

The first line is on disk before a record is sent, the second one follows when all records of the
batch are acknowledged. Letters of a batch without the second line are in doubt. A letter is
identified by its place and a digest of its content, since its topic may be recreated. A record may
have several letters, since a restore to an older checkpoint writes them again. So the record is
identified too, by its place and time; lines of older releases lack that.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from headgate._clock import Clock
from headgate.errors import Domain, HeadgateError
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.job_folder import JobFolder, unsupported_format

FORMAT = 1
FILE = "replays.jsonl"


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay of a letter's record; `is_sure` if it was acknowledged."""

    at: datetime
    by: str
    is_sure: bool


@dataclass(frozen=True, slots=True)
class ReplayMemory:
    """The replays of a job, by the marks of letters and records."""

    known: dict[str, Replay] = field(default_factory=dict)

    def find(self, letter: DeadLetter, topic: str | None = None) -> Replay | None:
        """Return the last replay of a letter, or of its record for another letter.

        Args:
            topic: The topic of the record; None if it is unknown.
        """
        of_record = None if topic is None else self.known.get(mark_record(topic, letter))
        return of_record or self.known.get(_mark(letter))


class ReplayJournal:
    """Records replays; held by one process at a time."""

    def __init__(self, file: IO[bytes], memory: ReplayMemory, *, by: str, clock: Clock) -> None:
        self._file = file
        self.memory = memory
        self._by = by
        self._clock = clock
        self._begun: dict[str, list[str]] = {}

    def begin(self, topic: str, letters: Sequence[DeadLetter]) -> str:
        """Record that a batch is about to be sent, and return its name."""
        batch, now = secrets.token_hex(8), self._clock.now()
        marks = [_mark(letter) for letter in letters]
        records = [mark_record(topic, letter) for letter in letters]
        self._write(
            step="sending",
            batch=batch,
            at=now.isoformat(),
            by=self._by,
            topic=topic,
            letters=marks,
            records=records,
        )
        self._begun[batch] = [*marks, *records]
        doubt = Replay(now, self._by, is_sure=False)
        self.memory.known.update(dict.fromkeys(self._begun[batch], doubt))
        return batch

    def finish(self, batch: str) -> None:
        """Record that all records of a batch are acknowledged."""
        now = self._clock.now()
        self._write(step="sent", batch=batch, at=now.isoformat())
        done = Replay(now, self._by, is_sure=True)
        self.memory.known.update(dict.fromkeys(self._begun.pop(batch), done))

    def _write(self, **content: Any) -> None:
        self._file.write(json.dumps({"format": FORMAT, **content}).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_memory(home: JobFolder) -> ReplayMemory:
    """Return the replays of a job.

    Raises:
        HeadgateError: JOB_FILE_BROKEN, JOB_FORMAT_UNSUPPORTED.
    """
    path = home.path / FILE
    return _parse(path, path.read_bytes() if path.exists() else b"")


@contextmanager
def open_journal(home: JobFolder, *, by: str, clock: Clock) -> Iterator[ReplayJournal]:
    """Yield the journal of a job's replays, which this process locks.

    Raises:
        HeadgateError: REPLAY_RUNNING, or an error of `read_memory`.
    """
    path = home.path / FILE
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HeadgateError(
                "REPLAY_RUNNING",
                f"cannot replay dead letters of job {home.name!r}: another replay is running",
                hint="wait until it ends, and try again",
                retryable=True,
            ) from error
        file.seek(0)
        content = file.read()
        memory = _parse(path, content)
        # No record was sent after an incomplete line.
        file.truncate(content.rfind(b"\n") + 1)
        yield ReplayJournal(file, memory, by=by, clock=clock)


def _parse(path: Path, content: bytes) -> ReplayMemory:
    memory = ReplayMemory()
    begun: dict[str, tuple[list[str], str]] = {}
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            step = json.loads(line)
            if step["format"] != FORMAT:
                raise unsupported_format(path, step["format"], f"{FORMAT}")
            at, batch = datetime.fromisoformat(step["at"]), str(step["batch"])
            if step["step"] == "sending":
                marked = [*step["letters"], *step.get("records", ())]
                begun[batch] = ([str(mark) for mark in marked], str(step["by"]))
            marks, by = begun[batch] if step["step"] == "sending" else begun.pop(batch)
        except (ValueError, TypeError, KeyError) as error:
            raise HeadgateError(
                "JOB_FILE_BROKEN",
                f"cannot read {path}: it is corrupted ({error})",
                hint="restore it from a backup; without it, letters could be replayed twice",
                domain=Domain.EXTERNAL,
            ) from error
        replay = Replay(at, by, is_sure=step["step"] == "sent")
        memory.known.update(dict.fromkeys(marks, replay))
    return memory


def mark_record(topic: str, letter: DeadLetter) -> str:
    """Return the mark of a letter's record, which all its letters share."""
    return f"@{topic}:{letter.partition}:{letter.offset}:{letter.timestamp}"


def _mark(letter: DeadLetter) -> str:
    return f"{letter.id}#{letter.digest}"
