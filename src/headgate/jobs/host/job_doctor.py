"""The doctor of a running job: which memory of its processes is near a limit, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from headgate._units import format_size
from headgate.engine.attempt.executors import Executors
from headgate.engine.attempt.vitals import MemoryPool, Vitals
from headgate.engine.settings import MIB
from headgate.errors import HeadgateError
from headgate.jobs.host.doctor import Finding, Status
from headgate.jobs.host.facts import read_memory
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.metrics.executor_file import find_executors
from headgate.jobs.metrics.vitals_file import find_vitals
from headgate.jobs.registry import get_job

# The share of a limit from which a pool is near it. A heap needs room for what is not live.
_NEAR = 0.9
_NEAR_LIVE = 0.75
_SETTINGS = {
    "state": "state-memory",
    "worker": "worker-memory",
    "metaspace": "metaspace",
    "compiled-code": "code-cache",
    "direct": "direct-memory",
}
# How the names of an executor's findings begin.
EXECUTOR = "executor {}: "
_DRIVER_HEAP = "driver-memory"
_EXECUTOR_HEAP = "executor-memory"


def diagnose_job(home: Path, name: str) -> list[Finding]:
    """Return what was found about the memory of a running job.

    Raises:
        HeadgateError: JOB_NOT_FOUND, or JOB_NOT_RUNNING if no driver has reported its memory.
    """
    job = get_job(home, name, verb="check")
    vitals = find_vitals(job)
    if vitals is None or not has_supervisor(job):
        raise HeadgateError(
            "JOB_NOT_RUNNING",
            f"cannot check the memory of job {name!r}: no driver of it is running",
            hint=f"headgate start {name}",
        )
    executors = find_executors(job)
    return [
        *judge_vitals(vitals, container=read_memory()[0]),
        *(() if executors is None else judge_executors(executors)),
    ]


def judge_vitals(vitals: Vitals, *, container: int | None) -> Iterator[Finding]:
    """Yield a finding for each pool.

    Args:
        container: The memory of the machine, or of its container if that has less; None if unknown.
    """
    yield from _judge_pools(vitals, heap=_DRIVER_HEAP)
    processes = vitals.resident + sum(vitals.workers)
    if processes and container is not None:
        yield _judge_container(processes, container)


def judge_executors(executors: Executors) -> Iterator[Finding]:
    """Yield a finding for each pool of each executor that is there and has reported."""
    for executor in executors.alive:
        if executor.vitals is not None:
            owner = EXECUTOR.format(executor.id)
            yield from _judge_pools(executor.vitals, heap=_EXECUTOR_HEAP, owner=owner)


def _judge_pools(vitals: Vitals, *, heap: str, owner: str = "") -> Iterator[Finding]:
    """Yield a finding for each pool of one JVM and its Python workers.

    Args:
        heap: The setting of the heap's limit.
        owner: What each name begins with.
    """
    settings = {"heap": heap, **_SETTINGS}
    for name, pool in vitals.pools.items():
        yield _judge_pool(name, pool, settings, shown=f"{owner}{name}")
    for number, size in enumerate(vitals.workers, start=1):
        worker = MemoryPool(size, vitals.worker_limit or None)
        yield _judge_pool("worker", worker, settings, shown=f"{owner}python worker {number}")


def _judge_pool(name: str, pool: MemoryPool, settings: Mapping[str, str], *, shown: str) -> Finding:
    found = format_size(pool.used)
    if pool.limit is None:
        return Finding(shown, Status.OK, f"{found}, without a limit")
    found += f" of {format_size(pool.limit)}"
    used, near = pool.used, _NEAR
    if pool.live is not None:
        found += f"; {format_size(pool.live)} after the last full collection"
        used, near = pool.live, _NEAR_LIVE
    elif name == "heap":
        # Garbage fills a heap until it is collected: nothing is known before the first one.
        return Finding(shown, Status.OK, found)
    if used < near * pool.limit or name not in settings:
        return Finding(shown, Status.OK, found)
    return Finding(shown, Status.WARN, found, _advice(name, settings[name], pool.limit))


def _judge_container(processes: int, container: int) -> Finding:
    found = f"{format_size(processes)} of {format_size(container)} in all processes of the driver"
    if processes < _NEAR * container:
        return Finding("container", Status.OK, found)
    return Finding(
        "container",
        Status.WARN,
        found,
        "give the container more memory, lower driver-memory or state-memory, or run the job with "
        "--profile small: beyond its limit the driver is killed",
    )


def _advice(name: str, setting: str, limit: int) -> str:
    more = f"{limit * 3 // 2 // MIB}MiB"
    if name == "heap":
        return f"headgate run FLOW --{setting} {more}"
    return f"set {setting} = {more!r} in a profile of headgate.toml, and restart the job"
