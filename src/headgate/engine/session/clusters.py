"""Spark on a cluster: what its settings must be, and what Spark is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate.engine.session.masters import is_local, is_standalone
from headgate.engine.settings import MIB, SparkSettings
from headgate.errors import HeadgateError

# What Spark adds to an executor's heap by default; state comes on top.
_OVERHEAD_SHARE = 10
_LEAST_OVERHEAD = 384 * MIB
# How many reports of an executor must be missing before it counts as lost.
_REPORTS = 8


def check_cluster_settings(master: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings that a master does not have, or that contradict each other.

    Args:
        settings: The values of settings of a cluster by their names; None if not set.

    Raises:
        HeadgateError: BAD_SETTING.
    """
    chosen = [name for name, value in settings.items() if value is not None]
    if is_local(master) and chosen:
        raise HeadgateError(
            "BAD_SETTING",
            f"cannot use {' and '.join(chosen)} with master {master!r}: it has no executors",
            hint="name a cluster: --master spark://HOST:7077",
        )
    if {"python", "py-env"} <= set(chosen):
        raise HeadgateError(
            "BAD_SETTING",
            "cannot use both python and py-env: an archive has a Python of its own",
            hint="remove one of them",
        )
    env = settings.get("py-env")
    if env is not None and not Path(env).is_file():
        raise HeadgateError(
            "BAD_SETTING",
            f"cannot use py-env {str(env)!r}: there is no such file",
            hint="venv-pack -o env.tar.gz",
        )


def cluster_conf(settings: SparkSettings, jars: Sequence[Path]) -> dict[str, str]:
    """Return Spark's settings for a cluster.

    Args:
        settings: With the driver's address, unless that is left to Spark.
        jars: The kernel's jars, which the driver serves to its executors.
    """
    return {
        **_addresses(settings),
        **_sizes(settings),
        **_timeouts(settings.executor_timeout),
        "spark.jars": ",".join(jar.absolute().as_uri() for jar in jars),
        # A lost executor costs its tasks another try. Local masters never try again.
        "spark.task.maxFailures": "4",
        # State is on the disk of the executor that had it last, and a short wait costs less than to
        # load it elsewhere. An idle executor takes over what waits for longer.
        "spark.locality.wait.process": "1s",
        # So the first batch spreads state over all executors; a start without some goes on.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "10s",
    }


def _timeouts(lost_after: timedelta) -> dict[str, str]:
    """Return the settings by which an executor counts as lost whose host vanished.

    As far as the others can tell, its connections stay open. By default Spark waits two minutes,
    looks once a minute, and tries four times, for two minutes each, to fetch what it had shuffled.
    """
    ms = lost_after // timedelta(milliseconds=1)
    return {
        "spark.executor.heartbeatInterval": f"{ms // _REPORTS}ms",
        # Not spark.network.timeout, which bounds other requests, too: a busy driver may be slow.
        "spark.storage.blockManagerHeartbeatTimeoutMs": f"{ms}ms",
        "spark.network.timeoutInterval": f"{ms // _REPORTS}ms",
        # A fetch gives up in about the same time: an answer, and twice a new connection.
        "spark.shuffle.io.connectionTimeout": f"{ms * 3 // 4}ms",
        "spark.shuffle.io.connectionCreationTimeout": f"{ms // _REPORTS}ms",
        "spark.shuffle.io.maxRetries": "2",
        "spark.shuffle.io.retryWait": "2s",
    }


def _addresses(settings: SparkSettings) -> dict[str, str]:
    host = settings.driver_host
    bind = settings.driver_bind or host
    return {
        name: value
        for name, value in (("spark.driver.host", host), ("spark.driver.bindAddress", bind))
        if value is not None
    }


def _sizes(settings: SparkSettings) -> dict[str, str]:
    memory, state = settings.executor_memory, settings.state_memory
    sizes = {"spark.executor.memory": f"{memory // MIB}m"}
    cores = settings.executor_cores or (1 if settings.executors else None)
    if cores is not None:
        sizes["spark.executor.cores"] = str(cores)
    if is_standalone(settings.master):
        if settings.executors is not None and cores is not None:
            # A standalone cluster gives executors until the application has so many cores.
            sizes["spark.cores.max"] = str(settings.executors * cores)
        return sizes
    overhead = settings.executor_overhead
    if overhead is None:
        overhead = max(memory // _OVERHEAD_SHARE, _LEAST_OVERHEAD) + state
    sizes["spark.executor.memoryOverhead"] = f"{overhead // MIB}m"
    if settings.executors is not None:
        sizes["spark.executor.instances"] = str(settings.executors)
    return sizes
