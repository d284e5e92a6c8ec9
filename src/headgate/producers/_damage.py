"""Bad order lines: every kind that a strict reader must refuse, in rotation."""

import re
from collections.abc import Callable


def damage(line: str, ordinal: int) -> str:
    """Return a good order line made bad; the kinds rotate by ordinal.

    A character that stands for a byte outside UTF-8 is escaped as in Python's `surrogateescape`.
    The result has no newline and is never blank.
    """
    return KINDS[ordinal % len(KINDS)](line)


def _replacing(pattern: str, replacement: str) -> Callable[[str], str]:
    return lambda line: re.sub(pattern, replacement, line, count=1)


KINDS: tuple[Callable[[str], str], ...] = (
    # Broken JSON.
    lambda line: line[: len(line) * 2 // 3],
    # Values of a wrong type.
    _replacing(r'"price":([0-9.]+)', r'"price":"\1"'),
    _replacing(r'"itemName":"[^"]*"', '"itemName":1234'),
    _replacing(r'"userId":([0-9]+)', r'"userId":\1.5'),
    # A missing value, and null.
    _replacing(r'"userId":[0-9]+,', ""),
    _replacing(r'"itemId":[0-9]+', '"itemId":null'),
    # JSON that is not an object.
    lambda line: f"[{line}]",
    lambda line: str(len(line)),
    # Bytes that are not UTF-8.
    _replacing('"itemName":"', '"itemName":"\udcff\udcfe'),
)
