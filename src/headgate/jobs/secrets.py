"""The secrets that a job's clients use, to remove them from texts that are shown.

Flows and options hold references, `${env:NAME}` and `${file:/path}`; a client's properties file
may hold the secret itself. Messages of Spark or of a broker's client may contain either.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from headgate._references import MASK, is_secret, resolve
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder

_REFERENCE = re.compile(r"\$\{(?:env|file):[^}]+\}")
_CONFIG = re.compile(r"[?&]config=([^&\s\"]+)")
_PROPERTY = re.compile(r"\s*([A-Za-z][\w.\-]*)\s*[=:]\s*(.+?)\s*")
# Shorter secrets would match parts of words.
_SHORTEST = 4
# A login in an address, and a value whose name says that it is secret.
_LOGIN = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
# No pattern begins with a run of any length, which would make a search quadratic.
_NAMED = re.compile(
    r"(?P<name>(?:password|passwd|secret|token)[\"']?\s*[=:]\s*)"
    r"(?P<quote>\\?[\"']?)(?P<value>(?!\$\{|\*\*\*|null\b|none\b)[^\s\"',;&}\]\\]{4,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE)


def find_secrets(jobs: Iterable[JobFolder], *texts: str) -> frozenset[str]:
    """Return the values of secrets that jobs refer to.

    Args:
        texts: More texts with references, such as a server's `--on`.
    """
    secrets = (secret for text in (*texts, *_job_texts(jobs)) for secret in _referred(text))
    return frozenset(secret for secret in secrets if len(secret) >= _SHORTEST)


def hide_secrets(text: str, known: Collection[str], *, guess: bool = True) -> str:
    """Return a text without the known secrets.

    Args:
        guess: Also remove what looks like a secret; not for a user's own records.
    """
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    if not guess:
        return text
    text = _LOGIN.sub(MASK, text)
    text = _BEARER.sub(rf"\g<1>{MASK}", text)
    return _NAMED.sub(rf"\g<name>\g<quote>{MASK}", text)


def _job_texts(jobs: Iterable[JobFolder]) -> Iterator[str]:
    for home in jobs:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            yield (home.path / "job.json").read_text(encoding="utf-8")
        with contextlib.suppress(OSError, UnicodeDecodeError, HeadgateError):
            lineage = home.find_present_run()
            if lineage is not None:
                yield (home.run_folder(lineage) / "run.json").read_text(encoding="utf-8")


def _referred(text: str) -> Iterator[str]:
    for reference in set(_REFERENCE.findall(text)):
        with contextlib.suppress(HeadgateError):
            yield resolve("a secret", reference)
    files = {unquote_plus(file) for file in _CONFIG.findall(text)} | set(_configs(text))
    for file in files:
        yield from _properties(Path(file))


def _configs(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except ValueError:
        return
    stack: list[Any] = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if isinstance(part.get("config"), str):
                yield part["config"]
            stack += part.values()
        elif isinstance(part, list):
            stack += part


def _properties(file: Path) -> Iterator[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        match = _PROPERTY.fullmatch(line)
        if match is None or line.lstrip().startswith(("#", "!")) or not is_secret(match[1]):
            continue
        if _REFERENCE.search(match[2]):
            with contextlib.suppress(HeadgateError):
                yield resolve(match[1], match[2])
        else:
            yield match[2]
            # The line of a login module has its secrets in quotes.
            yield from re.findall(r"[\"']([^\"']+)[\"']", match[2])
