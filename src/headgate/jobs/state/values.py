"""State as values: questions on it, sizes, values of keys, histories and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headgate._codec import JsonValue, Moment, left_out_while

UNREADABLE = "unreadable"

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuestion:
    """A question on the state of a job.

    Attributes:
        ask: The method of `State` that asks it, which describes the other fields.
    """

    ask: str
    job: str
    uid: str | None = None
    key: str | None = field(default=None, metadata=left_out_while(None))
    sql: str | None = field(default=None, metadata=left_out_while(None))
    at: str | None = None
    limit: int | None = field(default=None, metadata=left_out_while(None))


class State(ABC):
    """The state of the jobs of one place; the first question may take some seconds.

    `at` is None for the last committed batch, or `chk-17`, a savepoint's name, or `latest`.

    Every method raises JOB_NOT_FOUND, NOTHING_COMMITTED, CHECKPOINT_NOT_FOUND,
    STATE_OPERATOR_NOT_FOUND, STATE_FORMAT_UNSUPPORTED, STATE_UNREADABLE or STATE_READER_….
    """

    def look_up(self, job: str, uid: str, key: str, *, at: str | None = None) -> StateValue:
        """Return the value of a key in an operator's state.

        Args:
            key: As a user types it: `42`, `abc`, `"abc"`, or of several columns
                `{"a": 1, "b": 2}` or `[1, 2]`; another one raises STATE_KEY_MISMATCH.
        """
        question = StateQuestion(ask="look_up", job=job, uid=uid, key=key, at=at)
        return self._ask(StateValue, question)

    def history(self, job: str, uid: str, key: str) -> StateHistory:
        """Return the value of a key at every retained checkpoint, and now."""
        question = StateQuestion(ask="history", job=job, uid=uid, key=key)
        return self._ask(StateHistory, question)

    def first_rows(
        self, job: str, uid: str, *, at: str | None = None, limit: int = 50
    ) -> StateRows:
        """Return some rows of an operator's state; Spark chooses which."""
        question = StateQuestion(ask="first_rows", job=job, uid=uid, at=at, limit=limit)
        return self._ask(StateRows, question)

    def query(
        self,
        job: str,
        sql: str,
        *,
        uid: str | None = None,
        at: str | None = None,
        limit: int = 1000,
    ) -> StateRows:
        """Return the first rows of a query over state.

        Args:
            sql: One query. The view `state` is the state of the operator `uid`, or of the only
                operator; each operator is also a view of its own, with underscores for dashes in
                its uid. Spark's refusal is STATE_SQL_REFUSED; a query that exceeds
                a limit ends with STATE_SQL_TOO_LONG or STATE_ANSWER_TOO_LARGE.
        """
        question = StateQuestion(ask="query", job=job, sql=sql, uid=uid, at=at, limit=limit)
        return self._ask(StateRows, question)

    @abstractmethod
    def _ask(self, kind: type[_Value], question: StateQuestion) -> _Value: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOperator:
    """An operator that holds state.

    Attributes:
        kind: `enrich`, `window`, `dedupe`, `join`, `label` or `process`.
        variables: The names of its state variables, as Spark's own reader takes them.
        keys: The columns of the key, in their order.
        key_types: Their SQL types; `?` if only a run knows the type.
        rows: Rows after the batch, with the markers of deleted rows.
        bytes: The size that Spark reports.
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
        moment: When that batch was committed, if known.
    """

    job: str
    checkpoint: str
    batch: int | None
    moment: Moment | None
    operators: tuple[StateOperator, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateValue:
    """The value of a key in an operator's state.

    Attributes:
        key: As the operator stores it: a text, or a JSON array for several columns.
        checkpoint: Its id, or `now`.
        moment: When that checkpoint's batch was committed; of `now`, when it began.
        found: Whether there is a value.
        deleted: Whether a tombstone deleted it.
        value: JSON values; None if there is no value.
    """

    job: str
    uid: str
    key: str
    checkpoint: str
    moment: Moment
    found: bool
    deleted: bool
    value: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A key's value at one checkpoint, and its change since the checkpoint before.

    Attributes:
        change: `first`, `same`, `changed`, `deleted`, `absent` or `appeared`, compared with the
            last readable checkpoint; or `unreadable`.
        differences: The old and the new value of each changed field.
        problem: Why it is unreadable; otherwise empty.
    """

    checkpoint: str
    moment: Moment
    value: JsonValue
    change: str
    differences: Mapping[str, tuple[JsonValue, JsonValue]] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateHistory:
    """A key over all retained checkpoints, and now.

    Attributes:
        entries: Oldest first; the last one is `now`.
        left_off: The number of older checkpoints that were not read.
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
        types: Their SQL types.
        rows: JSON values, in the order of the columns.
        cut: Whether there are more rows.
    """

    job: str
    checkpoint: str
    moment: Moment
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """The value of a key at one checkpoint, before it is compared; `problem` if unreadable."""

    checkpoint: str
    moment: Moment
    value: Any = None
    problem: str = ""


def compare(values: list[Held]) -> tuple[HistoryEntry, ...]:
    """Return the history of a key with these values, oldest first."""
    entries: list[HistoryEntry] = []
    before: Held | None = None
    for held in values:
        entries.append(
            HistoryEntry(
                checkpoint=held.checkpoint,
                moment=held.moment,
                value=held.value,
                change=UNREADABLE if held.problem else _change(before, held.value),
                differences={} if held.problem else _differences(before, held.value),
                problem=held.problem,
            )
        )
        # The next value is compared with the last one that could be read.
        before = before if held.problem else held
    return tuple(entries)


def _change(before: Held | None, value: Any) -> str:
    if value is None:
        return "absent" if before is None or before.value is None else "deleted"
    if before is None:
        return "first"
    if before.value is None:
        return "appeared"
    return "same" if before.value == value else "changed"


def _differences(before: Held | None, value: Any) -> dict[str, tuple[Any, Any]]:
    differences: dict[str, tuple[Any, Any]] = {}
    if before is not None and before.value is not None and value is not None:
        _collect(before.value, value, "", differences)
    return differences


def _collect(old: Any, new: Any, path: str, into: dict[str, tuple[Any, Any]]) -> None:
    """Add the differences, field by field; windows are matched by their start."""
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
    windows = isinstance(value, list) and all(
        isinstance(part, dict) and "window_start" in part for part in value
    )
    return {part["window_start"]: part for part in value} if windows and value else None
