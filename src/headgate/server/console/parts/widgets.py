"""The parts that pages are made of."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from nicegui import context, ui

from headgate.errors import HeadgateError
from headgate.server.console.parts.formats import (
    NONE,
    format_age,
    format_bytes,
    format_count,
    format_duration,
    format_moment,
    format_ms,
    format_rate,
    format_share,
    format_short,
)
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.markup import Html, act, element, join, link, safe
from headgate.server.console.parts.redaction import hide_error
from headgate.server.console.parts.theme import FONT, LINE, MUTED, SERIES, SURFACE, TEXT, tone_of
from headgate.server.context import get_context
from headgate.server.operations import Operation
from headgate.server.signed_in import current_access

__all__ = [
    "NONE",
    "Column",
    "Facts",
    "Html",
    "Live",
    "Table",
    "act",
    "ask",
    "badge",
    "begin_read",
    "button",
    "chart",
    "clear_error",
    "confirm",
    "element",
    "empty",
    "error_box",
    "every",
    "facts",
    "facts_markup",
    "follow",
    "format_age",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_moment",
    "format_ms",
    "format_rate",
    "format_share",
    "format_short",
    "join",
    "link",
    "panel",
    "read",
    "safe",
    "show_error",
    "state_badge",
    "table",
    "themed",
]

P = ParamSpec("P")
T = TypeVar("T")
OnClick = Callable[[], Awaitable[None] | None]

_ALERT = "headgate.alert"
_LOOK_EVERY_S = 0.3
# NiceGUI's own threads are few, and end with the first server of a process.
_readers = ThreadPoolExecutor(max_workers=16, thread_name_prefix="console")


@contextmanager
def panel(title: str, *, note: str = "") -> Iterator[ui.element]:
    """Open a section with a heading; what is built inside is its content."""
    with ui.element("section").classes("hg-panel") as section:
        with ui.element("div").classes("hg-panel-head"):
            heading = Live(safe(title), tag="h2")
            section.props["aria-labelledby"] = heading.html_id
            if note:
                ui.label(note).classes("hg-note")
        yield section


class Facts(Live):
    """A list of names and values."""

    def __init__(self, rows: Sequence[tuple[str, str | Html]]) -> None:
        super().__init__(facts_markup(rows), tag="div")

    def set_rows(self, rows: Sequence[tuple[str, str | Html]]) -> None:
        """Show other values."""
        self.show(facts_markup(rows))


def facts(rows: Sequence[tuple[str, str | Html]]) -> Facts:
    """Show names with their values; values may be markup (`link`, `badge`, …)."""
    return Facts(rows)


def badge(state: str) -> Html:
    """Return a state as markup: a colour and the word."""
    return element("span", state, class_=f"hg-badge hg-{tone_of(state)}")


def state_badge(state: str) -> Live:
    """Show a state: a colour and the word."""
    return Live(badge(state), tag="span")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        field: The key in a row.
        label: Its heading.
        number: Whether it is flush right, in digits of one width.
    """

    field: str
    label: str
    number: bool = False


Row = Mapping[str, str | Html]


