"""The page of a job's processes: tasks and memory of its driver and executors, and all logs."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.jobs.host.doctor import Finding
from headgate.jobs.host.job_doctor import diagnose_job
from headgate.jobs.views.processes import Processes
from headgate.server.console.panels.logs import LogsPanel
from headgate.server.console.parts import widgets
from headgate.server.console.parts.frame import page
from headgate.server.console.parts.live import Live
from headgate.server.console.texts.processes import tell_driver, tell_executors, tell_pools
from headgate.server.context import ServerContext, get_context

_LOOK_EVERY_S = 5.0
_NOT_MEASURED = "The driver is not running, or has not reported its memory yet."
_NO_EXECUTOR = "The cluster has given no executor yet."


async def show_page(job: str) -> None:
    """Build the page."""
    with page("Processes", job=job, tab="processes"):
        view = await widgets.ask(get_context().shown_job, job)
        if view is not None:
            await _Processes(job).build()


class _Processes:
    """What one page shows of a job's processes."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._logs: LogsPanel | None = None
        # The executors whose logs can be read here.
        self._readable: list[str] = []

    async def build(self) -> None:
        """Build what is on the page, with the last figures."""
        with widgets.panel("Driver"):
            self._driver = Live()
        with widgets.panel("Memory", note="headgate doctor --job shows the same"):
            self._memory = Live().classes("hg-table-box")
        with widgets.panel("Executors", note="lost ones stay until the next attempt"):
            self._executors = Live().classes("hg-table-box").on_act(self._act)
        await self._look()
        # Its timer begins when it is made, and the page is sent before a timer's first call.
        with widgets.panel("Logs"):
            self._logs = LogsPanel(self._job)
            self._logs.offer(self._readable)
        widgets.every(_LOOK_EVERY_S, self._look, at_once=True)

    async def _look(self) -> None:
        seen = await widgets.ask(_read, get_context(), self._job)
        if seen is None:
            return
        found, findings = seen
        readable = [view.executor.id for view in found.executors if view.has_log]
        self._readable = list(dict.fromkeys(readable))
        if self._logs is not None:
            self._logs.offer(self._readable)
        if found.vitals is None:
            self._driver.show(_NOT_MEASURED)
            self._memory.show("")
            self._executors.show("")
            return
        now = datetime.now(UTC)
        self._driver.show_template("facts", rows=tell_driver(found, found.vitals, now))
        self._memory.show_template("pools", pools=tell_pools(found.vitals, findings))
        rows = tell_executors(found, findings, now)
        if rows:
            self._executors.show_template("executors", rows=rows)
        else:
            self._executors.show(_NO_EXECUTOR)

    async def _act(self, action: str, value: str) -> None:
        if action == "log" and self._logs is not None:
            await self._logs.choose(value)


def _read(context: ServerContext, job: str) -> tuple[Processes, list[Finding]]:
    found = context.home.processes(job)
    findings = [] if found.vitals is None else diagnose_job(context.settings.home, job)
    return context.hide_in(found), findings
