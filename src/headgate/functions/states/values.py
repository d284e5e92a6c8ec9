"""State of one value for each key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from headgate.functions.calling.messages import array_of
from headgate.functions.keyed import Value
from headgate.functions.processes.scope import Scope
from headgate.functions.python_types import PythonType
from headgate.functions.states.columns import reader
from headgate.functions.states.plain import compiled, from_plain, plain_test, to_plain
from headgate.functions.stored import StoredState

_ABSENT: Any = type("Absent", (), {"__repr__": lambda _: "absent"})()
_LONG = pa.int64()


class ValueState(Value[Any]):
    """The values of all keys of a call."""

    def __init__(self, scope: Scope, stored: StoredState, kind: pa.DataType) -> None:
        self.name = stored.name
        self._scope = scope
        self._ttl = stored.ttl
        self.has_ttl = stored.ttl is not None
        self._kind = kind
        self._type = kind.field(0).type
        self._plain = to_plain(stored.value, stored.name)
        self._make = from_plain(stored.value)
        self._read = reader(self._type)
        # If the type does not allow None, None means that the value is not set.
        self._absent = _ABSENT if stored.value.nullable else None
        # The same lists in all calls: the functions below hold them.
        self._values: list[Any] = []
        self._expires: list[Any] = []
        self.get = self._getter()  # type: ignore[method-assign]
        self.set = self._setter(stored.value)  # type: ignore[method-assign]

    def _getter(self) -> Callable[..., Any]:
        lines = [
            "def get(default=None):",
            " value = values[scope.at]",
            " if value is absent: return default",
            " if expires[scope.at] <= scope.now_ms: return default"
            if self._ttl is not None
            else "",
            " return value" if self._make is None else " return make(value)",
        ]
        return compiled(lines, self._names(), "get")

    def _setter(self, type_: PythonType) -> Callable[..., Any]:
        lines = [
            "def set(value):",
            f" if not ({plain_test(type_, 'value') or False}): value = plain(value)",
            " at = scope.at",
            " if scope.journal is not None: note(at)",
            " values[at] = value",
            f" expires[at] = scope.now_ms + {self._ttl}" if self._ttl is not None else "",
            " scope.changed[at] = 1",
        ]
        return compiled(lines, {**self._names(), "date": date}, "set")

    def _names(self) -> dict[str, Any]:
        return {
            "values": self._values,
            "expires": self._expires,
            "scope": self._scope,
            "absent": self._absent,
            "make": self._make,
            "plain": self._plain,
            "note": self._note,
        }

    def clear(self) -> None:
        at = self._scope.at
        if self._values[at] is self._absent:
            return
        if self._scope.journal is not None:
            self._note(at)
        self._values[at] = self._absent
        self._scope.changed[at] = 1

    def load(self, column: pa.Array) -> None:
        """Take the values of a call."""
        count = len(column)
        if column.null_count == count:
            self._values[:] = [self._absent] * count
            self._expires[:] = [0] * count
            return
        values, expires = column.flatten()
        self._values[:] = self._read(values)
        if self._absent is not None and column.null_count:
            present = column.is_valid().to_pylist()
            self._values[:] = [
                value if here else self._absent
                for value, here in zip(self._values, present, strict=True)
            ]
        if self._ttl is not None:
            # A value that was stored without a time to live is as good as new.
            new = self._scope.now_ms + self._ttl
            self._expires[:] = [new if time is None else time for time in expires.to_pylist()]

    def purge(self, at: int) -> None:
        """Remove the value of a key if it has expired."""
        if self._ttl is not None and self._expires[at] <= self._scope.now_ms:
            self._values[at] = self._absent

    def earliest(self, at: int) -> int | None:
        """Return when the value of a key is to be cleaned up, or None for never."""
        if self._ttl is None or self._values[at] is self._absent:
            return None
        expires: int = self._expires[at]
        return expires + self._ttl // 4

    def column(self, places: Sequence[int]) -> pa.Array:
        """Return what is stored of the keys at some places."""
        absent = self._absent
        values = [self._values[at] for at in places]
        gone = [value is absent for value in values] if absent in values else None
        if gone is not None and absent is not None:
            values = [None if value is absent else value for value in values]
        if self._ttl is None:
            expires = pa.nulls(len(places), _LONG)
        else:
            expires = pa.array([self._expires[at] for at in places], _LONG)
        return pa.StructArray.from_arrays(
            [array_of(values, self._type, f"{self.name!r} of the keys of one call"), expires],
            fields=list(self._kind),
            mask=None if gone is None else pa.array(gone),
        )

    def _note(self, at: int) -> None:
        undo = self._restore, at, self._values[at], self._expires[at] if self._ttl else 0
        assert self._scope.journal is not None
        self._scope.journal.append(undo)

    def _restore(self, at: int, value: Any, expires: Any) -> None:
        self._values[at] = value
        if self._ttl is not None:
            self._expires[at] = expires
