"""Spark's master: whether its address is valid, whether it answers, and who it can reach here."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from headgate.errors import Domain, HeadgateError

_STANDALONE = "spark://"
_KUBERNETES = "k8s://"
_YARN = "yarn"
_LOCAL = re.compile(r"local(\[.+\])?$")
# Executors in processes of their own on this machine; Spark's own tests use it.
_LOCAL_CLUSTER = re.compile(r"local-cluster\[.+\]$")
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]/]+)):(?P<port>\d{1,5})$")
_PORTS = {"https": 443, "http": 80}
_ANSWER_WITHIN = timedelta(seconds=3)
# Where Spark finds the addresses of YARN.
_YARN_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


@dataclass(frozen=True, slots=True)
class _Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def is_local(master: str) -> bool:
    """Return True if the driver runs the tasks itself."""
    return _LOCAL.match(master) is not None


def is_standalone(master: str) -> bool:
    """Return True for a cluster of Spark's own masters and workers."""
    return master.startswith(_STANDALONE)


def check_master(master: str, *, timeout: timedelta = _ANSWER_WITHIN) -> None:
    """Refuse a master that does not answer: Spark itself tries for minutes.

    Args:
        master: As Spark takes it; several standalone masters are separated by commas, and one that
            answers is enough. YARN's addresses are left to Spark.
        timeout: How long each of them may take.

    Raises:
        HeadgateError: CLUSTER_UNREACHABLE, or BAD_SETTING for a master of no known form, and for
            YARN without its configuration.
    """
    if is_local(master) or _LOCAL_CLUSTER.match(master):
        return
    if master == _YARN:
        _check_yarn()
        return
    silent = []
    for address in _parse_addresses(master):
        try:
            socket.create_connection((address.host, address.port), timeout.total_seconds()).close()
        except (OSError, OverflowError) as error:
            silent.append(f"{address} ({getattr(error, 'strerror', None) or error})")
        else:
            return
    raise HeadgateError(
        "CLUSTER_UNREACHABLE",
        f"cannot start Spark on {master}: no master answers at {', '.join(silent)}",
        hint="start the master, or fix the address: --master spark://HOST:7077",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def find_own_address(master: str) -> str | None:
    """Return the address of this machine on its way to the master; None to leave it to Spark."""
    if is_local(master) or _LOCAL_CLUSTER.match(master):
        return "127.0.0.1"
    if master == _YARN:
        return None
    for address in _parse_addresses(master):
        with suppress(OSError, OverflowError):
            return _own_address(address)
    return None


def _own_address(address: _Address) -> str:
    family, _, _, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)[
        0
    ]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        # It only chooses the way: nothing is sent.
        probe.connect(place)
        found = str(probe.getsockname()[0])
    return f"[{found}]" if ":" in found else found


def _parse_addresses(master: str) -> Sequence[_Address]:
    """Return the addresses of a standalone cluster's masters, or of Kubernetes' API."""
    if master.startswith(_KUBERNETES):
        return [_parse_url(master)]
    if not is_standalone(master):
        raise _bad_master(master)
    found = [_ADDRESS.match(text) for text in master.removeprefix(_STANDALONE).split(",")]
    if any(match is None for match in found):
        raise _bad_master(master)
    return [
        _Address(match["ipv6"] or match["host"], int(match["port"]))
        for match in found
        if match is not None
    ]


def _parse_url(master: str) -> _Address:
    url = master.removeprefix(_KUBERNETES)
    # As Spark does.
    parts = urlsplit(url if "://" in url else f"https://{url}")
    try:
        port = parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        raise _bad_master(master) from error
    if not parts.hostname:
        raise _bad_master(master)
    return _Address(parts.hostname, port)


def _check_yarn() -> None:
    if not any(os.environ.get(name) for name in _YARN_FOLDERS):
        raise HeadgateError(
            "BAD_SETTING",
            "cannot start Spark on yarn: neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set, and the "
            "files there have YARN's addresses",
            hint="export HADOOP_CONF_DIR=/etc/hadoop/conf",
        )


def _bad_master(master: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SETTING",
        f"master must be local[N], spark://HOST:PORT, yarn or k8s://URL, got {master!r}",
        hint="--master spark://HOST:7077",
    )
