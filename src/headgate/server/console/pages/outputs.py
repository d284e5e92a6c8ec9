"""The page of a job's outputs: the newest rows of each, and its dead letters."""

from __future__ import annotations

from urllib.parse import urlencode

from nicegui import ui

from headgate.errors import HeadgateError
from headgate.jobs.views.outputs import OutputKind, OutputRecord, OutputView
from headgate.server.console.panels.dead_letters import LettersPanel
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import job_path
from headgate.server.console.parts.frame import page
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note
from headgate.server.console.texts.outputs import show_outputs, show_records
from headgate.server.context import get_context

ROWS = 50
_LOOK_EVERY_S = 2.0


async def show_page(job: str, output: str = "") -> None:
    """Build the page.

    Args:
        output: Which output is shown first; the first one of the list where it is none of them.
    """
    with page("Outputs", job=job, tab="outputs"):
        if await widgets.ask(get_context().shown_job, job) is not None:
            await _Outputs(job, output).build()


class _Outputs:
    """What one page shows of a job's outputs."""

    def __init__(self, job: str, wanted: str) -> None:
        self._job = job
        self._chosen = wanted
        self._outputs: tuple[OutputView, ...] = ()
        self._records: tuple[OutputRecord, ...] = ()
        self._opened: set[str] = set()
        self._paused = False

    async def build(self) -> None:
        """Build what is on the page, with the outputs there are."""
        with widgets.panel(
            "Outputs", note="side outputs first; rows since the job was last started"
        ):
            self._list = Live().on_act(self._choose)
        with widgets.panel("Newest rows"):
            with ui.element("div").classes("hg-toolbar"):
                self._title = Live(tag="strong")
                self._pause = widgets.button("Pause", self._switch)
                self._status = Live(tag="span").classes("hg-status").props('role="status"')
            self._rows = Live().on_act(self._open).classes("hg-scroll")
            self._rows.props('role="region" aria-label="Newest rows" tabindex="0"')
        self._letters = LettersPanel(self._job)
        await self._look_at_outputs()
        widgets.every(_LOOK_EVERY_S, self._look, at_once=True)

    async def _look(self) -> None:
        await self._look_at_outputs()
        if not self._paused:
            await self._look_at_rows()
        await self._letters.look()

    async def _look_at_outputs(self) -> None:
        outputs = await widgets.ask(get_context().home.outputs, self._job)
        if outputs is None:
            return
        self._outputs = outputs
        names = [output.id for output in outputs]
        if self._chosen not in names:
            self._chosen = names[0] if names else ""
        self._list.show(show_outputs(outputs, self._chosen))
        self._title.show(self._chosen)

    async def _look_at_rows(self) -> None:
        chosen = self._chosen
        if not chosen:
            return
        try:
            context = get_context()
            records = await widgets.read(
                context.read_user_data,
                context.home.output_records,
                self._job,
                chosen,
                lines=ROWS,
            )
        except HeadgateError as error:
            self._records = ()
            self._rows.show(widgets.error_box(error))
            return
        # Meanwhile another output may have been chosen.
        if chosen == self._chosen:
            self._records = records
            self._show()

    async def _choose(self, _action: str, output: str) -> None:
        if output == self._chosen:
            return
        self._chosen = output
        self._opened.clear()
        self._records = ()
        self._set_paused(False)
        self._rows.show(note("Reading…"))
        query = urlencode({"output": output})
        ui.navigate.history.replace(f"{job_path(self._job, 'outputs')}?{query}")
        self._list.show(show_outputs(self._outputs, output))
        self._title.show(output)
        await self._look_at_rows()

    def _open(self, _action: str, place: str) -> None:
        if place in self._opened:
            self._opened.discard(place)
        else:
            self._opened.add(place)
            # New rows would push away the one that the user reads.
            self._set_paused(True)
        self._show()

    async def _switch(self) -> None:
        self._set_paused(not self._paused)
        if not self._paused:
            self._opened.clear()
            await self._look_at_rows()

    def _set_paused(self, paused: bool) -> None:
        self._paused = paused
        self._pause.set_text("Continue" if paused else "Pause")
        self._show_status()

    def _show(self) -> None:
        self._opened &= {record.place for record in self._records}
        self._rows.show(show_records(self._records, self._opened))
        self._show_status()

    def _show_status(self) -> None:
        count = len(self._records)
        live = "paused" if self._paused else "live"
        kind = next((output.kind for output in self._outputs if output.id == self._chosen), None)
        is_letters = kind is OutputKind.DEAD_LETTERS
        more = ", as they are written; below they are told apart" if is_letters else ""
        self._status.show(f"{live}, newest {count} of at most {ROWS}{more}")
