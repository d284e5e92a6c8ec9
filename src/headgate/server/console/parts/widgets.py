"""The parts that pages are made of."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from markupsafe import Markup
from nicegui import context, ui

from headgate.errors import HeadgateError
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import render
from headgate.server.console.parts.theme import FONT, LINE, MUTED, SERIES, SURFACE, TEXT
from headgate.server.context import get_context
from headgate.server.operations import Operation
from headgate.server.signed_in import current_access

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
            heading = Live(title, tag="h2")
            section.props["aria-labelledby"] = heading.html_id
            if note:
                ui.label(note).classes("hg-note")
        yield section


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


async def confirm(
    title: str, says: str | Sequence[str], *, action: str, dangerous: bool = False
) -> bool:
    """Ask before something is done, and return whether it was agreed to.

    Args:
        says: What will happen, one sentence each.
        action: What the button that agrees says: a verb.
    """
    sentences = [says] if isinstance(says, str) else list(says)
    text = Markup().join(Markup("<p>{}</p>").format(sentence) for sentence in sentences)
    with ui.dialog() as dialog, ui.card().classes("hg-dialog"):
        Live(Markup("<h2>{}</h2>").format(title))
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


def error_box(error: HeadgateError | BaseException | Mapping[str, Any]) -> Markup:
    """Return an error as markup: its code, its message, and what to do next."""
    code, message, hint = _read_error(error)
    return render("error", code=code, message=message, hint=hint)


def show_error(error: HeadgateError | BaseException | Mapping[str, Any]) -> None:
    """Show an error at the top of the page, in place of the one before it."""
    alert = context.client.storage.get(_ALERT)
    if isinstance(alert, Live):
        alert.show_template("alert", error=error_box(error))


def place_alert() -> None:
    """Make the place where errors are shown; once a page."""
    alert = Live().classes("hg-alerts").props('role="alert"')
    alert.on_act(lambda _action, _value: alert.show(""))
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
        raise get_context().hide_error(error) from error


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
    title = says or f"{operation.kind} {operation.job or ''}".strip()
    news = ui.notification(title, spinner=True, timeout=None, position="bottom-left")
    try:
        current = operation
        while str(current.state) == "RUNNING":
            await asyncio.sleep(_LOOK_EVERY_S)
            current = operations.get(operation.id)
            progress = str(current.progress or "")
            news.message = f"{title}: {progress}" if progress else title
    finally:
        news.dismiss()
    if str(current.state) == "FAILED":
        show_error(current.error or {"code": "FAILED", "message": title})
    else:
        ui.notify(f"{title}: done", position="bottom-left", timeout=3000)
    return current


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
            "see the server's standard error",
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
            themed[name] = [_themed_axis(axis) for axis in axes]
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
