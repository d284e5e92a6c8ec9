"""The history of a job's checkpoints on a page: a table in pages, and the same as a chart."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from markupsafe import Markup
from nicegui import ui

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.jobs.views.checkpoint_history import CheckpointEvent, CheckpointHistory
from headgate.jobs.views.past import Past
from headgate.server.actions import verbs
from headgate.server.console.charts.checkpoint_chart import POINTS, chart_options
from headgate.server.console.panels.questions import ask_and_do
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_count
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note, render
from headgate.server.console.texts.questions import ask_pin
from headgate.server.context import ServerContext, get_context
from headgate.server.signed_in import current_access

ROWS = 20
# How often the history is read although the kept checkpoints are the same: one may have failed.
_READ_EVERY_S = 10.0


class HistoryPanel:
    """The checkpoints of a job over time."""

    def __init__(
        self,
        job: str,
        restore: Callable[[str], Awaitable[None]],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """Build the panel.

        Args:
            restore: Called with what `restore --from` takes, to go back to one.
            changed: Called after one was pinned or unpinned.
        """
        self._job = job
        self._restore = restore
        self._changed = changed
        self._offset = 0
        self._charted: int | None = None
        self._may = current_access().may_operate
        self._past = Past((), ())
        self._page: CheckpointHistory | None = None
        self._read_at = 0.0
        self._total = 0
        with widgets.panel("History", note="kept, gone and failed, newest first"):
            self._chart = widgets.chart(chart_options(()), height="15rem")
            self._chart.props('role="img" aria-label="Size and duration of checkpoints over time"')
            self._table = Live().classes("hg-table-box").on_act(self._act)
            with ui.element("div").classes("hg-toolbar hg-gap"):
                self._newer = widgets.button("Newer", lambda: self._turn(-ROWS))
                self._older = widgets.button("Older", lambda: self._turn(ROWS))
                self._where = Live(tag="span").classes("hg-status").props('role="status"')

    async def look(self, past: Past) -> CheckpointHistory | None:
        """Read the history where there may be news, show it, and return the page that is shown."""
        aged = time.monotonic() - self._read_at > _READ_EVERY_S
        if past != self._past or aged or self._page is None:
            self._past = past
            await self._read()
        return self._page

    async def _read(self) -> None:
        offset = self._offset
        self._read_at = time.monotonic()
        seen = await widgets.ask(read_history, get_context(), self._job, offset, self._charted)
        if seen is None or offset != self._offset:
            return
        self._page, newest = seen
        self._total = self._page.total
        self._table.show(show_checkpoints(self._page.entries, self._past, may=self._may))
        self._show_where(len(self._page.entries))
        if newest is not None:
            self._show_chart(newest)
            self._charted = self._page.total

    def _show_where(self, count: int) -> None:
        first = self._offset + 1 if count else 0
        self._where.show(f"{first} to {self._offset + count} of {format_count(self._total)}")
        self._newer.set_enabled(self._offset > 0)
        self._older.set_enabled(self._offset + count < self._total)

    def _show_chart(self, newest: tuple[CheckpointEvent, ...]) -> None:
        fresh = chart_options(newest)["series"]
        for shown, series in zip(self._chart.options["series"], fresh, strict=True):
            shown["data"] = series["data"]
        self._chart.update()

    async def _turn(self, rows: int) -> None:
        self._offset = min(max(self._offset + rows, 0), max(self._total - 1, 0) // ROWS * ROWS)
        await self._read()

    async def _act(self, action: str, value: str) -> None:
        match action:
            case "restore":
                await self._restore(value)
            case "pin" | "unpin":
                pinned = action == "pin"
                await ask_and_do(
                    ask_pin(value, pinned=pinned), verbs.pin, self._job, value, pinned=pinned
                )
                await self._changed()


def read_history(
    context: ServerContext, job: str, offset: int, charted: int | None
) -> tuple[CheckpointHistory, tuple[CheckpointEvent, ...] | None]:
    """Return a page of a job's history, and the newest entries if the chart does not have them.

    Args:
        charted: How many entries there were when the chart was drawn.
    """
    read = context.home.checkpoint_history
    if charted is None and not offset:
        newest = read(job, limit=POINTS)
        return replace(newest, entries=newest.entries[:ROWS]), newest.entries
    page = read(job, limit=ROWS, offset=offset)
    return page, None if page.total == charted else read(job, limit=POINTS).entries


def find_kept(entry: CheckpointEvent, past: Past) -> Checkpoint | None:
    """Return the checkpoint of an entry, if it can be restored."""
    if not entry.kept:
        return None
    for checkpoint in reversed((*past.left_behind, *past.checkpoints)):
        if checkpoint.id == entry.id and entry.run in (None, checkpoint.run):
            return checkpoint
    return None


def show_checkpoints(entries: Sequence[CheckpointEvent], past: Past, *, may: bool) -> Markup:
    """Return entries as a table with their buttons.

    Args:
        may: Whether the buttons can be pressed.
    """
    if not entries:
        return note("No checkpoint has been taken yet.")
    lines = []
    for entry in entries:
        kept = find_kept(entry, past)
        took_ms = None if entry.took is None else entry.took.total_seconds() * 1000
        can_restore = entry.kept and entry.status == "COMPLETED"
        lines.append((entry, kept, took_ms, _source(entry, kept) if can_restore else ""))
    return render("checkpoints", lines=lines, may=may)


def _source(entry: CheckpointEvent, kept: Checkpoint | None) -> str:
    """Return what `restore --from` takes for an entry."""
    if kept is not None:
        return kept.source
    of_run = entry.kind == "checkpoint" and entry.run is not None
    return f"{entry.run}/{entry.id}" if of_run else entry.id
