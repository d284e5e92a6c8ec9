"""The only error type of Headgate: a stable code, the problem, and the next step."""

from __future__ import annotations

import enum
import errno
import os
from collections.abc import Mapping
from typing import Any


class Domain(enum.StrEnum):
    """Who has to act after a failure."""

    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


# Refusals of the operating system by error number: the code, and one next step.
_REFUSALS = {
    errno.EACCES: ("NO_ACCESS", "get access to it, or choose another folder"),
    errno.EPERM: ("NO_ACCESS", "get access to it, or choose another folder"),
    errno.EROFS: ("NO_ACCESS", "choose a writable folder"),
    errno.ENOTDIR: ("NOT_A_FOLDER", "choose a folder, or move the file away"),
    errno.ENOSPC: ("DISK_FULL", "free some disk space; df -h shows how much is left"),
    errno.EDQUOT: ("DISK_FULL", "free some disk space; df -h shows how much is left"),
    errno.EMFILE: ("TOO_MANY_FILES", "ulimit -n 65536"),
    errno.ENFILE: ("TOO_MANY_FILES", "stop other programs"),
}
# Waiting may free disk space and file handles, but never grants access.
_PASSING = frozenset({"DISK_FULL", "TOO_MANY_FILES"})

_EXIT_CODES = {Domain.USER: 2, Domain.EXTERNAL: 3, Domain.INTERNAL: 70}


class HeadgateError(Exception):
    """Says what could not be done, why, and what to do next.

    Args:
        code: Stable, in upper snake case; programs may match on it.
        message: What could not be done and to what, a colon, and the actual value against the
            needed one.
        hint: One next step that works when pasted; empty if there is none.
        domain: Who can fix it; decides the exit code.
        retryable: True if trying again later may succeed.
        root_cause: The innermost cause as text, if it was not a Python exception; empty if
            `__cause__` holds it.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        domain: Domain = Domain.USER,
        retryable: bool = False,
        root_cause: str = "",
    ) -> None:
        # Both must be in args, which pickle passes to __init__; __dict__ carries the rest.
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.hint = hint
        self.domain = domain
        self.retryable = retryable
        self.root_cause = root_cause

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends with this error: 2, 3 or 70."""
        return _EXIT_CODES[self.domain]

    def as_dict(self) -> dict[str, str]:
        """Return the three fields that the CLI and the REST API show."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values, for another process of ours."""
        return {
            **self.as_dict(),
            "domain": self.domain.value,
            "retryable": self.retryable,
            "root_cause": self.root_cause,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> HeadgateError:
        """Return the error that `to_json` wrote."""
        return cls(
            content["code"],
            content["message"],
            hint=content["hint"],
            domain=Domain(content["domain"]),
            retryable=content["retryable"],
            root_cause=content["root_cause"],
        )

    def __str__(self) -> str:
        text = f"{self.code} {self.message}"
        return f"{text} | hint: {self.hint}" if self.hint else text


class StoreError(HeadgateError):
    """An object store did not answer, or refused: nothing is known of its files."""


def find_refusal(error: OSError, what: str) -> HeadgateError | None:
    """Return the refusal of the operating system as an error, or None for other errors.

    Args:
        what: What could not be done, as in `cannot finish 'headgate run'`.
    """
    if error.errno not in _REFUSALS:
        return None
    where = f": {error.filename}" if error.filename else ""
    return system_refusal(error.errno, f"{what}: {os.strerror(error.errno)}{where}")


def system_refusal(number: int, message: str) -> HeadgateError:
    """Return the error for a system error number in the table of refusals."""
    code, hint = _REFUSALS[number]
    return HeadgateError(
        code, message, hint=hint, domain=Domain.EXTERNAL, retryable=code in _PASSING
    )
