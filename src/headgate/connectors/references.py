"""Secrets by reference: `${env:NAME}` and `${file:/path}` stand for what is not written down.

A reference is resolved where a client is made, in the process that makes it, and nowhere else.
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
# Names that say where or of what kind a secret is, which is none.
_ABOUT_A_SECRET = re.compile(
    r"\.(?:location|type|url|algorithm|provider|chain|file|ms|seconds|factor|jitter|class|name)$",
    re.IGNORECASE,
)


def has_reference(value: str) -> bool:
    """Tell whether a value names an environment variable or a file."""
    return _REFERENCE.search(value) is not None


def is_secret(name: str) -> bool:
    """Tell whether an option of a client holds a secret."""
    return _SECRET.search(name) is not None and not _ABOUT_A_SECRET.search(name)


def check_secret(name: str, value: str, *, broker: str, parts: Iterable[str] | None = None) -> None:
    """Refuse a secret that is written out where it would be kept and shown.

    Args:
        name: The option's name.
        value: Text with references or without.
        broker: Whose option it is, such as Kafka; for the hint.
        parts: What is secret in the value, where not all of it is.

    Raises:
        HeadgateError: SECRET_IN_PLAIN; the value is not in it.
    """
    secrets = (value,) if parts is None else parts
    if not is_secret(name) or all(not each or has_reference(each) for each in secrets):
        return
    variable, file = f"{broker.upper()}_SECRET", f"/run/secrets/{broker.lower()}"
    raise HeadgateError(
        "SECRET_IN_PLAIN",
        f"cannot keep {name}: its value is written out, and flows, plans and the files of jobs "
        "would show it",
        hint=f"set the environment variable {variable} and write {name}=${{env:{variable}}}, "
        f"or {name}=${{file:{file}}}",
    )


def resolve(name: str, value: str, *, environment: Mapping[str, str] | None = None) -> str:
    """Return a value with what its references stand for; a file's text is trimmed.

    Args:
        name: The option's name, for the message.
        value: Text with references or without.
        environment: This process's, if left out.

    Raises:
        HeadgateError: SECRET_NOT_FOUND.
    """
    known = os.environ if environment is None else environment

    def found(match: re.Match[str]) -> str:
        kind, target = match[1], match[2]
        if kind == "env":
            if target in known:
                return known[target]
            raise _not_found(name, match[0], "there is no such variable", f"export {target}=…")
        try:
            return Path(target).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise _not_found(name, match[0], why, f"ls -l {target}") from error

    return _REFERENCE.sub(found, value)


def _not_found(name: str, reference: str, found: str, hint: str) -> HeadgateError:
    return HeadgateError(
        "SECRET_NOT_FOUND", f"cannot resolve {reference} for {name}: {found}", hint=hint
    )
