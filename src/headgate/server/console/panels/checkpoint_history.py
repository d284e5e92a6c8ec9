"""The history of a job's checkpoints on a page: a table in pages, and the same as a chart."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime

from nicegui import ui

from headgate.jobs.service import (
    CheckpointHistory,
    Past,
    PastCheckpoint,
    PastMoment,
    list_checkpoint_history,
)
from headgate.server.actions import verbs
from headgate.server.console.charts.checkpoint_chart import POINTS, chart_options
from headgate.server.console.panels.questions import ask_and_do
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import (
    NONE,
    format_age,
    format_bytes,
    format_count,
    format_moment,
    format_ms,
)
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.markup import Html, act, element, join
from headgate.server.console.texts.checkpoints import ask_pin
from headgate.server.context import ServerContext, get_context
from headgate.server.signed_in import current_access

ROWS = 20
# Failed checkpoints change nothing of what is kept; so often somebody looks all the same.
_READ_EVERY_S = 10.0
_COLUMNS = (
    widgets.Column("id", "Checkpoint"),
    widgets.Column("at", "Completed (UTC)"),
    widgets.Column("took", "Took", number=True),
    widgets.Column("new", "New", number=True),
    widgets.Column("full", "Size", number=True),
    widgets.Column("records", "Records", number=True),
    widgets.Column("status", "Status"),
    widgets.Column("actions", ""),
)
_NEEDS_OPERATE = "needs a token with the role operate"


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read of a history: a page of it, and the newest for the chart if there are new ones.

    Attributes:
        newest: None where nothing has come since.
    """

    page: CheckpointHistory
    newest: tuple[PastCheckpoint, ...] | None


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
            self._table = widgets.table(
                _COLUMNS,
                (),
                key="number",
                label="Checkpoints",
                empty="No checkpoint has been taken yet.",
            )
            self._table.on_act(self._act)
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
        self._page = seen.page
        self._total = seen.page.total
        self._table.set_rows(
            [
                history_row(each, find_kept(each, self._past), may=self._may)
                for each in seen.page.entries
            ]
        )
        self._show_where(len(seen.page.entries))
        if seen.newest is not None:
            self._show_chart(seen.newest)
            self._charted = seen.page.total

    def _show_where(self, count: int) -> None:
        first = self._offset + 1 if count else 0
        self._where.show(join(f"{first} to {self._offset + count} of {format_count(self._total)}"))
        self._newer.set_enabled(self._offset > 0)
        self._older.set_enabled(self._offset + count < self._total)

    def _show_chart(self, newest: tuple[PastCheckpoint, ...]) -> None:
        fresh = chart_options(newest)["series"]
        for shown, each in zip(self._chart.options["series"], fresh, strict=True):
            shown["data"] = each["data"]
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


def read_history(context: ServerContext, job: str, offset: int, charted: int | None) -> Seen:
    """Return a page of a job's history, and the newest entries for the chart.

    Args:
        charted: How many entries there were when the chart was drawn.
    """
    context.check_shown(job)
    home = context.settings.home
    if charted is None and not offset:
        newest = list_checkpoint_history(home, job, limit=POINTS)
        return Seen(replace(newest, entries=newest.entries[:ROWS]), newest.entries)
    page = list_checkpoint_history(home, job, limit=ROWS, offset=offset)
    if page.total == charted:
        return Seen(page, None)
    return Seen(page, list_checkpoint_history(home, job, limit=POINTS).entries)


def find_kept(entry: PastCheckpoint, past: Past) -> PastMoment | None:
    """Return the checkpoint that an entry tells of, if it is one that can be gone back to."""
    if not entry.kept:
        return None
    for each in reversed(past.moments):
        if each.id == entry.id and entry.run in (None, each.run):
            return each
    return None


def history_row(
    entry: PastCheckpoint, kept: PastMoment | None, *, may: bool
) -> dict[str, str | Html]:
    """Return an entry as a row of the table."""
    took = None if entry.took is None else entry.took.total_seconds() * 1000
    return {
        "number": str(entry.number),
        "id": join(
            element("strong", entry.id or entry.kind),
            element("span", " savepoint", class_="hg-quiet") if entry.kind == "savepoint" else None,
        ),
        "at": format_moment(entry.at),
        "took": format_ms(took),
        "new": format_bytes(entry.new_bytes),
        "full": format_bytes(entry.full_bytes),
        "records": NONE if kept is None else format_count(kept.records),
        "status": _status(entry, kept),
        "actions": _actions(entry, kept, may=may),
        "class": "" if entry.kept else "hg-gone",
    }


def tell_overview(history: CheckpointHistory, now: datetime) -> list[tuple[str, str | Html]]:
    """Return the counts and the latest of each kind, as names and values."""
    latest = history.latest
    failed = latest.get("failed")
    return [
        ("Completed", format_count(history.completed)),
        ("Failed", format_count(history.failed)),
        ("Savepoints", format_count(history.savepoints)),
        ("Restores", format_count(history.restores)),
        ("Latest completed", _latest(latest.get("completed"), now)),
        ("Latest savepoint", _latest(latest.get("savepoint"), now)),
        ("Latest restore", _latest(latest.get("restore"), now, word="from ")),
        (
            "Latest failed",
            NONE
            if failed is None
            else join(
                format_age(failed.at, now),
                element("br"),
                element("span", failed.reason, class_="hg-failed"),
            ),
        ),
    ]


def _latest(entry: PastCheckpoint | None, now: datetime, *, word: str = "") -> str | Html:
    if entry is None:
        return NONE
    size = f", {format_bytes(entry.full_bytes)}" if entry.full_bytes is not None else ""
    age = element("span", f"{format_age(entry.at, now)}{size}", class_="hg-quiet")
    return join(f"{word}{entry.id}", element("br"), age)


def _status(entry: PastCheckpoint, kept: PastMoment | None) -> Html:
    if entry.status != "COMPLETED":
        return join(
            element("span", "FAILED", class_="hg-badge hg-bad"),
            element("span", f" {entry.reason}", class_="hg-quiet"),
        )
    if not entry.kept:
        return element("span", "gone", class_="hg-badge hg-idle")
    pinned = element("span", ", pinned", class_="hg-quiet") if kept and kept.pinned else None
    return join(element("span", "kept", class_="hg-badge hg-good"), pinned)


def _actions(entry: PastCheckpoint, kept: PastMoment | None, *, may: bool) -> Html | str:
    if not entry.kept or entry.status != "COMPLETED":
        return ""
    source = kept.source if kept is not None else _source(entry)
    label = f"Restore from {entry.id}"
    restore = act("Restore…", "restore", source, aria_label=label, **_allowed(may))
    if kept is None or entry.kind != "checkpoint":
        return element("span", restore, class_="hg-row-actions")
    verb, label = ("unpin", "Unpin") if kept.pinned else ("pin", "Pin")
    pin = act(label, verb, entry.id, aria_label=f"{label} {entry.id}", **_allowed(may))
    return element("span", pin, restore, class_="hg-row-actions")


def _source(entry: PastCheckpoint) -> str:
    of_run = entry.kind == "checkpoint" and entry.run is not None
    return f"{entry.run}/{entry.id}" if of_run else entry.id


def _allowed(may: bool) -> dict[str, object]:
    return {} if may else {"disabled": True, "title": _NEEDS_OPERATE}
