"""State as the console shows it: operators by size, a key and its versions; only markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.jobs.service import (
    HistoryEntry,
    StateHistory,
    StateOperator,
    StateOverview,
    StateRows,
    StateValue,
)
from headgate.server.console.parts.formats import format_bytes, format_count, format_moment
from headgate.server.console.parts.markup import Html, element, join
from headgate.server.console.texts.json_text import cut, show_differences, show_json, write_line

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
    found: list[Version] = []
    for each in entries:
        last = found[-1] if found else None
        gone = last is not None and last.entry.change in ("absent", "deleted")
        known = last is not None and last.entry.change != "unreadable"
        stays = (each.change == "same" and known) or (each.change == "absent" and gone)
        if last is not None and stays:
            found[-1] = Version(last.entry, each, last.count + 1)
        else:
            found.append(Version(each, each, 1))
    return found


def show_operators(overview: StateOverview, chosen: str | None) -> Html:
    """Return the operators to choose from, each with its size beside the largest one's."""
    largest = max((each.bytes for each in overview.operators), default=0)
    return element(
        "ul",
        *(_operator(each, largest, chosen) for each in overview.operators),
        class_="hg-choices",
    )


def show_value(value: StateValue) -> Html:
    """Return what a key's value was at a checkpoint, or now."""
    of = element(
        "p",
        element("strong", f"{value.uid} [{value.key}]"),
        f" at {value.checkpoint}, {format_moment(value.moment)} UTC",
        class_="hg-quiet",
    )
    if not value.found:
        says = (
            "A tombstone deleted what was under this key."
            if value.deleted
            else "There is nothing under this key."
        )
        return join(of, element("p", says, class_="hg-empty"))
    return join(of, show_json(value.value))


def show_history(history: StateHistory) -> Html:
    """Return a key's versions, oldest first: what changed, from which checkpoint on."""
    versions = fold(history.entries)
    if not versions:
        return element("p", "No checkpoint is retained yet.", class_="hg-empty")
    older = f"{format_count(history.left_off)} older checkpoints are left off."
    left_off = element("p", older, class_="hg-quiet") if history.left_off else Html()
    shown = element(
        "ol",
        *(_version(each, before=index > 0) for index, each in enumerate(versions)),
        class_="hg-versions",
    )
    return join(left_off, shown)


def show_rows(rows: StateRows) -> Html:
    """Return rows as a table that scrolls in itself."""
    if not rows.rows:
        return element("p", "No rows.", class_="hg-empty")
    numbers = [any(_is_number(row[place]) for row in rows.rows) for place in _places(rows)]
    heads = (
        element("th", name, scope="col", class_="hg-num" if number else None)
        for name, number in zip(rows.columns, numbers, strict=True)
    )
    lines = (
        element("tr", *map(_cell, rows.columns, row), data_key=str(number))
        for number, row in enumerate(rows.rows)
    )
    return element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", *lines),
        class_="hg-table hg-grid",
    )


def _operator(operator: StateOperator, largest: int, chosen: str | None) -> Html:
    share = operator.bytes / largest if largest else 0.0
    keys = ", ".join(f"{name} {kind}" for name, kind in _keys(operator))
    return element(
        "li",
        element(
            "button",
            element("strong", operator.uid),
            element("span", format_bytes(operator.bytes), class_="hg-num"),
            element("small", f"{operator.kind}, by {keys}" if keys else operator.kind),
            element("small", f"{format_count(operator.rows)} rows", class_="hg-num"),
            element(
                "span",
                element("span", style=f"width:{share * 100:.1f}%"),
                class_="hg-bar",
                aria_hidden="true",
            ),
            type="button",
            class_="hg-choice",
            data_act="operator",
            data_value=operator.uid,
            aria_pressed="true" if operator.uid == chosen else "false",
        ),
        data_key=operator.uid,
    )


def tell_key(operator: StateOperator) -> str:
    """Return how a key of an operator is typed."""
    named = ", ".join(f"{name} ({kind.lower()})" for name, kind in _keys(operator))
    if len(operator.keys) < 2:
        return f"the key is {named}" if named else ""
    return f"the key is a JSON array of {named}"


def _keys(operator: StateOperator) -> list[tuple[str, str]]:
    return list(zip(operator.keys, operator.key_types, strict=True))


def _version(version: Version, *, before: bool) -> Html:
    entry, until = version.entry, version.until
    span = entry.checkpoint if version.count == 1 else f"{entry.checkpoint} to {until.checkpoint}"
    word = _WORDS.get(entry.change, entry.change)
    same = version.count - 1
    more = f", then unchanged over {format_count(same)} more" if same else ""
    if entry.change == "absent":
        more = f" over {format_count(version.count)} checkpoints" if same else ""
    return element(
        "li",
        element(
            "div",
            element("strong", span),
            element("span", _span(entry.moment, until.moment)),
            element("span", f"{word}{more}"),
            class_="hg-version-head",
        ),
        _content(entry, before=before),
        class_=entry.change,
        data_key=entry.checkpoint,
    )


def _content(entry: HistoryEntry, *, before: bool) -> Html | None:
    match entry.change:
        case "changed" if entry.differences:
            return show_differences(entry.differences)
        case "first" | "appeared" | "changed":
            return show_json(entry.value)
        case "same" if not before:
            return show_json(entry.value)
        case "unreadable":
            return element("p", entry.problem, class_="hg-quiet")
    return None


def _span(first: datetime, last: datetime) -> str:
    if first == last:
        return f"{format_moment(first)} UTC"
    told = format_moment(last)
    same_day = first.date() == last.date()
    return f"{format_moment(first)} to {told.split(' ')[-1] if same_day else told} UTC"


def _places(rows: StateRows) -> range:
    return range(len(rows.columns))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(column: str, value: Any) -> Html:
    told = "" if value is None else value if isinstance(value, str) else write_line(value)
    long = told if len(told) > _LONGEST_CELL else None
    return element(
        "td",
        cut(told, _LONGEST_CELL),
        title=None if long is None else cut(long, 4_000),
        data_label=column,
        class_="hg-num" if _is_number(value) else None,
    )


def tell_waiting(seconds: float, *, what: str) -> str:
    """Return what is said while the reader works."""
    told = f"{what} {seconds:.0f} s."
    if seconds < 2:
        return told
    return (
        f"{told} The first question starts a reader, which takes some 10 s; the next ones are "
        "quick."
    )


def tell_took(seconds: float, count: int | None = None) -> str:
    """Return what is said once the reader has answered."""
    rows = "" if count is None else f"{format_count(count)} {'row' if count == 1 else 'rows'}, "
    return f"{rows}answered in {seconds:.1f} s"


def find_operator(operators: Sequence[StateOperator], wanted: str | None) -> str | None:
    """Return the operator to show: the one that is wanted, else that with most rows."""
    uids = [each.uid for each in operators]
    if wanted in uids:
        return wanted
    return max(operators, key=lambda each: each.rows).uid if operators else None
