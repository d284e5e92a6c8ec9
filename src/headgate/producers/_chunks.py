"""Parts that all generated data share: checks of its shape, chunks, and lines."""

import math
from collections.abc import Callable, Iterator, Sequence

from headgate.errors import HeadgateError

CHUNK_RECORDS = 20_000


def check_count(
    name: str, count: int, fault: Callable[[str, str], HeadgateError], least: int = 0
) -> None:
    """Refuse a count that is too small; `fault` makes the error of a problem and a hint."""
    if count < least:
        raise fault(f"--{name} must be {least} or more, got {count}", f"--{name} {least}")


def check_share(name: str, share: float, fault: Callable[[str, str], HeadgateError]) -> None:
    """Refuse a share that is not from 0 to 1."""
    if not (math.isfinite(share) and 0 <= share <= 1):
        raise fault(f"--{name} must be a share from 0 to 1, got {share}", f"--{name} 0.01")


def chunk_ranges(count: int) -> Iterator[tuple[int, int]]:
    """Yield the first index of each chunk, and the index after its last record."""
    for first in range(0, count, CHUNK_RECORDS):
        yield first, min(first + CHUNK_RECORDS, count)


def split_lines(lines: bytes) -> Sequence[bytes]:
    """Return lines without their newlines."""
    return lines.removesuffix(b"\n").split(b"\n") if lines else ()
