"""Formats of the user at work: functions of rows that call a format's `decode` or `encode`.

Pickles name this module, so it stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# The column with the bytes of a record, and that of its message key.
RECORD = "record"
KEY = "key"


@dataclass(frozen=True, slots=True)
class Decoding:
    """Makes rows of the bytes of a record.

    Attributes:
        func: The format's `decode`, under the name that partial functions use: the files of the
            user are found by it.
        meta: The column with the record's metadata; None without one.
        many: Whether a record may give several rows, or none.
    """

    func: Callable[[bytes], Any]
    meta: str | None
    many: bool

    def __call__(self, row: Any) -> Any:
        made = self.func(row[RECORD])
        rows = [made] if _is_row(made) else _listed(made)
        if self.meta is not None:
            rows = [{**_as_dict(each), self.meta: row[self.meta]} for each in rows]
        return rows if self.many else rows[0]


@dataclass(frozen=True, slots=True)
class Encoding:
    """Makes a record of a row.

    Attributes:
        func: The format's `encode`; see `Decoding`.
        key: The names on the path to the column of message keys; empty without keys.
    """

    func: Callable[[Any], bytes]
    key: tuple[str, ...]

    def __call__(self, row: Any) -> dict[str, Any]:
        record = {RECORD: self.func(row)}
        return {**record, KEY: _step(row, self.key)} if self.key else record


def _is_row(made: Any) -> bool:
    is_dataclass = dataclasses.is_dataclass(made) and not isinstance(made, type)
    return is_dataclass or isinstance(made, Mapping) or hasattr(made, "_fields")


def _listed(made: Any) -> list[Any]:
    if isinstance(made, Iterable) and not isinstance(made, str | bytes):
        return list(made)
    raise TypeError(
        f"decode must return a row or several, got {type(made).__name__}; [] passes over a record"
    )


def _as_dict(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    names = getattr(row, "_fields", None) or [each.name for each in dataclasses.fields(row)]
    return {name: getattr(row, name) for name in names}


def _step(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if value is None:
            return None
        is_dataclass = dataclasses.is_dataclass(value)
        value = getattr(value, name) if is_dataclass else value[name]
    return value
