"""Asking before something is done, and doing it: the way of every button that changes something."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup
from nicegui import ui

from headgate.server.console.parts import widgets
from headgate.server.console.parts.live import Live
from headgate.server.console.texts.questions import Choice, Question
from headgate.server.context import get_context
from headgate.server.operations import Operation
from headgate.server.signed_in import current_access

VIEW_ONLY = "Your role is view: you may look at everything, and change nothing."


async def show_dialog(
    title: str, build: Callable[[], object], *, action: str, kind: str = "main"
) -> bool:
    """Show a dialog, and return whether the user agreed.

    Args:
        build: Builds its content.
        action: The label of the button that agrees; without it, the user can only go back.
        kind: The kind of that button.
    """
    with ui.dialog() as dialog, ui.card().classes("hg-dialog"):
        Live(Markup("<h2>{}</h2>").format(title))
        build()
        with ui.element("div").classes("hg-actions"):
            widgets.button("Back", lambda: dialog.submit(False)).props("autofocus")
            if action:
                widgets.button(action, lambda: dialog.submit(True), kind=kind)
    dialog.props["aria-label"] = title
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
    form = _Form(question)
    kind = "danger" if question.dangerous else "main"
    if not await show_dialog(question.title, form.build, action=question.action, kind=kind):
        return None
    begun = await widgets.ask(
        action, get_context(), current_access(), *args, **options, **form.chosen
    )
    says = question.doing or question.action
    return begun and await widgets.follow(begun, says=says, tell_result=question.tell_result)


class _Form:
    """The sentences of a question, and its checkbox."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._box: ui.checkbox | None = None

    def build(self) -> None:
        """Build the content of the dialog."""
        self._text = Live().classes("hg-dialog-text").props('aria-live="polite"')
        choice = self._question.choice
        if choice is not None:
            self._box = ui.checkbox(choice.label, on_change=self._show).props("dense")
        self._show()

    @property
    def chosen(self) -> dict[str, bool]:
        """The option of the action that the user ticked, if any."""
        ticked = self._ticked
        return {} if ticked is None else {ticked.option: True}

    @property
    def _ticked(self) -> Choice | None:
        return self._question.choice if self._box is not None and self._box.value else None

    def _show(self) -> None:
        says = (self._ticked or self._question).says
        self._text.show(Markup().join(Markup("<p>{}</p>").format(line) for line in says))
