"""The page of a job's state: its operators, a key now and over time, rows, and SQL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

from nicegui import ui
from nicegui.events import GenericEventArguments

from headgate.errors import HeadgateError
from headgate.jobs.state.values import (
    StateOperator,
    StateOverview,
    StateRows,
)
from headgate.jobs.views.past import Past
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_moment, job_path
from headgate.server.console.parts.frame import page
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note
from headgate.server.console.texts.state import (
    find_operator,
    show_history,
    show_operators,
    show_rows,
    show_value,
    tell_key,
    tell_rows,
)
from headgate.server.context import ServerContext, get_context

FIRST_ROWS = 50
QUERIED_ROWS = 200
_LOOK_EVERY_S = 3.0
_NOW = "now"
_LONGEST_KEY = 4_096
_LONGEST_SQL = 20_000


async def show_page(job: str, operator: str = "", key: str = "", at: str = "") -> None:
    """Build the page; a link to it may say what to look up.

    Args:
        operator: The uid of the operator; the one with most rows where it is none.
        key: Looked up at once.
        at: A checkpoint's or savepoint's id; now where left out.
    """
    with page("State", job=job, tab="state"):
        if await widgets.ask(get_context().shown_job, job) is not None:
            await _State(job, operator, key[:_LONGEST_KEY], at or _NOW).build()


class _State:
    """What one page shows of a job's state."""

    def __init__(self, job: str, operator: str, key: str, at: str) -> None:
        self._job = job
        self._uid: str | None = operator or None
        self._first_key = key
        self._at = at
        self._overview: StateOverview | None = None
        self._busy = False

    async def build(self) -> None:
        """Build what is on the page, with the operators there are."""
        with widgets.panel("Operators", note="what each holds, by size"):
            self._operators = Live().on_act(self._choose)
            self._none = Live()
        with ui.element("div").classes("hg-columns"):
            self._build_key()
            self._build_history()
        self._build_rows()
        self._build_sql()
        await self._look()
        widgets.every(_LOOK_EVERY_S, self._look)
        if self._first_key and self._uid:
            ui.timer(0.05, self._look_up, once=True)

    def _build_key(self) -> None:
        with widgets.panel("Value", note="what an operator holds, now or at a checkpoint"):
            with ui.element("form").classes("hg-form") as form:
                form.on("submit.prevent", self._look_up)
                self._key = ui.input("Key", value=self._first_key)
                self._key.props(
                    f'outlined dense autocomplete=off maxlength={_LONGEST_KEY} data-filter=""'
                )
                self._moment = ui.select({_NOW: "now"}, value=_NOW, label="At")
                self._moment.props("outlined dense options-dense").classes("hg-narrow")
                self._moment.on_value_change(lambda event: self._go(str(event.value)))
                widgets.button("Look up", lambda: None, kind="main").props("type=submit")
            self._hint = Live(tag="p").classes("hg-quiet")
            self._status = Live(tag="p").classes("hg-status").props('role="status"')
            self._value = Live(note("Type a key to see what is held under it."))

    def _build_history(self) -> None:
        with widgets.panel("Time machine", note="the same at every retained checkpoint, and now"):
            self._history_status = Live(tag="p").classes("hg-status").props('role="status"')
            self._history = Live(note("What changed from checkpoint to checkpoint."))

    def _build_rows(self) -> None:
        with widgets.panel("First rows", note=f"{FIRST_ROWS} of them, at the moment chosen above"):
            with ui.element("div").classes("hg-toolbar"):
                self._read = widgets.button("Read rows", self._read_rows)
                self._rows_status = Live(tag="span").classes("hg-status").props('role="status"')
            self._rows = _scrolling("First rows")

    def _build_sql(self) -> None:
        with widgets.panel(
            "Query", note="over the state of the chosen operator, as the view state"
        ):
            self._sql = ui.textarea(value="select count(*) as rows from state")
            self._sql.props(
                f'outlined dense autogrow rows=2 maxlength={_LONGEST_SQL} aria-label="SQL" '
                'spellcheck="false"'
            ).classes("hg-wide")
            self._sql.on("keydown.ctrl.enter", self._query)
            with ui.element("div").classes("hg-toolbar hg-gap"):
                self._run = widgets.button("Run  (Ctrl+Enter)", self._query)
                self._sql_status = Live(tag="span").classes("hg-status").props('role="status"')
            self._answer = _scrolling("Rows of the query")

    async def _look(self) -> None:
        seen = await widgets.ask(_read_overview, get_context(), self._job)
        if seen is None:
            return
        overview, past = seen
        self._overview = overview
        self._uid = find_operator(overview.operators, self._uid)
        self._operators.show(show_operators(overview, self._uid))
        nothing = "No operator of this job holds state."
        self._none.show("" if overview.operators else note(nothing))
        self._hint.show(self._tell_key())
        self._offer(past)

    def _offer(self, past: Past) -> None:
        """Offer the moments that there are; the one that was chosen stays, gone or not."""
        choices = {_NOW: "now"}
        for checkpoint in reversed(past.checkpoints):
            completed = format_moment(checkpoint.completed_at)
            choices[checkpoint.source] = f"{checkpoint.id}, {completed}"
        if self._at not in choices:
            choices[self._at] = self._at
        if choices != self._moment.options or self._moment.value != self._at:
            self._moment.set_options(choices, value=self._at)

    def _tell_key(self) -> str:
        operator = self._operator()
        return "" if operator is None else f"{operator.uid}: {tell_key(operator)}"

    def _operator(self) -> StateOperator | None:
        overview = self._overview
        return next(
            (
                operator
                for operator in (overview.operators if overview else ())
                if operator.uid == self._uid
            ),
            None,
        )

    async def _choose(self, _action: str, uid: str) -> None:
        if uid == self._uid:
            return
        self._uid = uid
        for shown in (self._value, self._history, self._rows, self._answer):
            shown.show("")
        for status in (self._rows_status, self._sql_status, self._history_status):
            status.show("")
        if self._overview is not None:
            self._operators.show(show_operators(self._overview, uid))
        self._hint.show(self._tell_key())
        self._remember()
        if str(self._key.value or "").strip():
            await self._look_up()

    async def _go(self, at: str) -> None:
        if at != self._at:
            self._at = at
            await self._look_up()

    def _remember(self) -> None:
        """Put what is shown into the address, so that it can be shared."""
        key = str(self._key.value or "").strip()
        asked = {"operator": self._uid, "key": key, "at": self._at if self._at != _NOW else ""}
        query = urlencode({name: value for name, value in asked.items() if value})
        ui.navigate.history.replace(f"{job_path(self._job, 'state')}?{query}")

    async def _look_up(self, _event: GenericEventArguments | None = None) -> None:
        key, uid = str(self._key.value or "").strip(), self._uid
        if not key or uid is None or self._busy:
            return
        self._busy = True
        self._remember()
        for shown in (self._value, self._history):
            shown.show("")
        try:
            await self._show_value(uid, key)
        except HeadgateError as error:
            self._value.show(widgets.error_box(error))
            self._history.show("")
        finally:
            self._busy = False

    async def _show_value(self, uid: str, key: str) -> None:
        context = get_context()
        value, took = await widgets.read_slowly(
            self._status,
            "Looking it up…",
            context.read_user_data,
            context.home.state.look_up,
            self._job,
            uid,
            key,
            at=self._when(),
        )
        self._value.show(show_value(value))
        self._status.show(took.capitalize())
        history, took = await widgets.read_slowly(
            self._history_status,
            "Looking at every checkpoint…",
            context.read_user_data,
            context.home.state.history,
            self._job,
            uid,
            key,
        )
        self._history.show(show_history(history))
        self._history_status.show(f"Values at {len(history.entries)} moments, {took}.")

    async def _read_rows(self) -> None:
        if self._uid is not None:
            read = partial(
                get_context().home.state.first_rows,
                uid=self._uid,
                at=self._when(),
                limit=FIRST_ROWS,
            )
            await self._show_rows(self._read, self._rows_status, self._rows, read)

    async def _query(self, _event: GenericEventArguments | None = None) -> None:
        sql = str(self._sql.value or "").strip()
        if sql:
            ask = get_context().home.state.query
            read = partial(ask, sql=sql, uid=self._uid, at=self._when(), limit=QUERIED_ROWS)
            await self._show_rows(self._run, self._sql_status, self._answer, read)

    async def _show_rows(
        self, button: ui.button, status: Live, shown: Live, read: Callable[[str], StateRows]
    ) -> None:
        if not button.enabled:
            return
        button.disable()
        try:
            rows, took = await widgets.read_slowly(
                status, "Reading…", get_context().read_user_data, read, self._job
            )
        except HeadgateError as error:
            shown.show(widgets.error_box(error))
        else:
            shown.show(show_rows(rows))
            status.show(tell_rows(rows, took))
        finally:
            button.enable()

    def _when(self) -> str | None:
        return None if self._at == _NOW else self._at


def _scrolling(label: str) -> Live:
    box = Live().classes("hg-scroll")
    box.props(f'role="region" aria-label="{label}" tabindex="0"')
    return box


def _read_overview(context: ServerContext, job: str) -> tuple[StateOverview, Past]:
    context.check_shown(job)
    home = context.home
    return home.operators(job), home.past(job)
