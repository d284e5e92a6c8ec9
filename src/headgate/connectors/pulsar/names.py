"""Names on Pulsar: a topic's full name, its partitions, and its path in the admin API."""

from __future__ import annotations

import re
from urllib.parse import quote

from headgate.errors import HeadgateError

DEFAULT_NAMESPACE = "public/default"
PERSISTENT = "persistent://"

_NAMESPACE = re.compile(r"[A-Za-z0-9_=:.-]+/[A-Za-z0-9_=:.-]+")
_DOTS = re.compile(r"(?:^|/)\.+(?:/|$)")


def check_namespace(text: str) -> str:
    """Return `tenant/namespace` unchanged if it is valid.

    Raises:
        HeadgateError: BAD_NAMESPACE.
    """
    # A part of dots only would change the path in the admin API.
    if not isinstance(text, str) or not _NAMESPACE.fullmatch(text) or _DOTS.search(text):
        raise _bad_namespace(text)
    return text


def full_name(namespace: str, name: str) -> str:
    """Return the full name of a topic."""
    return f"{PERSISTENT}{namespace}/{name}"


def partition_name(full: str, partition: int) -> str:
    """Return the full name of a partition of a topic."""
    return f"{full}-partition-{partition}"


def topic_path(full: str) -> str:
    """Return the path of a topic in the admin API: `persistent/tenant/namespace/topic`."""
    return "persistent/" + quote(full.removeprefix(PERSISTENT), safe="/")


def _bad_namespace(text: object) -> HeadgateError:
    return HeadgateError(
        "BAD_NAMESPACE",
        f"cannot use {text!r} as a namespace of Pulsar: it must have the form tenant/namespace",
        hint=f"use {DEFAULT_NAMESPACE}, or omit it",
    )
