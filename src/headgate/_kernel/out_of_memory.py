"""Which memory of a JVM ran out, and the setting that gives it more."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Java's own error, and those of Spark's and of the network library's memory.
_ERROR = re.compile(
    r"(?:java\.lang\.OutOfMemoryError|SparkOutOfMemoryError|OutOfDirectMemoryError)"
    r"(?:: (?P<why>[^\n]*))?"
)
# The words of Java 17, of Netty and of Java 11 for pools that have a setting of their own.
_POOLS = {
    "Metaspace": 'metaspace = "512MiB"',
    "Compressed class space": 'metaspace = "512MiB"',
    "direct memory": 'direct-memory = "1GiB"',
    "direct buffer memory": 'direct-memory = "1GiB"',
    "Direct buffer memory": 'direct-memory = "1GiB"',
}


def find_shortage(texts: Sequence[str]) -> re.Match[str] | None:
    """Return the first error of a JVM without memory; its group `why` may be None."""
    return next(filter(None, map(_ERROR.search, texts)), None)


def how_to_raise(why: str | None, *, heap: str) -> str:
    """Return what gives a JVM more of the memory that ran out.

    Args:
        why: The error's message.
        heap: The advice for the heap.
    """
    for words, setting in _POOLS.items():
        if words in (why or ""):
            return f"set {setting} in the profile of headgate.toml"
    return heap
