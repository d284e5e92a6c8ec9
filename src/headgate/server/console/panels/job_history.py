"""What happened to a job: its failures, its attempts and its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.server.console.parts.formats import NONE, format_bytes, format_ms
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note, render

_SHOWN = 10


class ExceptionsPanel:
    """Failures, newest first and each with its root cause first; then the attempts."""

    def __init__(self) -> None:
        self._failures = Live()
        Live(Markup("<h3>Attempts</h3>")).classes("hg-sub")
        self._attempts = Live().classes("hg-table-box")

    def show(self, exceptions: Exceptions) -> None:
        """Show what there is now."""
        self._failures.show(show_failures(exceptions))
        if exceptions.attempts:
            self._attempts.show_template("attempts", attempts=exceptions.attempts[:_SHOWN])
        else:
            self._attempts.show(note("None yet."))


class EventsPanel:
    """The newest events of a job, newest first."""

    def __init__(self) -> None:
        self._table = Live().classes("hg-table-box hg-tall").props("tabindex=0")

    def show(self, events: Events) -> None:
        """Show what there is now."""
        lines = [(event, describe_facts(event.facts)) for event in reversed(events.events)]
        if lines:
            self._table.show_template("events", events=lines)
        else:
            self._table.show(note("None yet."))


def show_failures(exceptions: Exceptions) -> Markup:
    """Return failures as markup: what caused them before what became of it."""
    shown = exceptions.failures[:_SHOWN]
    return render("failures", failures=shown, earlier=exceptions.total - len(shown))


def describe_facts(facts: Mapping[str, Any]) -> str:
    """Return what an event tells, in a line: sizes and times as people write them."""
    words = (_describe(name, value) for name, value in facts.items() if value not in (None, "", {}))
    return ", ".join(words) or NONE


def _describe(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.endswith("bytes"):
            return f"{words} {format_bytes(value)}"
        if name.endswith("_ms"):
            return f"{words.removesuffix(' ms')} {format_ms(value)}"
    return f"{words} {value}"
