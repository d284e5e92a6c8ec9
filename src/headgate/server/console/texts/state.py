"""State as the console shows it: operators by size, a key and its versions; only markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from headgate.jobs.state.values import (
    HistoryEntry,
    StateHistory,
    StateOperator,
    StateOverview,
    StateRows,
    StateValue,
)
from headgate.server.console.parts.formats import format_count, format_moment, write_line
from headgate.server.console.parts.templates import note, render
from headgate.server.console.texts.json_text import show_differences, show_json

_LONGEST_CELL = 200
_WORDS = {
    "first": "there",
    "appeared": "came",
    "changed": "changed",
    "deleted": "gone",
    "absent": "not there",
    "same": "unchanged",
    "unreadable": "not readable",
}


@dataclass(frozen=True, slots=True)
class Version:
    """A value over one or more checkpoints, in which it did not change.

    Attributes:
        entry: The first of them.
        until: The last of them; the same one where it is the only one.
        count: How many they are.
    """

    entry: HistoryEntry
    until: HistoryEntry
    count: int


def fold(entries: Iterable[HistoryEntry]) -> list[Version]:
    """Return a history with what stayed the same as one version."""
    versions: list[Version] = []
    for entry in entries:
        last = versions[-1] if versions else None
        gone = last is not None and last.entry.change in ("absent", "deleted")
        known = last is not None and last.entry.change != "unreadable"
        stays = (entry.change == "same" and known) or (entry.change == "absent" and gone)
        if last is not None and stays:
            versions[-1] = Version(last.entry, entry, last.count + 1)
        else:
            versions.append(Version(entry, entry, 1))
    return versions


@dataclass(frozen=True, slots=True)
class _Version:
    """A version as the page shows it."""

    checkpoint: str
    change: str
    checkpoints: str
    moments: str
    words: str
    content: Markup


@dataclass(frozen=True, slots=True)
class _Cell:
    column: str
    text: str
    is_number: bool


def show_operators(overview: StateOverview, chosen: str | None) -> Markup:
    """Return the operators to choose from, each with its size beside the largest one's."""
    operators = [
        (operator, ", ".join(f"{name} {kind}" for name, kind in _keys(operator)))
        for operator in overview.operators
    ]
    largest = max((operator.bytes for operator in overview.operators), default=0)
    return render("operators", operators=operators, largest=largest, chosen=chosen)


def show_value(value: StateValue) -> Markup:
    """Return what a key's value was at a checkpoint, or now."""
    return render("state_value", value=value, shown=show_json(value.value))


def show_history(history: StateHistory) -> Markup:
    """Return a key's versions, oldest first: what changed, from which checkpoint on."""
    versions = fold(history.entries)
    if not versions:
        return note("No checkpoint is retained yet.")
    shown = [_show_version(version, before=n > 0) for n, version in enumerate(versions)]
    return render("state_history", versions=shown, left_off=history.left_off)


def show_rows(rows: StateRows) -> Markup:
    """Return rows as a table that scrolls in itself."""
    if not rows.rows:
        return note("No rows.")
    columns = list(zip(*rows.rows, strict=True))
    return render(
        "state_rows",
        heads=[
            (name, any(map(_is_number, values)))
            for name, values in zip(rows.columns, columns, strict=True)
        ],
        rows=[list(map(_cell, rows.columns, row)) for row in rows.rows],
        longest=_LONGEST_CELL,
    )


def tell_key(operator: StateOperator) -> str:
    """Return how a key of an operator is typed."""
    named = ", ".join(f"{name} ({kind.lower()})" for name, kind in _keys(operator))
    if len(operator.keys) < 2:
        return f"the key is {named}" if named else ""
    return f"the key is a JSON array of {named}"


def _keys(operator: StateOperator) -> list[tuple[str, str]]:
    return list(zip(operator.keys, operator.key_types, strict=True))


def _show_version(version: Version, *, before: bool) -> _Version:
    entry, until = version.entry, version.until
    word = _WORDS.get(entry.change, entry.change)
    same = version.count - 1
    more = f", then unchanged over {format_count(same)} more" if same else ""
    if entry.change == "absent":
        more = f" over {format_count(version.count)} checkpoints" if same else ""
    return _Version(
        checkpoint=entry.checkpoint,
        change=entry.change,
        checkpoints=f"{entry.checkpoint} to {until.checkpoint}" if same else entry.checkpoint,
        moments=_span(entry.moment, until.moment),
        words=f"{word}{more}",
        content=_content(entry, before=before),
    )


def _content(entry: HistoryEntry, *, before: bool) -> Markup:
    match entry.change:
        case "changed" if entry.differences:
            return show_differences(entry.differences)
        case "first" | "appeared" | "changed":
            return show_json(entry.value)
        case "same" if not before:
            return show_json(entry.value)
        case "unreadable":
            return Markup('<p class="hg-quiet">{}</p>').format(entry.problem)
    return Markup()


def _span(first: datetime, last: datetime) -> str:
    if first == last:
        return f"{format_moment(first)} UTC"
    end = format_moment(last)
    same_day = first.date() == last.date()
    return f"{format_moment(first)} to {end.split(' ')[-1] if same_day else end} UTC"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(column: str, value: Any) -> _Cell:
    text = "" if value is None else value if isinstance(value, str) else write_line(value)
    return _Cell(column, text, _is_number(value))


def tell_waiting(seconds: float, *, what: str) -> str:
    """Return what is said while the reader works."""
    words = f"{what} {seconds:.0f} s."
    if seconds < 2:
        return words
    return (
        f"{words} The first question starts a reader, which takes some 10 s; the next ones are "
        "quick."
    )


def tell_took(seconds: float, count: int | None = None) -> str:
    """Return what is said once the reader has answered."""
    rows = "" if count is None else f"{format_count(count)} {'row' if count == 1 else 'rows'}, "
    return f"{rows}answered in {seconds:.1f} s"


def find_operator(operators: Sequence[StateOperator], wanted: str | None) -> str | None:
    """Return the operator to show: the one that is wanted, else that with most rows."""
    uids = [operator.uid for operator in operators]
    if wanted in uids:
        return wanted
    return max(operators, key=lambda operator: operator.rows).uid if operators else None