class Table(Live):
    """Rows under headings; at phone width each row becomes a small list of its own."""

    def __init__(
        self,
        columns: Sequence[Column | tuple[str, str]],
        rows: Sequence[Row],
        *,
        key: str,
        label: str = "",
        empty: str | Html = "",
    ) -> None:
        self._columns = [each if isinstance(each, Column) else Column(*each) for each in columns]
        self._key = key
        self._label = label
        self._empty = empty
        super().__init__(self._markup(rows))
        self.classes("hg-table-box")

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show other rows; those with the same key are changed in place."""
        self.show(self._markup(rows))

    def _markup(self, rows: Sequence[Row]) -> Html:
        if not rows and self._empty:
            return element("p", self._empty, class_="hg-empty")
        heads = (
            element("th", each.label, scope="col", class_="hg-num" if each.number else None)
            for each in self._columns
        )
        return element(
            "table",
            element("thead", element("tr", *heads)),
            element("tbody", *(self._row(each) for each in rows)),
            class_="hg-table",
            aria_label=self._label or None,
        )

    def _row(self, row: Row) -> Html:
        cells = (
            element(
                "td",
                row.get(each.field, ""),
                data_label=each.label,
                class_="hg-num" if each.number else None,
            )
            for each in self._columns
        )
        return element("tr", *cells, data_key=row[self._key], class_=row.get("class") or None)


def table(
    columns: Sequence[Column | tuple[str, str]],
    rows: Sequence[Row],
    *,
    key: str,
    label: str = "",
    empty: str | Html = "",
) -> Table:
    """Show rows; `.set_rows` shows others in place, `.on_act` hears of buttons made by `act`.

    Args:
        columns: A Column each, or its field and its label.
        rows: By field; text is escaped, `Html` (`link`, `act`, `badge`) is shown as it is. A
            field `class`, if there is one, becomes the row's CSS class.
        key: The field that names a row among the others.
        label: What the table is, for those who cannot see it.
        empty: What to say where there are no rows.
    """
    return Table(columns, rows, key=key, label=label, empty=empty)


def chart(options: dict[str, Any], *, height: str = "12rem") -> ui.echart:
    """Show a chart in the theme's colours; change `.options` in place to update it.

    What options leave out (colours, grid, axis lines, tooltip) is filled in.
    """
    return ui.echart(themed(options), renderer="svg").classes("hg-chart").style(f"height: {height}")


def button(label: str, on_click: OnClick, *, kind: str = "plain") -> ui.button:
    """Show a button.

    Args:
        kind: plain, main (the one that is usually wanted) or danger.
    """
    made = ui.button(label, on_click=on_click, color=None)
    return made.props("no-caps unelevated dense").classes(f"hg-button hg-{kind}")


def empty(says: str, *, command: str = "") -> Live:
    """Say that there is nothing yet, and what to run to change that."""
    code = element("pre", element("code", command)) if command else None
    return Live(element("div", element("p", says), code, class_="hg-empty"))


async def confirm(
    title: str, says: str | Sequence[str], *, action: str, dangerous: bool = False
) -> bool:
    """Ask before something is done, and return whether it was agreed to.

    Args:
        says: What will happen, one sentence each.
        action: What the button that agrees says: a verb.
    """
    sentences = [says] if isinstance(says, str) else list(says)
    text = join(*(element("p", each) for each in sentences))
    with ui.dialog() as dialog, ui.card().classes("hg-dialog"):
        Live(element("h2", title))
        Live(text).classes("hg-dialog-text")
        with ui.element("div").classes("hg-actions"):
            button("Back", lambda: dialog.submit(False)).props("autofocus")
            button(action, lambda: dialog.submit(True), kind="danger" if dangerous else "main")
    dialog.props(f'aria-label="{_plain(title)}"')
    try:
        return bool(await dialog)
    finally:
        if not dialog.is_deleted:
            dialog.delete()


def error_box(error: HeadgateError | BaseException | Mapping[str, Any]) -> Html:
    """Return an error as markup: its code, its message, and what to do next."""
    code, message, hint = _read_error(error)
    return element(
        "div",
        element("strong", code, class_="hg-code"),
        element("span", message),
        element("span", "Next: ", element("code", hint), class_="hg-hint") if hint else None,
        class_="hg-error",
    )


def show_error(error: HeadgateError | BaseException | Mapping[str, Any]) -> None:
    """Show an error at the top of the page, in place of the one before it."""
    alert = context.client.storage.get(_ALERT)
    if isinstance(alert, Live):
        close = act("Dismiss", "dismiss", class_="hg-act hg-dismiss")
        alert.show(element("div", error_box(error), close, class_="hg-alert"))


def clear_error() -> None:
    """Take the error away that is shown at the top of the page."""
    alert = context.client.storage.get(_ALERT)
    if isinstance(alert, Live):
        alert.show(Html())


def place_alert() -> None:
    """Make the place where errors are shown; once a page."""
    alert = Live().classes("hg-alerts").props('role="alert"')
    alert.on_act(lambda _action, _value: alert.show(Html()))
    context.client.storage[_ALERT] = alert
    # Whatever goes wrong later, in a timer or behind a button, is said and not only logged.
    context.client.on_exception(show_error)


async def read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that reads disk or waits, in a thread; an error is the caller's to show.

    Raises:
        HeadgateError: What the function raised, or NOT_SIGNED_IN once the session has ended.
    """
    return await begin_read(function, *args, **kwargs)


