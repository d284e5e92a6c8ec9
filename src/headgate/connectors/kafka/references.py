"""Secrets by reference: `${env:NAME}` and `${file:/path}` stand for what is not written down.

A reference is resolved where a client is made, in the process that makes it, and nowhere else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from headgate.connectors.kafka.jaas import parse_jaas
from headgate.errors import HeadgateError

MASK = "***"

_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
_SECRET = re.compile(r"password|secret|sasl\.jaas\.config|ssl\.key|token", re.IGNORECASE)
# Names that say where or of what kind a secret is, which is none.
_ABOUT_A_SECRET = re.compile(
    r"\.(?:location|type|url|algorithm|provider|chain|file|ms|seconds|factor|jitter|class|name)$",
    re.IGNORECASE,
)
_INSIDE_JAAS = re.compile(r"password|secret|token", re.IGNORECASE)


def has_reference(value: str) -> bool:
    """Tell whether a value names an environment variable or a file."""
    return _REFERENCE.search(value) is not None


def is_secret(name: str) -> bool:
    """Tell whether an option of a client holds a secret."""
    return _SECRET.search(name) is not None and not _ABOUT_A_SECRET.search(name)


def check_secret(name: str, value: str) -> None:
    """Refuse a secret that is written out where it would be kept and shown.

    Raises:
        HeadgateError: SECRET_IN_PLAIN; the value is not in it.
    """
    if not is_secret(name) or not _is_plain(name, value):
        return
    raise HeadgateError(
        "SECRET_IN_PLAIN",
        f"cannot keep {name}: its value is written out, and flows, plans and the files of jobs "
        "would show it",
        hint=f"set the environment variable KAFKA_SECRET and write {name}=${{env:KAFKA_SECRET}}, "
        f"or {name}=${{file:/run/secrets/kafka}}",
    )


def _is_plain(name: str, value: str) -> bool:
    if not value:
        return False
    login = parse_jaas(value) if name.lower().endswith("sasl.jaas.config") else None
    if login is None:
        return not has_reference(value)
    return any(
        not has_reference(each)
        for option, each in login.options.items()
        if _INSIDE_JAAS.search(option)
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
