"""Idempotency keys of submits: the same key never submits twice, also after a restart."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate._codec import decode, encode
from headgate._disk import replace_file
from headgate.errors import Domain, HeadgateError
from headgate.server.operations import Operation, OperationState

FORMAT = 1
# The newest keys are kept; a client repeats a request within minutes.
_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class Submission:
    """A submit that was accepted.

    Attributes:
        key: A digest of the client and its key.
        request: A digest of the request.
        operation: The answer; as it ended, once it has.
    """

    key: str
    request: str
    operation: Operation


@dataclass(frozen=True, slots=True)
class _File:
    submissions: tuple[Submission, ...]
    format: int = FORMAT


class KeyedSubmit:
    """One request to submit, while it is processed.

    Attributes:
        answer: The operation of an earlier request with the same key, or None.
    """

    def __init__(
        self, submissions: Submissions, key: str | None, request: str, answer: Operation | None
    ) -> None:
        self._submissions = submissions
        self._key = key
        self._request = request
        self.answer = answer

    def begin(self, operation: Operation) -> None:
        """Write the operation down, on disk before this returns and the work begins."""
        if self._key is not None:
            self._submissions.put(Submission(self._key, self._request, operation))

    def end(self, operation: Operation) -> None:
        """Write down how the operation ended; on a full disk, a restart forgets it."""
        if self._key is not None:
            with self._submissions.lock, suppress(OSError):
                self._submissions.put(Submission(self._key, self._request, operation))


class Submissions:
    """The accepted submits with a key, in a file that only its owner may read."""

    def __init__(self, file: Path) -> None:
        """Read the file; the first key creates it."""
        self.lock = threading.Lock()
        self._file = file
        self._known: dict[str, Submission] = {}
        self._problem: HeadgateError | None = None
        try:
            self._known = {submission.key: submission for submission in _read(file)}
        except HeadgateError as error:
            # Only requests with a key need it.
            self._problem = error

    def operations(self) -> list[Operation]:
        """Return the operations, oldest first, of which none is running when a server starts."""
        return [_interrupted(submission.operation) for submission in self._known.values()]

    @contextmanager
    def hold(self, who: str, key: str | None, request: Mapping[str, Any]) -> Iterator[KeyedSubmit]:
        """Process a request; another one with a key waits meanwhile.

        Args:
            who: The client; keys of different clients are different.
            key: None if the client sent none: then nothing is kept of the request.
            request: All that the client asks for, as JSON values.

        Raises:
            HeadgateError: IDEMPOTENCY_KEY_REUSED if the key came with another request, or what is
                wrong with the file.
        """
        if key is None:
            yield KeyedSubmit(self, None, "", None)
            return
        digest, content = _digest([who, key]), _digest(request)
        with self.lock:
            if self._problem is not None:
                raise self._problem
            known = self._known.get(digest)
            if known is not None and known.request != content:
                raise HeadgateError(
                    "IDEMPOTENCY_KEY_REUSED",
                    f"cannot submit a flow: another request had the same Idempotency-Key {key!r}",
                    hint="use a new key for each submit, and the same one only to repeat it",
                )
            yield KeyedSubmit(self, digest, content, known.operation if known else None)

    def put(self, submission: Submission) -> None:
        """Write a submission down, on disk before this returns; the caller has the lock."""
        known = {**self._known, submission.key: submission}
        kept = list(known.values())[-_REMEMBERED:]
        _write(self._file, _File(tuple(kept)))
        self._known = {submission.key: submission for submission in kept}


def _interrupted(operation: Operation) -> Operation:
    if operation.is_over:
        return operation
    lost = HeadgateError(
        "OPERATION_INTERRUPTED",
        f"cannot say how operation {operation.id!r} ended: the server was restarted meanwhile",
        hint="headgate jobs",
        domain=Domain.EXTERNAL,
    )
    return replace(operation, state=OperationState.FAILED, error=lost, ended_at=datetime.now(UTC))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _read(file: Path) -> tuple[Submission, ...]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, not {FORMAT}")
        return decode(_File, content).submissions
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise HeadgateError(
            "SUBMISSIONS_UNREADABLE",
            f"cannot read {file.name} of the server: {error}",
            hint=f"submit without an Idempotency-Key, or remove {file}",
            domain=Domain.EXTERNAL,
        ) from error


def _write(file: Path, content: _File) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(file, json.dumps(encode(content)) + "\n", mode=0o600, sync=True)
