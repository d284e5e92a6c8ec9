"""The progress of a run: a bar in a notebook or a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from headgate._units import format_count, format_size
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.totals import Totals
from headgate.jobs.values import JobSnapshot, Watcher

_SHOW_EVERY_S = 0.25
# Where nothing can be overwritten, a line from time to time shows that the job is alive.
_LINE_EVERY_S = 10.0

Show = Callable[[JobSnapshot, float | None], None]


class Share:
    """How much of what is to be read has been read, from 0 to 1.

    Logs that count records have it from the first batch on; of logs that count bytes the largest
    backlog is the whole.
    """

    def __init__(self) -> None:
        self._most_bytes = 0

    def of(self, snapshot: JobSnapshot) -> float | None:
        """Return the share of the slowest kind of source; None before the first batch."""
        totals = snapshot.totals
        if snapshot.state is JobState.FINISHED:
            return 1.0
        if totals.batch is None:
            return None
        shares = [*self._of_records(totals), *self._of_bytes(totals)]
        return min(shares, default=None)

    def _of_records(self, totals: Totals) -> Iterator[float]:
        if totals.lag_records:
            done = sum(totals.inputs.get(name, 0) for name in totals.lag_records)
            whole = done + sum(totals.lag_records.values())
            yield done / whole if whole else 1.0

    def _of_bytes(self, totals: Totals) -> Iterator[float]:
        if totals.lag_bytes:
            left = sum(totals.lag_bytes.values())
            self._most_bytes = max(self._most_bytes, left)
            yield 1 - left / self._most_bytes if self._most_bytes else 1.0


@contextmanager
def show_progress(job: str, *, wanted: bool) -> Iterator[Watcher]:
    """Yield a watcher that shows how far a job is, if wanted."""
    if not wanted:
        yield Watcher()
    elif (display := _find_display()) is not None:
        yield _Paced(_notebook(job, display), _SHOW_EVERY_S).watcher(_print_line)
    elif sys.stderr.isatty():
        with _terminal(job) as (show, note):
            yield _Paced(show, _SHOW_EVERY_S).watcher(note)
    else:
        yield _Paced(_lines(job), _LINE_EVERY_S).watcher(_print_line)


class _Paced:
    """Shows snapshots from time to time, and each change of state."""

    def __init__(self, show: Show, every_s: float) -> None:
        self._show = show
        self._every_s = every_s
        self._share = Share()
        self._state: JobState | None = None
        self._shown_at = 0.0

    def watcher(self, note: Callable[[str], None]) -> Watcher:
        return Watcher(on_snapshot=self._take, on_notice=note)

    def _take(self, snapshot: JobSnapshot) -> None:
        share, now = self._share.of(snapshot), time.monotonic()
        if snapshot.state is not self._state or now - self._shown_at >= self._every_s:
            self._state, self._shown_at = snapshot.state, now
            self._show(snapshot, share)


def describe(snapshot: JobSnapshot) -> str:
    """Return what a job has done, in a line."""
    totals = snapshot.totals
    facts = [snapshot.state.value]
    if snapshot.attempt > 1:
        facts.append(f"attempt {snapshot.attempt}")
    if snapshot.state in (JobState.RESTARTING, JobState.FAILED) and snapshot.reason:
        facts.append(snapshot.reason)
    if totals.batch is not None:
        facts.append(f"{format_count(sum(totals.inputs.values()))} records read")
        facts.append(f"{format_count(sum(totals.outputs.values()))} rows written")
        facts.append(f"{format_count(round(totals.rate))} records/s")
        if left := sum(totals.lag_records.values()):
            facts.append(f"{format_count(left)} records left")
        if left := sum(totals.lag_bytes.values()):
            facts.append(f"{format_size(left)} left")
    facts.append(f"{snapshot.elapsed.total_seconds():.0f} s")
    return " · ".join(facts)


def _find_display() -> Any:
    """Return the function that shows HTML in a notebook, or None elsewhere."""
    shells = sys.modules.get("IPython")
    shell = None if shells is None else shells.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


def _notebook(job: str, display: Any) -> Show:
    from IPython.display import HTML

    # IPython does not declare its types.
    make_html: Callable[[str], Any] = HTML
    handle: Any = None

    def show(snapshot: JobSnapshot, share: float | None) -> None:
        nonlocal handle
        value = "" if share is None else f' value="{share:.3f}"'
        html = make_html(
            f'<div><b>{escape(job)}</b> <progress max="1"{value}></progress> '
            f"{escape(describe(snapshot))}</div>"
        )
        if handle is None:
            handle = display(html, display_id=True)
        else:
            handle.update(html)

    return show


@contextmanager
def _terminal(job: str) -> Iterator[tuple[Show, Callable[[str], None]]]:
    from rich.console import Console
    from rich.markup import escape as plain
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[done]}"),
    )
    with Progress(*columns, console=console) as bars:
        bar = bars.add_task(plain(job), total=None, done="")

        def show(snapshot: JobSnapshot, share: float | None) -> None:
            total = None if share is None else 1.0
            bars.update(bar, total=total, completed=share or 0.0, done=plain(describe(snapshot)))

        yield show, lambda line: console.print(plain(line))


def _lines(job: str) -> Show:
    def show(snapshot: JobSnapshot, share: float | None) -> None:
        part = "" if share is None else f" {share:.0%}"
        _print_line(f"{job}{part} {describe(snapshot)}")

    return show


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
