"""The command that shows the processes of a job."""

from __future__ import annotations

from collections.abc import Iterable

from headgate._units import format_count, format_size
from headgate.cli.parts.output import (
    Right,
    format_time,
    or_dash,
    print_section,
    print_table,
    say,
    visible,
)
from headgate.cli.parts.place import Job, Place
from headgate.engine.attempt.vitals import MemoryPool, Vitals
from headgate.jobs.views.processes import ExecutorView, Processes


def processes(job: Job, *, place: Place) -> None:
    """Show the driver and the executors of a running job: tasks, memory, and where logs are.

    With a local master the driver runs the tasks, and is the only executor. Executors that were
    lost stay listed until the next attempt.

    [bold]Examples[/bold]

      headgate processes order-enrichment
      headgate processes order-enrichment --json
    """
    place.show(place.home.processes(job), _print)


def _print(found: Processes) -> None:
    if found.vitals is None and not found.executors:
        say(f"Job '{found.job}' is not running, or has not reported its processes yet")
        return
    columns = ["process", "on", "state", Right("slots used"), Right("completed"), Right("failed")]
    columns += [Right("heap"), Right("resident"), Right("gc"), Right("shuffle"), "log"]
    rows = [] if found.is_local else [_driver(found)]
    print_table(columns, [*rows, *(_row(view, found.vitals) for view in found.executors)])
    lost = [view for view in found.executors if not view.executor.is_alive]
    if lost:
        print_section(["lost executor", "at (UTC)", "reason"], [_loss(view) for view in lost])


def _driver(found: Processes) -> list[str]:
    return ["driver", "-", "alive", "-", "-", "-", *_memory(found.vitals), "-", "headgate logs"]


def _row(view: ExecutorView, driver: Vitals | None) -> list[str]:
    executor = view.executor
    shuffle = f"{format_size(executor.shuffle_read)} / {format_size(executor.shuffle_written)}"
    return [
        executor.id,
        visible(executor.host),
        "alive" if executor.is_alive else "lost",
        f"{executor.running} of {executor.slots}",
        format_count(executor.completed),
        format_count(executor.failed),
        *_memory(executor.vitals if view.log_place else driver),
        shuffle,
        visible(view.log_place) or "headgate logs",
    ]


def _memory(vitals: Vitals | None) -> Iterable[str]:
    if vitals is None:
        return "-", "-", "-"
    heap = vitals.pools.get("heap", MemoryPool(0))
    limit = "" if heap.limit is None else f" of {format_size(heap.limit)}"
    resident = format_size(vitals.resident + sum(vitals.workers))
    return f"{format_size(heap.used)}{limit}", resident, f"{vitals.gc_seconds:,.1f} s"


def _loss(view: ExecutorView) -> list[str]:
    executor = view.executor
    return [executor.id, or_dash(executor.lost_at, format_time), visible(executor.lost_reason)]
