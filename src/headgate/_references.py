"""Secrets by reference: `${env:NAME}` and `${file:/path}` stand for values stored elsewhere.

A reference is resolved only where a client is created, in that process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from headgate.errors import HeadgateError

MASK = "***"

_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
_SECRET = re.compile(r"password|secret|sasl\.jaas\.config|ssl\.key|token|authparams", re.IGNORECASE)
# Names that describe the location or kind of a secret, and are not secrets.
_ABOUT_A_SECRET = re.compile(
    r"\.(?:location|type|url|algorithm|provider|chain|file|ms|seconds|factor|jitter|class|name)$",
    re.IGNORECASE,
)


def has_reference(value: str) -> bool:
    """Return True if a value names an environment variable or a file."""
    return _REFERENCE.search(value) is not None


def is_secret(name: str) -> bool:
    """Return True if a client option holds a secret."""
    return _SECRET.search(name) is not None and not _ABOUT_A_SECRET.search(name)


def check_secret(name: str, value: str, *, broker: str, parts: Iterable[str] | None = None) -> None:
    """Refuse a secret in plain text, which would be stored and shown.

    Args:
        name: The option's name.
        value: Text with references or without.
        broker: The name for the hint of what it is a secret of, such as Kafka.
        parts: The secret parts of the value, if not all of it is secret.

    Raises:
        HeadgateError: SECRET_IN_PLAIN; the message never quotes the value.
    """
    secrets = (value,) if parts is None else parts
    if not is_secret(name) or all(not secret or has_reference(secret) for secret in secrets):
        return
    variable, file = f"{broker.upper()}_SECRET", f"/run/secrets/{broker.lower()}"
    raise HeadgateError(
        "SECRET_IN_PLAIN",
        f"cannot store {name}: its value is in plain text, and flows, plans and job files "
        "would show it",
        hint=f"set the environment variable {variable} and write {name}=${{env:{variable}}}, "
        f"or {name}=${{file:{file}}}",
    )


def resolve(name: str, value: str, *, environment: Mapping[str, str] | None = None) -> str:
    """Return a value with its references resolved; a file's text is trimmed.

    Args:
        name: The option's name, for the message.
        value: Text with references or without.
        environment: By default this process's.

    Raises:
        HeadgateError: SECRET_NOT_FOUND.
    """
    known = os.environ if environment is None else environment

    def find(match: re.Match[str]) -> str:
        kind, target = match[1], match[2]
        if kind == "env":
            if target in known:
                return known[target]
            raise _not_found(name, match[0], "the variable is not set", f"export {target}=…")
        try:
            return Path(target).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise _not_found(name, match[0], why, f"ls -l {target}") from error

    return _REFERENCE.sub(find, value)


def _not_found(name: str, reference: str, problem: str, hint: str) -> HeadgateError:
    return HeadgateError(
        "SECRET_NOT_FOUND", f"cannot resolve {reference} for {name}: {problem}", hint=hint
    )
