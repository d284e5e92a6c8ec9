"""The audit log: which client did what to which job, and the outcome."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate._codec import JsonValue, Moment, decode, encode
from headgate.server.security.access import Access, Role

FORMAT = 1
# The file is moved aside at this size; one old one is kept.
_LARGEST = 8 << 20
_LONGEST_TEXT = 1_000
_LONGEST_KEY = 64
_LONGEST_LINE = 8 << 10
# Of a longer text only so much is searched for secrets: more than is written, so that no secret is
# cut in two.
_LONGEST_SEARCHED = 8 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One line: which client did what to which job, and the outcome.

    Attributes:
        what: The action.
        operation: The id of the operation that does it.
        outcome: `STARTED`, `DONE`, `REPEATED` if an earlier request had the same key, or the code
            of the error that ended it.
    """

    format: int = FORMAT
    at: Moment
    who: str
    role: Role
    address: str
    what: str
    job: str | None
    operation: str | None
    outcome: str
    details: Mapping[str, JsonValue] = field(default_factory=dict)


class AuditLog:
    """Lines of JSON in a file that only its owner may read; the newest are kept."""

    def __init__(self, file: Path, *, hide: Callable[[str], str] = lambda text: text) -> None:
        """Set the file; the first line creates it.

        Args:
            hide: Takes secrets out of what is written.
        """
        self._file = file
        self._hide = hide
        self._lock = threading.Lock()

    def add(
        self,
        access: Access,
        what: str,
        *,
        outcome: str,
        job: str | None = None,
        operation: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a line, on disk before this returns.

        Args:
            what: The action.
            outcome: `STARTED`, `DONE`, or the code of the error that ended it.
            details: Left out of a line that would be too long, which says so.
        """
        line = AuditLine(
            at=datetime.now(UTC),
            who=access.who,
            role=access.role,
            address=access.address,
            what=what,
            job=job,
            operation=operation,
            outcome=outcome,
            details=self._plain(details or {}),
        )
        text = json.dumps(encode(line))
        if len(text) > _LONGEST_LINE:
            text = json.dumps(encode(replace(line, details={"cut": True})))
        with self._lock:
            self._write(text.encode() + b"\n")

    def tail(self, lines: int) -> list[AuditLine]:
        """Return the newest lines, oldest first; corrupted lines are left out."""
        log: list[AuditLine] = []
        for file in (self._older, self._file):
            try:
                text = file.read_bytes()
            except FileNotFoundError:
                continue
            # A line that was being written when the machine went down is corrupted.
            log += [line for raw in text.split(b"\n")[:-1] if (line := _find_line(raw))]
        return log[-lines:] if lines else []

    @property
    def _older(self) -> Path:
        return self._file.with_name(f"{self._file.name}.1")

    def _write(self, line: bytes) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A server of one job may write to the same file.
        with self._file.with_name(f"{self._file.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._file.exists() and self._file.stat().st_size + len(line) > _LARGEST:
                self._file.replace(self._older)
            out = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(out, line)
                os.fsync(out)
            finally:
                os.close(out)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._short(value, _LONGEST_TEXT)
        if isinstance(value, Mapping):
            return {
                self._short(str(key), _LONGEST_KEY): self._plain(inner)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._plain(inner) for inner in value[:100]]
        return value

    def _short(self, text: str, longest: int) -> str:
        return self._hide(text[:_LONGEST_SEARCHED])[:longest]


def _find_line(text: bytes) -> AuditLine | None:
    try:
        return decode(AuditLine, json.loads(text))
    except ValueError:
        return None
