"""Names and entries on Pulsar: full names of topics, their paths in the admin API, positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from headgate.errors import HeadgateError

DEFAULT_NAMESPACE = "public/default"
PERSISTENT = "persistent://"

_NAMESPACE = re.compile(r"[A-Za-z0-9_=:.-]+/[A-Za-z0-9_=:.-]+")
_DOTS = re.compile(r"(?:^|/)\.+(?:/|$)")
_ENTRY = re.compile(r"(-1|[0-9]{1,19}):([0-9]{1,19})")
# Ledger and entry are signed 64-bit integers.
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True, order=True)
class EntryId:
    """An entry of a partition, which holds one message or a batch. Later entries are greater.

    Attributes:
        ledger: -1 in a partition without known entries.
        entry: Counts from 0 in each ledger.
    """

    ledger: int
    entry: int

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


BEGINNING = EntryId(-1, 0)


def find_entry_id(text: object) -> EntryId | None:
    """Return the entry that `ledger:entry` names, or None for another text."""
    match = _ENTRY.fullmatch(text) if isinstance(text, str) else None
    if match is None or max(int(match[1]), int(match[2])) >= _LIMIT:
        return None
    return EntryId(int(match[1]), int(match[2]))


def check_namespace(text: str) -> str:
    """Return `tenant/namespace` unchanged if it is valid.

    Raises:
        HeadgateError: BAD_NAMESPACE.
    """
    # A part of dots only would change the path in the admin API.
    if isinstance(text, str) and _NAMESPACE.fullmatch(text) and not _DOTS.search(text):
        return text
    raise HeadgateError(
        "BAD_NAMESPACE",
        f"cannot use {text!r} as a namespace of Pulsar: it must have the form tenant/namespace",
        hint=f"use {DEFAULT_NAMESPACE}, or omit it",
    )


def full_name(namespace: str, name: str) -> str:
    """Return the full name of a topic."""
    return f"{PERSISTENT}{namespace}/{name}"


def partition_name(full: str, partition: int) -> str:
    """Return the full name of a partition of a topic."""
    return f"{full}-partition-{partition}"


def topic_path(full: str) -> str:
    """Return the path of a topic in the admin API: `persistent/tenant/namespace/topic`."""
    return "persistent/" + quote(full.removeprefix(PERSISTENT), safe="/")
