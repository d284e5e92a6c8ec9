"""A running job on the terminal: a few live lines, or plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headgate._units import format_count, format_size
from headgate.cli.parts.output import format_time, print_json, print_json_note, stderr, visible
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.totals import Totals
from headgate.jobs.values import JobSnapshot, Watcher

# In a pipe a line from time to time shows that the job is alive; state changes come at once.
_PLAIN_EVERY = 10.0
_JSON_EVERY = 1.0

_STYLES = {
    JobState.STARTING: "yellow",
    JobState.RUNNING: "green",
    JobState.STOPPING: "yellow",
    JobState.STOPPED: "cyan",
    JobState.FINISHED: "cyan",
    JobState.FAILED: "red",
    JobState.RESTARTING: "yellow",
    JobState.PAUSED: "magenta",
    JobState.CANCELING: "yellow",
    JobState.CANCELED: "cyan",
    JobState.RESCALING: "yellow",
}

# Each may follow a failure; before the first one there is no reason.
_SAYS_WHY = (JobState.STARTING, JobState.RESTARTING, JobState.FAILED)


def state_style(state: str) -> str:
    """Return the colour of a state; states that need attention are red."""
    return {name.value: style for name, style in _STYLES.items()}.get(state, "red")


def status_line(snapshot: JobSnapshot) -> Text:
    """Return the job in a line: state, rate, lag and size of state."""
    totals = snapshot.totals
    facts = [snapshot.job]
    if snapshot.attempt > 1:
        facts.append(f"attempt {format_count(snapshot.attempt)}")
    if totals.batch is None:
        facts.append(f"{snapshot.elapsed.total_seconds():.0f}s")
    if snapshot.state in _SAYS_WHY and snapshot.reason:
        facts.append(visible(snapshot.reason))
    if snapshot.state is JobState.RUNNING and snapshot.loading:
        facts.append("loading tables")
    if totals.batch is not None:
        facts.append(f"batch {format_count(totals.batch)}")
        facts.append(f"{format_count(round(totals.rate))} records/s")
        facts.append(f"lag {_lag(totals)}")
        if totals.watermark is not None:
            held = totals.held_back_by
            by = f", held back by {visible(held)}" if held else ""
            facts.append(f"watermark {format_time(totals.watermark)}{by}")
        rows, size = sum(totals.state_rows.values()), sum(totals.state_bytes.values())
        facts.append(f"state {format_count(rows)} rows, {format_size(size)}")
    if snapshot.checkpoint is not None:
        facts.append(snapshot.checkpoint)
    return Text.assemble(
        (snapshot.state.value, f"bold {_STYLES[snapshot.state]}"), " ", " · ".join(facts)
    )


def lag_text(size: int | None, records: int | None, age: timedelta | None) -> str:
    """Return a lag as text: bytes, records and the age of the oldest record."""
    parts = []
    if records is not None:
        parts.append(f"{format_count(records)} records")
    if size is not None and (size or records is None):
        parts.append(format_size(size))
    if age is not None and (size or records):
        parts.append(f"{age.total_seconds():,.1f} s")
    return ", ".join(parts) or "-"


def source_lags(status: Mapping[str, Any]) -> dict[str, str]:
    """Return the lag of each source in a job's status."""
    sizes, records = status.get("lag_bytes") or {}, status.get("lag_records") or {}
    ages, estimated = status.get("lag_s") or {}, status.get("lag_estimated") or ()
    return {
        name: ("about " if name in estimated else "")
        + lag_text(
            sizes.get(name),
            records.get(name),
            timedelta(seconds=ages[name]) if name in ages else None,
        )
        for name in sorted({**sizes, **records})
    }


def _lag(totals: Totals) -> str:
    ages = totals.lag_s.values()
    return ("about " if totals.lag_estimated else "") + lag_text(
        sum(totals.lag_bytes.values()) if totals.lag_bytes else None,
        sum(totals.lag_records.values()) if totals.lag_records else None,
        timedelta(seconds=max(ages)) if ages else None,
    )


