"""Which dead letters were replayed: a file in the job's folder, one line for each step.

    {"format": 1, "step": "sending", "batch": ID, "at": …, "by": …, "topic": …, "letters": […],
     "records": […]}
    {"format": 1, "step": "sent", "batch": ID, "at": …}

The first line is on disk before a record is sent, the second one is written when all of the batch
are acknowledged. Letters of a batch without the second line are in doubt. A letter is known by its
place and by a digest of what it says, so that another one at the same place of a topic that was
made anew is another letter. One record may have several letters (a restore to an older checkpoint
writes them again), so that the record is known too, by its place and time; lines of older releases
leave that out.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from headgate._clock import Clock
from headgate.errors import Domain, HeadgateError
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.job_folder import JobFolder

FORMAT = 1
FILE = "replays.jsonl"


@dataclass(frozen=True, slots=True)
class Replay:
    """What is known of a letter whose record was sent again."""

    at: datetime
    by: str
    is_sure: bool


@dataclass(frozen=True, slots=True)
class ReplayMemory:
    """The replays of a job, as of when they were read."""

    known: dict[str, Replay] = field(default_factory=dict)

    def find(self, letter: DeadLetter, topic: str | None = None) -> Replay | None:
        """Return the last replay of a letter, or of its record by way of another letter.

        Args:
            topic: Where the record goes back to; None where nobody knows.
        """
        of_record = None if topic is None else self.known.get(mark_record(topic, letter))
        return of_record or self.known.get(_mark(letter))

    def tell(self, letter: DeadLetter, topic: str | None = None) -> DeadLetter:
        """Return the letter with what is known of its replay."""
        found = self.find(letter, topic)
        if found is None:
            return letter
        return replace(
            letter, replayed_at=found.at, replayed_by=found.by, in_doubt=not found.is_sure
        )


class ReplayJournal:
    """Writes down replays; held by one process at a time."""

    def __init__(self, file: IO[bytes], memory: ReplayMemory, *, by: str, clock: Clock) -> None:
        self._file = file
        self.memory = memory
        self._by = by
        self._clock = clock
        self._begun: dict[str, list[str]] = {}

    def begin(self, topic: str, letters: Sequence[DeadLetter]) -> str:
        """Note that records are about to be sent, and return the batch's name."""
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
        """Note that all records of a batch are acknowledged."""
        now = self._clock.now()
        self._write(step="sent", batch=batch, at=now.isoformat())
        done = Replay(now, self._by, is_sure=True)
        self.memory.known.update(dict.fromkeys(self._begun.pop(batch), done))

    def _write(self, **content: Any) -> None:
        self._file.write(json.dumps({"format": FORMAT, **content}).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_memory(home: JobFolder) -> ReplayMemory:
    """Return which letters of a job were replayed.

    Raises:
        HeadgateError: JOB_FILE_BROKEN, JOB_FORMAT_UNSUPPORTED.
    """
    path = home.path / FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ReplayMemory()
    return _remember(path, content)


@contextmanager
def open_journal(home: JobFolder, *, by: str, clock: Clock) -> Iterator[ReplayJournal]:
    """Give the journal of a job's replays, for this process alone.

    Raises:
        HeadgateError: REPLAY_RUNNING: another process has it. What `read_memory` raises.
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
        memory = _remember(path, content)
        # A line that broke off was never followed by a record.
        file.truncate(content.rfind(b"\n") + 1)
        yield ReplayJournal(file, memory, by=by, clock=clock)


def _remember(path: Path, content: bytes) -> ReplayMemory:
    memory = ReplayMemory()
    begun: dict[str, tuple[list[str], str]] = {}
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            step = json.loads(line)
            if step["format"] != FORMAT:
                raise _unsupported(path, step["format"])
            at, batch = datetime.fromisoformat(step["at"]), str(step["batch"])
            if step["step"] == "sending":
                told = [*step["letters"], *step.get("records", ())]
                begun[batch] = ([str(mark) for mark in told], str(step["by"]))
            marks, by = begun[batch] if step["step"] == "sending" else begun.pop(batch)
        except (ValueError, TypeError, KeyError) as error:
            raise _broken(path, error) from error
        known = Replay(at, by, is_sure=step["step"] == "sent")
        memory.known.update(dict.fromkeys(marks, known))
    return memory


def mark_record(topic: str, letter: DeadLetter) -> str:
    """Return what the record of a letter is known by, whichever of its letters this is."""
    return f"@{topic}:{letter.partition}:{letter.offset}:{letter.timestamp}"


def _mark(letter: DeadLetter) -> str:
    return f"{letter.id}#{letter.digest}"


def _broken(path: Path, error: Exception) -> HeadgateError:
    return HeadgateError(
        "JOB_FILE_BROKEN",
        f"cannot read {path}: it is corrupted ({error})",
        hint="restore it from a backup; without it, letters could be replayed twice",
        domain=Domain.EXTERNAL,
    )


def _unsupported(path: Path, found: object) -> HeadgateError:
    return HeadgateError(
        "JOB_FORMAT_UNSUPPORTED",
        f"cannot read {path}: its format is {found!r}, and this release reads {FORMAT}",
        hint="use the release of headgate that wrote it, or a newer one",
    )
