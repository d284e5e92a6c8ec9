"""Names on Pulsar: a topic's whole name, its partitions', and where the admin API has it."""

from __future__ import annotations

import re
from urllib.parse import quote

from headgate.errors import HeadgateError

DEFAULT_NAMESPACE = "public/default"
PERSISTENT = "persistent://"

_NAMESPACE = re.compile(r"[A-Za-z0-9_=:.-]+/[A-Za-z0-9_=:.-]+")
_DOTS = re.compile(r"(?:^|/)\.+(?:/|$)")


def check_namespace(text: str) -> str:
    """Return `tenant/namespace` as it is written.

    Raises:
        HeadgateError: BAD_NAMESPACE.
    """
    # A part of dots alone would lead elsewhere in the paths of the admin API.
    if not isinstance(text, str) or not _NAMESPACE.fullmatch(text) or _DOTS.search(text):
        raise _bad_namespace(text)
    return text


def full_name(namespace: str, name: str) -> str:
    """Return the whole name of a topic."""
    return f"{PERSISTENT}{namespace}/{name}"


def partition_name(full: str, partition: int) -> str:
    """Return the whole name of the plain topic that is one partition of another."""
    return f"{full}-partition-{partition}"


def topic_path(full: str) -> str:
    """Return where the admin API has a topic: `persistent/tenant/namespace/topic`."""
    return "persistent/" + quote(full.removeprefix(PERSISTENT), safe="/")


def _bad_namespace(found: object) -> HeadgateError:
    return HeadgateError(
        "BAD_NAMESPACE",
        f"cannot use {found!r} as a namespace of Pulsar: one is written tenant/namespace",
        hint=f"use {DEFAULT_NAMESPACE}, or leave it out",
    )
