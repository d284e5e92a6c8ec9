"""The logs of a job: the last lines of one, followed as it grows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from markupsafe import Markup
from nicegui import ui

from headgate.errors import HeadgateError
from headgate.jobs.views.log_search import LogFilter, LogLevel
from headgate.jobs.views.logs import Log
from headgate.server.console.parts import widgets
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note, render
from headgate.server.context import ServerContext, get_context

LINES = (100, 300, 1000)
_LONGEST_LINE = 2_000
_LOOK_EVERY_S = 2.0
# A look that took a second is followed by a pause of as many.
_PAUSES = 10
_LEVELS = {
    LogLevel.DEBUG: "debug and above",
    LogLevel.INFO: "info and above",
    LogLevel.WARN: "warnings and errors",
    LogLevel.ERROR: "errors",
}
_OF_JOB = {
    Log.SPARK: "Spark",
    Log.DRIVER: "Driver's output",
    Log.SUPERVISOR: "Supervisor's output",
    Log.EVENTS: "Events",
}
# The choice of an executor's log is this and its id.
_EXECUTOR = f"{Log.EXECUTOR}:"


class LogsPanel:
    """One log at a time; what is shown is bounded by lines and by their length."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._next_look = 0.0
        self._executors: tuple[str, ...] = ()
        with ui.element("div").classes("hg-toolbar"):
            self._log = ui.select(
                self._choices(),
                value=Log.SPARK.value,
                label="Log",
                on_change=self.look,
            )
            self._lines = ui.select(
                {count: f"last {count}" for count in LINES},
                value=LINES[0],
                label="Lines",
                on_change=self.look,
            )
            self._level = ui.select(
                {"": "all", **{level.value: _LEVELS[level] for level in LogLevel}},
                value="",
                label="Level",
                on_change=self.look,
            )
            self._filter = ui.input("Search the whole log", on_change=self.look)
            self._filter.props("clearable debounce=250")
            for field in (self._log, self._lines, self._level, self._filter):
                field.props("dense outlined options-dense").classes("hg-field")
            self._follow = ui.checkbox("Follow", value=True).props("dense")
            self._download = Live()
        self._found = Live().classes("hg-quiet").props('role="status"')
        self._shown = Live().classes("hg-log-box")
        widgets.every(_LOOK_EVERY_S, self._tick, at_once=True)

    def offer(self, executors: Sequence[str]) -> None:
        """Offer the logs of executors; the one that is shown stays until another one is chosen."""
        shown = str(self._log.value).removeprefix(_EXECUTOR)
        kept = [shown] if shown in self._executors and shown not in executors else []
        if (*executors, *kept) != self._executors:
            self._executors = (*executors, *kept)
            self._log.set_options(self._choices())

    async def choose(self, executor: str) -> None:
        """Show the log of an executor that was offered."""
        if executor in self._executors:
            # A change of the value shows the log.
            self._log.set_value(f"{_EXECUTOR}{executor}")
            await self._log.run_method("focus")

    def _choices(self) -> dict[str, str]:
        own = {log.value: says for log, says in _OF_JOB.items()}
        return own | {f"{_EXECUTOR}{each}": f"Executor {each}" for each in self._executors}

    async def look(self) -> None:
        """Read the log again and show it."""
        kind, _, executor = str(self._log.value).partition(":")
        log = Log(kind)
        # Only the lines of this log have levels.
        self._level.set_enabled(log is Log.SPARK)
        level = str(self._level.value or "") if log is Log.SPARK else ""
        wanted = LogFilter(
            text=str(self._filter.value or "").strip(), level=LogLevel(level) if level else None
        )
        context = get_context()
        try:
            lines, total = await widgets.read(
                read_lines,
                context,
                self._job,
                log,
                int(self._lines.value or LINES[0]),
                wanted,
                executor or None,
            )
        except HeadgateError as error:
            self._found.show("")
            self._download.show("")
            self._shown.show(widgets.error_box(error))
            return
        self._found.show(tell_found(len(lines), total))
        self._download.show(download_link(self._job, log, wanted, executor))
        self._shown.show(show_lines(lines, wanted))

    async def _tick(self) -> None:
        if self._follow.value and time.monotonic() >= self._next_look:
            began = time.monotonic()
            await self.look()
            # The search of a large log must not occupy the server.
            self._next_look = time.monotonic() + _PAUSES * (time.monotonic() - began)


def read_lines(
    context: ServerContext,
    job: str,
    log: Log,
    last: int,
    wanted: LogFilter,
    executor: str | None = None,
) -> tuple[list[str], int | None]:
    """Return the last lines of a log without secrets, and how many lines of the whole log match.

    Args:
        wanted: Which lines; without a filter nothing is searched, and the number is None.
        executor: The id of the executor, for the log of one.
    """
    if wanted.is_empty:
        tail = context.home.tail_log(job, log, last=last, executor=executor)
        lines = [line.decode("utf-8", errors="backslashreplace") for line in tail]
        total = None
    else:
        with context.slow_read():
            matches = context.home.search_log(job, log, wanted, last=last, executor=executor)
        lines, total = list(matches.lines), matches.total
    return [context.hide(cut_line(line)) for line in lines], total


def tell_found(shown: int, total: int | None) -> str:
    """Return how many lines of the whole log match; empty if nothing was searched for."""
    if total is None:
        return ""
    match = "line of the whole log matches" if total == 1 else "lines of the whole log match"
    lines = f"{total:,} {match}"
    return f"{lines}; the last {shown:,} are shown." if total > shown else f"{lines}."


def download_link(job: str, log: Log, wanted: LogFilter, executor: str = "") -> Markup:
    """Return a link that downloads the whole log, or all of its matching lines."""
    query = {"log": log.value, "text": wanted.text, "level": wanted.level or ""}
    query["executor"] = executor
    given = urlencode({name: value for name, value in query.items() if value})
    path = f"/v1/jobs/{quote(job, safe='')}/logs/download?{given}"
    return Markup('<a href="{}" download>Download</a>').format(path)


def cut_line(line: str) -> str:
    """Return a line, cut where it is too long to be shown."""
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE:,} more characters)"


def show_lines(lines: list[str], wanted: LogFilter) -> Markup:
    """Return lines as markup; without any, why there are none."""
    if lines:
        return render("log", lines=lines)
    return note("Nothing was written yet." if wanted.is_empty else "No line of the log matches.")
