"""The processes of a job as words and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate._units import format_count, format_size
from headgate.engine.attempt.vitals import MemoryPool, Vitals
from headgate.jobs.host.doctor import Finding, Status
from headgate.jobs.host.job_doctor import EXECUTOR
from headgate.jobs.views.processes import ExecutorView, Processes

_WEB = ("http://", "https://")
_ANY_EXECUTOR = EXECUTOR.partition("{")[0]


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool of memory on the page.

    Attributes:
        share: Of its limit; None without one.
        advice: What to do; empty unless it is near its limit.
    """

    name: str
    found: str
    share: float | None
    is_near: bool
    advice: str


@dataclass(frozen=True, slots=True)
class ExecutorRow:
    """An executor on the page.

    Attributes:
        is_near: Whether one of its pools is near its limit.
        heap: What its heap has, and of how much.
        share: Of the heap's limit; None if unknown.
        pools: Its other pools and processes, as pairs of names and values.
        measured: How old these figures are; empty without any.
        link: The address of its logs, if the cluster gives one for browsers.
    """

    id: str
    host: str
    since: datetime
    is_near: bool
    lost_at: datetime | None
    reason: str
    slots: int
    running: int
    completed: int
    failed: int
    heap: str
    share: float | None
    resident: str
    pools: tuple[tuple[str, str], ...]
    garbage: str
    shuffle_read: str
    shuffle_written: str
    measured: str
    has_log: bool
    log_place: str
    link: str


def tell_driver(found: Processes, vitals: Vitals, now: datetime) -> list[tuple[str, str]]:
    """Return the facts of a driver as pairs of names and values."""
    rows = [
        ("Process", str(found.driver or "unknown")),
        ("Attempt", str(found.attempt)),
        ("Resident memory", format_size(vitals.resident)),
        ("Processor time", f"{vitals.cpu_seconds:,.0f} s"),
        ("Garbage collection", f"{vitals.gc_seconds:,.1f} s in {format_count(vitals.gc_count)}"),
        ("Threads", format_count(vitals.threads)),
        ("Python workers", format_count(len(vitals.workers))),
    ]
    rows += [("Runs tasks", "itself" if found.is_local else "on executors")]
    return [*rows, ("Measured", _age(vitals, now))]


def _age(vitals: Vitals, now: datetime) -> str:
    return f"{max(0, round((now - vitals.at).total_seconds()))} s ago"


def tell_executors(
    found: Processes, findings: Sequence[Finding], now: datetime
) -> list[ExecutorRow]:
    """Return a row for each executor: those that are there first, then the last lost ones."""
    near = [finding.name for finding in findings if finding.status is Status.WARN]
    alive = [view for view in found.executors if view.executor.is_alive]
    lost = [view for view in found.executors if not view.executor.is_alive]
    return [_tell_executor(view, found, near, now) for view in (*alive, *reversed(lost))]


def _tell_executor(
    view: ExecutorView, found: Processes, near: Sequence[str], now: datetime
) -> ExecutorRow:
    executor = view.executor
    vitals = found.vitals if found.is_local else executor.vitals
    heap = None if vitals is None else vitals.pools.get("heap")
    links = [link for link in executor.log_links.values() if link.startswith(_WEB)]
    return ExecutorRow(
        id=executor.id,
        host=executor.host,
        since=executor.since,
        is_near=executor.is_alive
        and any(name.startswith(EXECUTOR.format(executor.id)) for name in near),
        lost_at=executor.lost_at,
        reason=executor.lost_reason,
        slots=executor.slots,
        running=executor.running,
        completed=executor.completed,
        failed=executor.failed,
        heap="" if heap is None else _of_limit(heap),
        share=heap.used / heap.limit if heap is not None and heap.limit else None,
        resident="" if vitals is None else format_size(vitals.resident + sum(vitals.workers)),
        pools=() if vitals is None or found.is_local else tuple(_parts(vitals)),
        garbage="" if vitals is None else f"{vitals.gc_seconds:,.1f} s",
        shuffle_read=format_size(executor.shuffle_read),
        shuffle_written=format_size(executor.shuffle_written),
        measured="" if vitals is None else _age(vitals, now),
        has_log=view.has_log,
        log_place=view.log_place,
        link=links[-1] if links else "",
    )


def _parts(vitals: Vitals) -> Iterator[tuple[str, str]]:
    """Yield the pools of an executor but for its heap, and its processes."""
    for name, pool in vitals.pools.items():
        if name != "heap":
            yield name, _of_limit(pool)
    yield "JVM, resident", format_size(vitals.resident)
    for number, size in enumerate(vitals.workers, start=1):
        yield f"Python worker {number}", format_size(size)


def _of_limit(pool: MemoryPool) -> str:
    used = format_size(pool.used)
    return used if pool.limit is None else f"{used} of {format_size(pool.limit)}"


def tell_pools(vitals: Vitals, findings: Sequence[Finding]) -> list[PoolRow]:
    """Return a row for each pool of the driver that was judged, in their order."""
    shares = {name: pool.used / pool.limit for name, pool in vitals.pools.items() if pool.limit}
    return [
        PoolRow(
            finding.name,
            finding.found,
            shares.get(finding.name),
            finding.status is Status.WARN,
            finding.advice,
        )
        for finding in findings
        if not finding.name.startswith(_ANY_EXECUTOR)
    ]
