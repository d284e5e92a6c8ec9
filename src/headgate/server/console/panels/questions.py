"""Asking before something is done, and doing it: the way of every button that changes something."""

from __future__ import annotations

from collections.abc import Callable

from headgate.server.console.parts import widgets
from headgate.server.console.texts.checkpoints import Question
from headgate.server.context import get_context
from headgate.server.operations import Operation
from headgate.server.signed_in import current_access

VIEW_ONLY = "Your role is view: you may look at everything, and change nothing."


async def agreed(question: Question) -> bool:
    """Ask, and return whether it was agreed to."""
    return await widgets.confirm(
        question.title, question.says, action=question.action, dangerous=question.dangerous
    )


async def ask_and_do(
    question: Question, action: Callable[..., Operation], *args: object, **options: object
) -> Operation | None:
    """Ask, do what was agreed to, and show how it goes.

    Args:
        action: One of `actions.verbs`; it is called with the context, whoever is asked, and the
            arguments.

    Returns:
        The operation as it ended; None if it was not agreed to, or was refused.
    """
    if not await agreed(question):
        return None
    begun = await widgets.ask(action, get_context(), current_access(), *args, **options)
    return None if begun is None else await widgets.follow(begun, says=question.action)
