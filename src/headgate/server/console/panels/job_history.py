"""What happened to a job: its failures, its attempts and its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.jobs.service import Events, Exceptions, JobAttempt, JobEvent, JobFailure
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import (
    NONE,
    format_age,
    format_bytes,
    format_duration,
    format_moment,
    format_ms,
)
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.markup import Html, element, join

_SHOWN = 10
_ATTEMPTS = (
    widgets.Column("number", "Attempt"),
    widgets.Column("started", "Started"),
    widgets.Column("lasted", "Lasted"),
    widgets.Column("state", "Ended in"),
    widgets.Column("reason", "Because"),
)
_EVENTS = (
    widgets.Column("at", "When (UTC)"),
    widgets.Column("kind", "Event"),
    widgets.Column("says", "What"),
)


class ExceptionsPanel:
    """Failures, newest first and each with its root cause first; then the attempts."""

    def __init__(self) -> None:
        self._failures = Live()
        Live(element("h3", "Attempts")).classes("hg-sub")
        self._attempts = widgets.table(
            _ATTEMPTS, (), key="key", label="Attempts", empty="None yet."
        )

    def show(self, found: Exceptions) -> None:
        """Show what there is now."""
        self._failures.show(failures_markup(found))
        self._attempts.set_rows([attempt_row(each) for each in found.attempts[:_SHOWN]])


class EventsPanel:
    """The newest events of a job, newest first."""

    def __init__(self) -> None:
        self._table = widgets.table(_EVENTS, (), key="key", label="Events", empty="None yet.")
        self._table.classes("hg-tall").props("tabindex=0")

    def show(self, found: Events) -> None:
        """Show what there is now."""
        self._table.set_rows([event_row(each) for each in reversed(found.events)])


def failures_markup(found: Exceptions) -> Html:
    """Return failures as markup: what caused them before what became of it."""
    if not found.failures:
        return element("p", "No attempt of this job has failed.", class_="hg-empty")
    more = found.total - len(found.failures[:_SHOWN])
    rest = element("p", f"and {more:,} earlier", class_="hg-quiet") if more > 0 else None
    return join(
        *(
            _failure(each, opened=number == 0)
            for number, each in enumerate(found.failures[:_SHOWN])
        ),
        rest,
    )


def attempt_row(attempt: JobAttempt) -> dict[str, str | Html]:
    """Return an attempt as a row."""
    return {
        "key": f"{attempt.number} {attempt.started.isoformat()}",
        "number": str(attempt.number),
        "started": format_moment(attempt.started),
        "lasted": format_duration(attempt.lasted),
        "state": widgets.badge(attempt.state),
        "reason": attempt.reason or NONE,
    }


def event_row(event: JobEvent) -> dict[str, str | Html]:
    """Return an event as a row."""
    return {
        "key": str(event.number),
        "at": element("span", format_moment(event.at), class_="hg-keep"),
        "kind": element("code", event.kind, class_="hg-keep"),
        "says": describe_facts(event.facts),
    }


def describe_facts(facts: Mapping[str, Any]) -> str:
    """Return what an event tells, in a line: sizes and times as people write them."""
    told = (_describe(name, value) for name, value in facts.items() if value not in (None, "", {}))
    return ", ".join(told) or NONE


def _describe(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.endswith("bytes"):
            return f"{words} {format_bytes(value)}"
        if name.endswith("_ms"):
            return f"{words.removesuffix(' ms')} {format_ms(value)}"
    return f"{words} {value}"


def _failure(failure: JobFailure, *, opened: bool) -> Html:
    cause = failure.root_cause or failure.message
    hint = (
        element("p", "Next: ", element("code", failure.hint), class_="hg-hint")
        if failure.hint
        else None
    )
    where = f" in {failure.where}" if failure.where else ""
    again = "it was tried again" if failure.retryable else "trying again would not help"
    return element(
        "details",
        element(
            "summary",
            element("strong", cause.splitlines()[0] if cause else failure.code),
            element(
                "span",
                f"attempt {failure.attempt}{where}, {format_moment(failure.at)} UTC "
                f"({format_age(failure.at)})",
                class_="hg-quiet",
            ),
        ),
        element("pre", cause) if "\n" in cause else None,
        element("p", element("code", failure.code, class_="hg-code"), " ", failure.message),
        hint,
        element("p", again, class_="hg-quiet"),
        open=opened,
        class_="hg-failure",
        data_key=f"{failure.attempt} {failure.at.isoformat()}",
    )
