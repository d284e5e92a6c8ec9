"""The processes of a job as words and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate._units import format_count, format_size
from headgate.engine.attempt.vitals import Vitals
from headgate.jobs.host.doctor import Finding, Status
from headgate.jobs.views.job import JobView


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


def tell_driver(view: JobView, vitals: Vitals, now: datetime) -> list[tuple[str, str]]:
    """Return the facts of a driver as pairs of names and values."""
    age = max(0, round((now - vitals.at).total_seconds()))
    rows = [
        ("Process", str(view.status.get("child") or "unknown")),
        ("Attempt", str(view.attempt)),
        ("Resident memory", format_size(vitals.resident)),
        ("Processor time", f"{vitals.cpu_seconds:,.0f} s"),
        ("Garbage collection", f"{vitals.gc_seconds:,.1f} s in {format_count(vitals.gc_count)}"),
        ("Threads", format_count(vitals.threads)),
        ("Python workers", format_count(len(vitals.workers))),
    ]
    if vitals.executors:
        rows.append(("Executors", format_count(vitals.executors)))
    return [*rows, ("Measured", f"{age} s ago")]


def tell_pools(vitals: Vitals, findings: Sequence[Finding]) -> list[PoolRow]:
    """Return a row for each pool that was judged, in their order."""
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
    ]
