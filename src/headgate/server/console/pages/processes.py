"""The page of a job's processes: memory and time of its driver and Python workers, and its logs."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.engine.attempt.vitals import Vitals
from headgate.jobs.host.doctor import Finding
from headgate.jobs.host.job_doctor import diagnose_job
from headgate.jobs.views.job import JobView
from headgate.server.console.panels.logs import LogsPanel
from headgate.server.console.parts import widgets
from headgate.server.console.parts.frame import page
from headgate.server.console.parts.live import Live
from headgate.server.console.texts.processes import tell_driver, tell_pools
from headgate.server.context import ServerContext, get_context

_LOOK_EVERY_S = 5.0
_NOT_MEASURED = "The driver is not running, or has not reported its memory yet."


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

    async def build(self) -> None:
        """Build what is on the page, with the last figures."""
        with widgets.panel("Driver"):
            self._driver = Live()
        with widgets.panel("Memory", note="headgate doctor --job shows the same"):
            self._memory = Live()
        await self._look()
        # Its timer begins when it is made, and the page is sent before a timer's first call.
        with widgets.panel("Logs"):
            LogsPanel(self._job)
        widgets.every(_LOOK_EVERY_S, self._look, at_once=True)

    async def _look(self) -> None:
        seen = await widgets.ask(_read, get_context(), self._job)
        if seen is None:
            return
        view, vitals, findings = seen
        if vitals is None:
            self._driver.show(_NOT_MEASURED)
            self._memory.show("")
            return
        self._driver.show_template("facts", rows=tell_driver(view, vitals, datetime.now(UTC)))
        self._memory.show_template("pools", pools=tell_pools(vitals, findings))


def _read(context: ServerContext, job: str) -> tuple[JobView, Vitals | None, list[Finding]]:
    view = context.shown_job(job)
    vitals = context.home.vitals(view)
    return view, vitals, [] if vitals is None else diagnose_job(context.settings.home, job)
