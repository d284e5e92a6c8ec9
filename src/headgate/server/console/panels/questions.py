"""Asking before something is done, and doing it: the way of every button that changes something."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup
from nicegui import ui

from headgate.server.console.parts import widgets
from headgate.server.console.parts.live import Live
from headgate.server.console.texts.questions import Question
from headgate.server.context import get_context
from headgate.server.operations import Operation
from headgate.server.signed_in import current_access

VIEW_ONLY = "Your role is view: you may look at everything, and change nothing."


async def confirm(question: Question) -> bool:
    """Ask, and return whether the user agreed."""
    with ui.dialog() as dialog, ui.card().classes("hg-dialog"):
        Live(Markup("<h2>{}</h2>").format(question.title))
        text = Markup().join(Markup("<p>{}</p>").format(sentence) for sentence in question.says)
        Live(text).classes("hg-dialog-text")
        kind = "danger" if question.dangerous else "main"
        with ui.element("div").classes("hg-actions"):
            widgets.button("Back", lambda: dialog.submit(False)).props("autofocus")
            widgets.button(question.action, lambda: dialog.submit(True), kind=kind)
    dialog.props["aria-label"] = question.title
    try:
        return bool(await dialog)
    finally:
        if not dialog.is_deleted:
            dialog.delete()


async def ask_and_do(
    question: Question, action: Callable[..., Operation], *args: object, **options: object
) -> Operation | None:
    """Ask, do what the user agreed to, and show how it goes.

    Args:
        action: One of `actions.verbs`; called with the context, the access, and the arguments.

    Returns:
        The operation as it ended; None if the user did not agree, or it was refused.
    """
    if not await confirm(question):
        return None
    begun = await widgets.ask(action, get_context(), current_access(), *args, **options)
    return begun and await widgets.follow(begun, says=question.doing or question.action)
