"""Whether there is anything to show on the page of a job."""

from __future__ import annotations

from headgate.server.console.parts import widgets
from headgate.server.context import ServerContext, get_context


async def is_known(job: str) -> bool:
    """Tell whether there is a job of this name; where there is none, the page says so."""
    return await widgets.ask(_look, get_context(), job) is not None


def _look(context: ServerContext, job: str) -> str:
    context.check_shown(job)
    return context.home.job(job).state