def begin_read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Begin what `read` does; for a page that has something to say while it waits.

    Raises:
        HeadgateError: NOT_SIGNED_IN once the session has ended.
    """
    # Here and not in a task of its own, which would not know the page.
    current_access()
    call = partial(contextvars.copy_context().run, partial(function, *args, **kwargs))
    return asyncio.get_running_loop().run_in_executor(_readers, _hiding, call)


def _hiding(call: Callable[[], T]) -> T:
    try:
        return call()
    except HeadgateError as error:
        raise hide_error(get_context(), error) from error


async def ask(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Call a function that reads disk or waits, in a thread; an error is shown and gives None."""
    try:
        return await read(function, *args, **kwargs)
    except HeadgateError as error:
        show_error(error)
        return None


def every(seconds: float, function: Callable[[], Any], *, at_once: bool = False) -> ui.timer:
    """Call a function again and again, for as long as the page is open in a browser.

    A call that takes long delays the next one; an error of the product is shown, and the next call
    comes all the same.

    Args:
        at_once: Whether the first call comes with the connection, or only after `seconds`.
    """

    async def tick() -> None:
        try:
            # Whoever signed out, or whose session has ended, sees nothing more.
            current_access()
            result = function()
            if asyncio.iscoroutine(result):
                await result
        except HeadgateError as error:
            show_error(error)
            if error.code == "NOT_SIGNED_IN":
                timer.cancel()

    timer = ui.timer(seconds, tick, immediate=at_once)
    return timer


async def follow(operation: Operation, *, says: str = "") -> Operation:
    """Show how far an operation is until it ends, and return it as it ended.

    Args:
        says: What is being done, in a few words; the operation's kind where it is empty.
    """
    operations = get_context().operations
    told = says or f"{operation.kind} {operation.job or ''}".strip()
    news = ui.notification(told, spinner=True, timeout=None, position="bottom-left")
    try:
        current = operation
        while str(current.state) == "RUNNING":
            await asyncio.sleep(_LOOK_EVERY_S)
            current = operations.get(operation.id)
            progress = str(current.progress or "")
            news.message = f"{told}: {progress}" if progress else told
    finally:
        news.dismiss()
    if str(current.state) == "FAILED":
        show_error(current.error or {"code": "FAILED", "message": told})
    else:
        ui.notify(f"{told}: done", position="bottom-left", timeout=3000)
    return current


def facts_markup(rows: Sequence[tuple[str, str | Html]]) -> Html:
    """Return names with their values as markup."""
    pairs = (
        element("div", element("dt", name), element("dd", value), data_key=name)
        for name, value in rows
    )
    return element("dl", *pairs, class_="hg-facts")


def _plain(text: str) -> str:
    return text.replace("\\", "").replace('"', "'")


def _read_error(
    error: HeadgateError | BaseException | Mapping[str, Any],
) -> tuple[str, str, str]:
    if isinstance(error, HeadgateError):
        return error.code, error.message, error.hint
    if isinstance(error, BaseException):
        # What it says was not written for people, and may hold anything.
        return (
            "INTERNAL",
            f"cannot go on with what this page was doing: {type(error).__name__}",
            "look at what the server wrote to its standard error",
        )
    return (
        str(error.get("code") or "ERROR"),
        str(error.get("message") or ""),
        str(error.get("hint") or ""),
    )


def themed(options: dict[str, Any]) -> dict[str, Any]:
    """Return a chart's options with what they leave out: colours, grid, axes, tooltip."""
    quiet = {
        "color": list(SERIES),
        "animation": False,
        "textStyle": {"color": MUTED, "fontFamily": FONT},
        "grid": {"left": 8, "right": 12, "top": 28, "bottom": 4, "containLabel": True},
        "tooltip": {
            "trigger": "axis",
            "backgroundColor": SURFACE,
            "borderColor": LINE,
            "textStyle": {"color": TEXT, "fontSize": 12},
            "transitionDuration": 0,
        },
    }
    themed = {**quiet, **options}
    for name in ("xAxis", "yAxis"):
        axes = themed.get(name)
        if isinstance(axes, list):
            themed[name] = [_themed_axis(each) for each in axes]
        elif isinstance(axes, dict):
            themed[name] = _themed_axis(axes)
    return themed


def _themed_axis(axis: dict[str, Any]) -> dict[str, Any]:
    return {
        "axisLine": {"lineStyle": {"color": LINE}},
        "axisTick": {"lineStyle": {"color": LINE}},
        "splitLine": {"lineStyle": {"color": LINE}, "show": axis.get("type") == "value"},
        **axis,
        "axisLabel": {"color": MUTED, "fontSize": 11, **axis.get("axisLabel", {})},
        "nameTextStyle": {"color": MUTED, **axis.get("nameTextStyle", {})},
    }
