"""Spark's master: whether its address is valid, and whether it answers."""

from __future__ import annotations

import re
import socket
from datetime import timedelta

from headgate.errors import Domain, HeadgateError

_STANDALONE = "spark://"
_OTHERS = re.compile(r"local(\[.+\])?$|local-cluster\[.+\]$|yarn$|k8s://.+")
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]/]+)):(?P<port>\d{1,5})$")
_ANSWER_WITHIN = timedelta(seconds=3)


def check_master(master: str, *, timeout: timedelta = _ANSWER_WITHIN) -> None:
    """Refuse a standalone master that does not answer: Spark itself tries for minutes.

    Args:
        master: As Spark takes it; several standalone masters are separated by commas, and one that
            answers is enough. Other kinds of masters are left to Spark.
        timeout: How long each of them may take.

    Raises:
        HeadgateError: CLUSTER_UNREACHABLE, or BAD_SETTING for a master of no known form.
    """
    if not master.startswith(_STANDALONE):
        if not _OTHERS.match(master):
            raise _bad_master(master)
        return
    silent = []
    for text in master.removeprefix(_STANDALONE).split(","):
        address = _ADDRESS.match(text)
        if address is None:
            raise _bad_master(master)
        host = address["ipv6"] or address["host"]
        try:
            socket.create_connection((host, int(address["port"])), timeout.total_seconds()).close()
        except (OSError, OverflowError) as error:
            silent.append(f"{text} ({getattr(error, 'strerror', None) or error})")
        else:
            return
    raise HeadgateError(
        "CLUSTER_UNREACHABLE",
        f"cannot start Spark on {master}: no master answers at {', '.join(silent)}",
        hint="start the master, or fix master = in the profile of headgate.toml",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def _bad_master(master: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SETTING",
        f"master must be local[N], spark://HOST:PORT, yarn or k8s://URL, got {master!r}",
        hint='master = "spark://HOST:7077" in the profile of headgate.toml',
    )
