"""The lag of a source, in the units of its log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headgate._units import format_count, format_size


def lag_text(size: int | None, records: int | None, age: timedelta | None) -> str:
    """Return a lag as text: bytes, records and the age of the oldest record."""
    parts = []
    if records is not None:
        parts.append(f"{format_count(records)} records")
    if size is not None and (size or records is None):
        parts.append(format_size(size))
    if age is not None and (size or records):
        parts.append(f"{age.total_seconds():,.1f} s")
    return ", ".join(parts) or "-"


def source_lags(status: Mapping[str, Any]) -> dict[str, str]:
    """Return the lag of each source in a job's status."""
    sizes, records = status.get("lag_bytes") or {}, status.get("lag_records") or {}
    ages = status.get("lag_s") or {}
    return {
        name: lag_text(
            sizes.get(name),
            records.get(name),
            timedelta(seconds=ages[name]) if name in ages else None,
        )
        for name in sorted({**sizes, **records})
    }
