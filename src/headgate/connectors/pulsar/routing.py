"""The partition of a key, as in Pulsar's Java and Go producers by default."""

from __future__ import annotations

import struct

_POSITIVE = 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key: the hash of Java's strings, without its sign."""
    return java_hash(key) % partitions


def java_hash(key: bytes) -> int:
    """Return Java's hash of a key's text, without its sign."""
    units = key if key.isascii() else _utf16(key)
    hashed = 0
    for unit in units:
        hashed = hashed * 31 + unit
    return hashed & _POSITIVE


def _utf16(key: bytes) -> tuple[int, ...]:
    text = key.decode("utf-8", errors="replace").encode("utf-16-le")
    return struct.unpack(f"<{len(text) // 2}H", text)
