"""What pages are made of: panels, buttons, charts, errors, and reads in a thread."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
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
_TELL_EVERY_S = 0.5
# How long the end of an operation is shown; a result takes longer to read.
_DONE_MS = 3_000
_RESULT_MS = 10_000
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
    """Show a chart in the theme's colours; change `.options` in place to update it."""
    return ui.echart(themed(options), renderer="svg").classes("hg-chart").style(f"height: {height}")


def button(label: str, on_click: OnClick, *, kind: str = "plain") -> ui.button:
    """Show a button.

    Args:
        kind: plain, main (the one that is usually wanted) or danger.
    """
    shown = ui.button(label, on_click=on_click, color=None)
    return shown.props("no-caps unelevated dense").classes(f"hg-button hg-{kind}")


def error_box(error: BaseException) -> Markup:
    """Return an error as markup: its code, its message, and the next step."""
    if not isinstance(error, HeadgateError):
        # Its message was not written for people, and may contain secrets.
        error = HeadgateError(
            "INTERNAL",
            f"cannot go on with what this page was doing: {type(error).__name__}",
            hint="see the server's standard error",
        )
    return render("error", error=error)


def show_error(error: BaseException) -> None:
    """Show an error at the top of the page, in place of the one before it."""
    alert = context.client.storage.get(_ALERT)
    if isinstance(alert, Live):
        alert.show_template("alert", error=error_box(error))


def place_alert() -> None:
    """Create the place of errors; once a page."""
    alert = Live().classes("hg-alerts").props('role="alert"')
    alert.on_act(lambda _action, _value: alert.show(""))
    context.client.storage[_ALERT] = alert
    # Errors of timers and buttons are shown, and not only logged.
    context.client.on_exception(show_error)


async def read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that reads disk or waits, in a thread; the caller shows its error.

    Raises:
        HeadgateError: What the function raised, or NOT_SIGNED_IN once the session has ended.
    """
    return await _begin_read(function, *args, **kwargs)


async def read_slowly(
    status: Live, waiting: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> tuple[T, str]:
    """Do what `read` does and show the time it takes; return the answer and that time in words.

    Args:
        status: Shows the time meanwhile; empty afterwards.
        waiting: What is done meanwhile.
    """
    began = time.monotonic()
    answer = _begin_read(function, *args, **kwargs)
    try:
        while not answer.done():
            status.show(tell_wait(waiting, time.monotonic() - began))
            await asyncio.wait({answer}, timeout=_TELL_EVERY_S)
    finally:
        status.show("")
    return answer.result(), f"read in {time.monotonic() - began:.1f} s"


def tell_wait(waiting: str, seconds: float) -> str:
    """Return what is shown while a read takes its time."""
    why = " The first question starts a reader, which takes some 10 s; the next ones are quick."
    return f"{waiting} {seconds:.0f} s.{why if seconds >= 2 else ''}"


def _begin_read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
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

    A slow call delays the next one; an error is shown, and the calls go on.

    Args:
        at_once: Whether the first call comes with the connection, or only after `seconds`.
    """

    async def tick() -> None:
        try:
            # A client that signed out, or whose session has ended, sees nothing more.
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


async def follow(
    operation: Operation,
    *,
    says: str,
    tell_result: Callable[[Mapping[str, Any]], str] | None = None,
) -> Operation:
    """Show how far an operation is until it ends, and return it as it ended.

    Args:
        says: What is being done, in a few words.
        tell_result: Returns what is shown at the end; "done" without it.
    """
    news = ui.notification(says, spinner=True, timeout=None, position="bottom-left")
    try:
        while not operation.is_over:
            await asyncio.sleep(_LOOK_EVERY_S)
            operation = get_context().operations.get(operation.id)
            news.message = f"{says}: {operation.progress}" if operation.progress else says
    finally:
        news.dismiss()
    if operation.error is not None:
        show_error(operation.error)
    elif tell_result is None:
        ui.notify(f"{says}: done", position="bottom-left", timeout=_DONE_MS)
    else:
        result = tell_result(operation.result or {})
        ui.notify(f"{says}: {result}", position="bottom-left", timeout=_RESULT_MS)
    return operation


def themed(options: dict[str, Any]) -> dict[str, Any]:
    """Return a chart's options with what they leave out: colours, grid, axes, tooltip."""
    defaults = {
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
    themed = {**defaults, **options}
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