def count_lines(snapshot: JobSnapshot) -> list[Text]:
    """Return the counts of inputs and outputs since the job was started."""
    totals = snapshot.totals
    lines = [("in ", totals.inputs), ("out", totals.outputs)]
    return [Text(f"  {head}  {_counts(counts)}", style="dim") for head, counts in lines if counts]


def start_line(snapshot: JobSnapshot) -> str:
    """Return how the job started: empty, or from which checkpoint."""
    if snapshot.resumed_from is None:
        return f"Job '{snapshot.job}' starts empty, in run {snapshot.lineage}"
    return (
        f"Job '{snapshot.job}' resumes run {snapshot.lineage} "
        f"from checkpoint chk-{snapshot.resumed_from}"
    )


@contextmanager
def terminal_watcher(*, as_json: bool) -> Iterator[Watcher]:
    """Yield a watcher that shows a running job on standard error; JSON goes to standard output.

    Requested rows go to standard output, so that they can be piped.
    """
    console = stderr()
    if as_json:
        yield _JsonWatcher().watcher()
    elif console.is_terminal:
        lines = _LiveLines()
        with Live(
            console=console, get_renderable=lines.render, refresh_per_second=8, transient=True
        ) as live:
            # Both streams are one terminal.
            yield Watcher(
                on_snapshot=lines.take,
                on_row=lambda output, row: _print_row(live.console, output, row),
            )
    else:
        yield _PlainWatcher(console).watcher()


class _LiveLines:
    """The lines of the last snapshot; their clock advances between snapshots."""

    def __init__(self) -> None:
        self._snapshot: JobSnapshot | None = None
        self._taken = 0.0

    def take(self, snapshot: JobSnapshot) -> None:
        self._snapshot, self._taken = snapshot, time.monotonic()

    def render(self) -> Text:
        if self._snapshot is None:
            return Text()
        since = timedelta(seconds=time.monotonic() - self._taken)
        now = replace(self._snapshot, elapsed=self._snapshot.elapsed + since)
        return Text("\n").join([status_line(now), *count_lines(now)])


class _PlainWatcher:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._state: JobState | None = None
        self._told = 0.0

    def watcher(self) -> Watcher:
        return Watcher(
            on_snapshot=self._tell,
            on_row=_write_row,
            on_stderr_row=lambda output, row: _write_row(output, row, to=sys.stderr),
        )

    def _tell(self, snapshot: JobSnapshot) -> None:
        now = time.monotonic()
        if snapshot.state is self._state and now - self._told < _PLAIN_EVERY:
            return
        self._state, self._told = snapshot.state, now
        for line in (status_line(snapshot), *count_lines(snapshot)):
            self._console.print(line, soft_wrap=True)


class _JsonWatcher:
    def __init__(self) -> None:
        self._last: tuple[JobState, int | None] | None = None
        self._told = 0.0

    def watcher(self) -> Watcher:
        return Watcher(
            on_snapshot=self._tell,
            on_row=lambda output, row: print_json({"output": output, "row": row}),
            on_stderr_row=lambda output, row: print_json_note({"output": output, "row": row}),
        )

    def _tell(self, snapshot: JobSnapshot) -> None:
        now = time.monotonic()
        this = (snapshot.state, snapshot.totals.batch)
        state_changed = self._last is None or self._last[0] is not this[0]
        if this == self._last or (not state_changed and now - self._told < _JSON_EVERY):
            return
        self._last, self._told = this, now
        # The caller prints the last line of a job that ended; a failed job has no other.
        if not snapshot.state.is_final or snapshot.state is JobState.FAILED:
            print_json(snapshot)


def _print_row(console: Console, output: str, row: str) -> None:
    line = Text.assemble((f"{output} ", "bold"), visible(row)) if output else Text(visible(row))
    console.print(line, soft_wrap=True)


def _write_row(output: str, row: str, *, to: TextIO | None = None) -> None:
    print(f"{output} {row}" if output else row, flush=True, file=to)


def _counts(counts: Mapping[str, int]) -> str:
    return "  ".join(f"{name} {format_count(count)}" for name, count in sorted(counts.items()))
