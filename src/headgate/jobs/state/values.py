"""What is told of state: sizes, values, histories and rows; plain values that travel as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate._codec import Moment

UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOperator:
    """An operator that holds state.

    Attributes:
        kind: `enrich`, `window` or `dedupe`.
        variables: What the operator calls its state; Spark's own reader takes these names.
        keys: The columns of the key, in the order in which a key of several is written.
        key_types: Their types, as SQL names them; `?` where only a run can tell.
        rows: As counted when the batch was committed; markers of deleted rows count, too.
        bytes: What Spark says the state takes.
    """

    uid: str
    kind: str
    variables: tuple[str, ...]
    keys: tuple[str, ...]
    key_types: tuple[str, ...]
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOverview:
    """The operators of a job that hold state, as of one checkpoint, or now.

    Attributes:
        checkpoint: Its id, or `now`.
        batch: None before the first commit.
        moment: When that batch was committed, as far as that is known.
    """

    job: str
    checkpoint: str
    batch: int | None
    moment: Moment | None
    operators: tuple[StateOperator, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateValue:
    """What an operator holds, or held, under a key.

    Attributes:
        key: As the operator keeps it: a text, or a JSON array where it has several columns.
        checkpoint: Its id, or `now`.
        moment: When that checkpoint's batch was committed; of `now`, when it began.
        found: Whether there is a value.
        deleted: Whether a tombstone ended it; an operator remembers that.
        value: JSON values; None where there is none.
    """

    job: str
    uid: str
    key: str
    checkpoint: str
    moment: Moment
    found: bool
    deleted: bool
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A key's value at one checkpoint, and what had changed since the one before.

    Attributes:
        change: `first`, `same`, `changed`, `deleted`, `absent` or `appeared`, as seen from the last
            one that could be read; or `unreadable`.
        differences: By field, the value before and the value now; only where it changed.
        problem: Why it is unreadable; else empty.
    """

    checkpoint: str
    moment: Moment
    value: Any
    change: str
    differences: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateHistory:
    """A key over all retained checkpoints, and now.

    Attributes:
        entries: Oldest first; the last one is `now`.
        left_off: How many checkpoints before the first entry were not looked at.
    """

    job: str
    uid: str
    key: str
    entries: tuple[HistoryEntry, ...]
    left_off: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRows:
    """Rows of state, or of a query over it.

    Attributes:
        columns: Their names; two may be the same.
        types: As SQL names them.
        rows: JSON values, in the order of the columns.
        cut: Whether there are more rows than were asked for.
    """

    job: str
    checkpoint: str
    moment: Moment
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """What was found under a key at one checkpoint, before it is compared.

    Attributes:
        problem: Why nothing could be read there; else empty.
    """

    checkpoint: str
    moment: Moment
    deleted: bool
    value: Any
    problem: str = ""


def compare(found: list[Held]) -> tuple[HistoryEntry, ...]:
    """Return a key's history out of what it held, oldest first."""
    entries: list[HistoryEntry] = []
    before: Held | None = None
    for each in found:
        if each.problem:
            # Nobody knows what was there: the next one is compared with the one before.
            entries.append(
                HistoryEntry(
                    checkpoint=each.checkpoint,
                    moment=each.moment,
                    value=None,
                    change=UNREADABLE,
                    problem=each.problem,
                )
            )
            continue
        entries.append(
            HistoryEntry(
                checkpoint=each.checkpoint,
                moment=each.moment,
                value=each.value,
                change=_change(before, each),
                differences=_differences(before, each),
            )
        )
        before = each
    return tuple(entries)


def _change(before: Held | None, now: Held) -> str:
    had = before is not None and before.value is not None
    if now.value is None:
        return "deleted" if had else "absent"
    if before is None:
        return "first"
    if not had:
        return "appeared"
    return "same" if before.value == now.value else "changed"


def _differences(before: Held | None, now: Held) -> dict[str, tuple[Any, Any]]:
    if before is None or before.value is None or now.value is None:
        return {}
    found: dict[str, tuple[Any, Any]] = {}
    _collect(before.value, now.value, "", found)
    return found


def _collect(old: Any, new: Any, path: str, into: dict[str, tuple[Any, Any]]) -> None:
    """Add what differs, field by field; windows are compared by when they begin."""
    if old == new:
        return
    old_parts, new_parts = _parts(old), _parts(new)
    if old_parts is None or new_parts is None:
        into[path or "value"] = (old, new)
        return
    nested = isinstance(old, list)
    for name in dict.fromkeys((*old_parts, *new_parts)):
        inner = f"{path}[{name}]" if nested else f"{path}.{name}" if path else name
        _collect(old_parts.get(name), new_parts.get(name), inner, into)


def _parts(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(_is_window(each) for each in value):
        return {each["window_start"]: each for each in value}
    return None


def _is_window(value: Any) -> bool:
    return isinstance(value, dict) and "window_start" in value
