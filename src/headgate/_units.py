"""Durations, sizes and counts: parsed from text, and formatted for people."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from headgate.errors import HeadgateError

_MICROSECONDS = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
}
_LARGEST_FIRST = list(_MICROSECONDS)
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|[dhms]))+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])")
_DURATION_HINT = "write a number and its unit, largest first: 500ms, 5s, 10m, 24h, 7d or 1h30m"

_BYTES = {
    "": 1, "b": 1,
    "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4,
    "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4,
    "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
}  # fmt: skip
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)")
_SIZE_HINT = "write a number of bytes with an optional unit: 100, 512k, 64MiB or 1GB"
_SIZE_NAMES = ("B", "KiB", "MiB", "GiB", "TiB")


def parse_duration(text: str) -> timedelta:
    """Return the duration that `text` describes, exact to the microsecond.

    Units are ms, s, m, h and d; several may follow one another, largest first (`1h30m`).
    Negative durations and numbers without a unit are refused with BAD_DURATION.
    """
    written = text.strip()
    if not _DURATION.fullmatch(written):
        raise _bad_duration(text, "it is not a number with a unit")
    parts = _DURATION_PART.findall(written)
    ranks = [_LARGEST_FIRST.index(unit) for _, unit in parts]
    if ranks != sorted(set(ranks)):
        raise _bad_duration(text, "its units must be in descending order, each used once")
    total = sum((Fraction(number) * _MICROSECONDS[unit] for number, unit in parts), Fraction(0))
    if total.denominator != 1:
        raise _bad_duration(text, "it is finer than a microsecond")
    try:
        return timedelta(microseconds=int(total))
    except OverflowError as cause:
        raise _bad_duration(text, "it is longer than 999999999 days") from cause


def format_duration(duration: timedelta) -> str:
    """Return the shortest text that `parse_duration` reads back as the same duration."""
    left = duration // timedelta(microseconds=1)
    if left < 0:
        raise _bad_duration(str(duration), "it is negative")
    if 0 < left < _MICROSECONDS["s"]:
        return f"{_decimal(left, 'ms')}ms"
    parts = []
    for unit in ("d", "h", "m"):
        whole, left = divmod(left, _MICROSECONDS[unit])
        if whole:
            parts.append(f"{whole}{unit}")
    if left or not parts:
        parts.append(f"{_decimal(left, 's')}s")
    return "".join(parts)


def to_millis(duration: timedelta) -> int:
    """Return a duration in whole milliseconds, the JVM's unit."""
    return duration // timedelta(milliseconds=1)


def parse_size(text: str) -> int:
    """Return the number of bytes that `text` describes.

    KiB, MiB, GiB and TiB, and the bare k, m, g and t, count in 1024; kB, MB, GB and TB in 1000.
    Units ignore case. A fraction of a byte is BAD_SIZE.
    """
    match = _SIZE.fullmatch(text.strip())
    unit = _BYTES.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise _bad_size(text, "it is not a number with a unit of size")
    size = Fraction(match[1]) * unit
    if size.denominator != 1:
        raise _bad_size(text, "it is not a whole number of bytes")
    return int(size)


def format_size(size: int) -> str:
    """Return a size for people: binary units, at most one decimal (`1.5KiB`)."""
    if size < 0:
        raise _bad_size(str(size), "it is negative")
    value, rank = float(size), 0
    # Round first, so that one byte short of 1 MiB reads as 1MiB and not 1024KiB.
    while round(value, 1) >= 1024 and rank < len(_SIZE_NAMES) - 1:
        value, rank = value / 1024, rank + 1
    return f"{_trim(f'{value:.1f}')}{_SIZE_NAMES[rank]}"


def format_count(count: int) -> str:
    """Return a count with thousands separators: `1,234`."""
    return f"{count:,}"


def _decimal(microseconds: int, unit: str) -> str:
    whole, rest = divmod(microseconds, _MICROSECONDS[unit])
    digits = len(str(_MICROSECONDS[unit])) - 1
    return _trim(f"{whole}.{rest:0{digits}d}")


def _trim(number: str) -> str:
    return number.rstrip("0").rstrip(".")


def _bad_duration(text: str, problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_DURATION", f"cannot read duration {text!r}: {problem}", hint=_DURATION_HINT
    )


def _bad_size(text: str, problem: str) -> HeadgateError:
    return HeadgateError("BAD_SIZE", f"cannot read size {text!r}: {problem}", hint=_SIZE_HINT)
