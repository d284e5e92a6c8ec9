"""Numbers, moments, JSON and addresses as the console writes them; a dash for what is missing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from headgate._units import format_size

NONE = "–"
_STEPS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def format_count(count: float | None) -> str:
    """Return a count in full, its thousands apart: `1,234`."""
    return NONE if count is None else f"{round(count):,}"


def format_short(count: float | None) -> str:
    """Return a count in at most five characters: `950`, `12.3k`, `4.56M`."""
    if count is None:
        return NONE
    for size, unit in _STEPS:
        # Half a step early, so that 999,950 is 1M and never 1000k.
        if abs(count) >= size * 0.9995:
            value = count / size
            digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
            return f"{value:.{digits}f}{unit}"
    if count == int(count) or abs(count) >= 100:
        return str(round(count))
    return f"{count:.1f}"


def format_rate(per_s: float | None) -> str:
    """Return a rate: `12.3k/s`."""
    return NONE if per_s is None else f"{format_short(per_s)}/s"


def format_bytes(size: float | None) -> str:
    """Return a size: `1.5 MiB`."""
    if size is None:
        return NONE
    text = format_size(round(size))
    split = next(at for at, character in enumerate(text) if character.isalpha())
    return f"{text[:split]} {text[split:]}"


def format_backlog(
    records: int | None, size: int | None, age: timedelta | float | None, *, unit: str = ""
) -> str:
    """Return what is left to read, records, bytes or both, and its age: `3 + 2 KiB, 1m 30s old`."""
    left = [
        *([f"{format_short(records)}{unit}"] if records is not None else []),
        *([format_bytes(size)] if size is not None else []),
    ]
    return (" + ".join(left) + (f", {format_duration(age)} old" if age else "")) if left else NONE


def format_ms(ms: float | None) -> str:
    """Return a short time that was measured in milliseconds: `12 ms`, `3.4 s`, `2m 5s`."""
    if ms is None:
        return NONE
    if ms < 1_000:
        return f"{round(ms)} ms"
    if ms < 59_950:
        return f"{ms / 1_000:.1f} s"
    return format_duration(timedelta(milliseconds=ms))


def format_duration(duration: timedelta | float | None) -> str:
    """Return a duration, or seconds, in its two largest units: `3d 4h`, `2m 5s`, `12s`."""
    if duration is None:
        return NONE
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    left = max(0, round(seconds))
    parts: list[tuple[int, str]] = []
    for size, unit in _UNITS:
        whole, left = divmod(left, size)
        if parts or whole or unit == "s":
            parts.append((whole, unit))
        if len(parts) == 2:
            break
    return " ".join(f"{whole}{unit}" for whole, unit in parts if whole or len(parts) == 1)


def format_age(moment: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago a moment was, in its largest unit: `12s ago`, `3h ago`."""
    if moment is None:
        return NONE
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    size, unit = next((step for step in _UNITS if seconds >= step[0]), _UNITS[-1])
    return f"{seconds // size}{unit} ago"


def format_moment(moment: datetime | str | None) -> str:
    """Return a moment in UTC to the second: `2026-11-16 04:38:09`."""
    if not moment:
        return NONE
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def format_share(share: float | None) -> str:
    """Return a share of 1 in percent: `42 %`."""
    return NONE if share is None else f"{round(100 * share)} %"


def write_json(value: Any) -> str:
    """Return a value as JSON on several lines; text outside ASCII stays as it is."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def write_line(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def pretty(text: str) -> str:
    """Return JSON text on several lines, and any other text unchanged."""
    try:
        return write_json(json.loads(text))
    except ValueError:
        return text


def cut(text: str, most: int) -> str:
    """Return text of at most so many characters; what was cut ends with three dots."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def job_path(job: str, tab: str = "overview") -> str:
    """Return where a page of a job is."""
    return f"/jobs/{quote(job, safe='')}" + ("" if tab == "overview" else f"/{tab}")
