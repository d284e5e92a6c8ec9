"""The logs of a job: the last lines of one, followed as it grows."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup
from nicegui import ui

from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.views.logs import Log
from headgate.server.console.parts import widgets
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note, render
from headgate.server.context import get_context

LINES = (100, 300, 1000)
_LONGEST_LINE = 2_000
_LOOK_EVERY_S = 2.0
_SAYS = {
    Log.SPARK: "Spark",
    Log.DRIVER: "Driver's output",
    Log.SUPERVISOR: "Supervisor's output",
    Log.EVENTS: "Events",
}


class LogsPanel:
    """One log at a time; what is shown is bounded by lines and by their length."""

    def __init__(self, job: str) -> None:
        self._job = job
        with ui.element("div").classes("hg-toolbar"):
            self._log = ui.select(
                {log.value: _SAYS[log] for log in Log},
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
            self._filter = ui.input("Only lines with", on_change=self.look)
            self._filter.props("clearable debounce=250")
            for field in (self._log, self._lines, self._filter):
                field.props("dense outlined options-dense").classes("hg-field")
            self._follow = ui.checkbox("Follow", value=True).props("dense")
        self._shown = Live().classes("hg-log-box")
        widgets.every(_LOOK_EVERY_S, self._tick, at_once=True)

    async def look(self) -> None:
        """Read the log again and show it."""
        text = str(self._filter.value or "")
        context = get_context()
        try:
            lines = await widgets.read(
                read_lines,
                context.home,
                self._job,
                Log(str(self._log.value)),
                int(self._lines.value or LINES[0]),
                text,
                hide=context.hide,
            )
        except HeadgateError as error:
            self._shown.show(widgets.error_box(error))
            return
        self._shown.show(show_lines(lines, text))

    async def _tick(self) -> None:
        if self._follow.value:
            await self.look()


def read_lines(
    home: FolderHome, job: str, log: Log, last: int, text: str = "", *, hide: Callable[[str], str]
) -> list[str]:
    """Return the last lines of a log, of them only those that hold a text.

    Args:
        text: Whether it is in capitals does not count; empty for all lines.
        hide: Takes secrets out of what is shown.
    """
    tail = home.tail_log(job, log, last=last)
    lines = (cut_line(line.decode("utf-8", errors="backslashreplace")) for line in tail)
    wanted = text.lower()
    return [line for line in map(hide, lines) if wanted in line.lower()]


def cut_line(line: str) -> str:
    """Return a line, cut where it is too long to be shown."""
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE:,} more characters)"


def show_lines(lines: list[str], text: str) -> Markup:
    """Return lines as markup; without any, why there are none."""
    if lines:
        return render("log", lines=lines)
    return note(f"None of these lines has “{text}”." if text else "Nothing was written yet.")
