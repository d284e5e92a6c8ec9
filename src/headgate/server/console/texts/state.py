"""State as the console shows it: operators by size, a key and its versions; only markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    """A value over one or more checkpoints in which it did not change: the first and the last."""

    entry: HistoryEntry
    until: HistoryEntry
    count: int = 1

    @property
    def words(self) -> str:
        """What happened to the value."""
        word, more = _WORDS.get(self.entry.change, self.entry.change), format_count(self.count - 1)
        if self.count == 1:
            return word
        if self.entry.change == "absent":
            return f"{word} over {format_count(self.count)} checkpoints"
        return f"{word}, then unchanged over {more} more"

    @property
    def moments(self) -> str:
        """From when to when."""
        first, last = self.entry.moment, self.until.moment
        if first == last:
            return f"{format_moment(first)} UTC"
        end = format_moment(last)
        same_day = first.date() == last.date()
        return f"{format_moment(first)} to {end.split(' ')[-1] if same_day else end} UTC"


def fold(entries: Iterable[HistoryEntry]) -> list[Version]:
    """Return a history in which equal neighbours are one version."""
    versions: list[Version] = []
    for entry in entries:
        last = versions[-1] if versions else None
        gone = last is not None and last.entry.change in ("absent", "deleted")
        known = last is not None and last.entry.change != "unreadable"
        stays = (entry.change == "same" and known) or (entry.change == "absent" and gone)
        if last is not None and stays:
            versions[-1] = Version(last.entry, entry, last.count + 1)
        else:
            versions.append(Version(entry, entry))
    return versions


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
    shown = [(version, _content(version.entry, first=not n)) for n, version in enumerate(versions)]
    return render("state_history", versions=shown, left_off=history.left_off)


def tell_rows(rows: StateRows, took: str) -> str:
    """Return how many rows are shown, of which state, and whether there are more.

    Args:
        took: How long they took, in words.
    """
    count = f"{format_count(len(rows.rows))} {'row' if len(rows.rows) == 1 else 'rows'}"
    of = "the present state" if rows.checkpoint == "now" else rows.checkpoint
    shown = f"The first {count}" if rows.cut else count
    return f"{shown} of {of}, {took}.{' There are more rows.' if rows.cut else ''}"


def show_rows(rows: StateRows) -> Markup:
    """Return rows as a table that scrolls in itself."""
    if not rows.rows:
        return note("No rows.")
    heads = [
        (name, any(map(_is_number, values)))
        for name, values in zip(rows.columns, zip(*rows.rows, strict=True), strict=True)
    ]
    cells = [
        [
            (name, _text(value), _is_number(value))
            for name, value in zip(rows.columns, row, strict=True)
        ]
        for row in rows.rows
    ]
    return render("state_rows", heads=heads, rows=cells, longest=_LONGEST_CELL)


def tell_key(operator: StateOperator) -> str:
    """Return how a key of an operator is typed."""
    named = ", ".join(f"{name} ({kind.lower()})" for name, kind in _keys(operator))
    if len(operator.keys) < 2:
        return f"the key is {named}" if named else ""
    return f"the key is a JSON array of {named}"


def _keys(operator: StateOperator) -> list[tuple[str, str]]:
    return list(zip(operator.keys, operator.key_types, strict=True))


def _content(entry: HistoryEntry, *, first: bool) -> Markup:
    match entry.change:
        case "changed" if entry.differences:
            return show_differences(entry.differences)
        case "first" | "appeared" | "changed":
            return show_json(entry.value)
        case "same" if first:
            return show_json(entry.value)
        case "unreadable":
            return Markup('<p class="hg-quiet">{}</p>').format(entry.problem)
    return Markup()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else write_line(value)


def find_operator(operators: Sequence[StateOperator], wanted: str | None) -> str | None:
    """Return the uid of the operator to show: the wanted one, or the one with most rows."""
    uids = [operator.uid for operator in operators]
    if wanted in uids:
        return wanted
    return max(operators, key=lambda operator: operator.rows).uid if operators else None
