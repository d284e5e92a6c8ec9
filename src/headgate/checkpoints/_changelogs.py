"""The head of Spark's changelog files: the state versions that a version was built on.

Seen in Spark 4.3.0 (`StateStoreChangelogWriterV4`, lz4): the file is a sequence of LZ4 blocks in
lz4-java's format. Unpacked it begins with the changelog's version and the lineage, each a string
with its length in two bytes. The lineage is JSON: version and unique id of every changelog since
the newest snapshot known when the file was begun.
"""

from __future__ import annotations

import json
import struct
from typing import BinaryIO

_MAGIC = b"LZ4Block"
_HEADER = struct.Struct("<8sBiii")
# lz4-java's own seed, and the bits of the checksum that it keeps.
_SEED, _KEPT = 0x9747B28C, 0x0FFFFFFF
_LARGEST_BLOCK = 1 << 25
_MASK = 0xFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


class BadChangelogError(ValueError):
    """A changelog's head is not valid."""


def read_lineage(content: BinaryIO) -> dict[int, str]:
    """Return the unique ids of the versions that a changelog builds on, by version.

    Args:
        content: The open file, of which only the head is read.

    Raises:
        BadChangelogError: The file is not a changelog, or is corrupted; its head is checked against
            the checksum inside it.
    """
    head = _Unpacked(content)
    version = head.read_text()
    if version not in ("v3", "v4"):
        raise BadChangelogError(f"a changelog of format {version!r} has no lineage")
    try:
        return {
            int(entry["version"]): str(entry["checkpointUniqueId"])
            for entry in json.loads(head.read_text())
        }
    except (ValueError, TypeError, KeyError) as error:
        raise BadChangelogError("its lineage does not parse") from error


class _Unpacked:
    """Unpacks only as many blocks as needed."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content
        self._buffer = b""

    def read_text(self) -> str:
        (length,) = struct.unpack(">H", self._read(2))
        try:
            return self._read(length).decode()
        except UnicodeDecodeError as error:
            raise BadChangelogError("its head is not text") from error

    def _read(self, length: int) -> bytes:
        while len(self._buffer) < length:
            self._buffer += self._next_block()
        content, self._buffer = self._buffer[:length], self._buffer[length:]
        return content

    def _next_block(self) -> bytes:
        header = self._content.read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise BadChangelogError("it is truncated")
        magic, token, packed, unpacked, checksum = _HEADER.unpack(header)
        if magic != _MAGIC or not (0 < packed <= _LARGEST_BLOCK and 0 < unpacked <= _LARGEST_BLOCK):
            raise BadChangelogError("it lacks an expected LZ4 block")
        block = self._content.read(packed)
        if len(block) < packed:
            raise BadChangelogError("it is truncated")
        match token & 0xF0:
            case 0x10:
                data = block
            case 0x20:
                data = unpack_lz4(block, unpacked)
            case _:
                raise BadChangelogError("it holds a block of an unknown kind")
        if len(data) != unpacked or xxhash32(data, _SEED) & _KEPT != checksum:
            raise BadChangelogError("the checksum of a block differs")
        return data


def unpack_lz4(block: bytes, size: int) -> bytes:
    """Return the content of one LZ4 block, or raise BadChangelogError."""
    out = bytearray()
    at = 0
    try:
        while True:
            token = block[at]
            at += 1
            length, at = _length(block, at, token >> 4)
            if at + length > len(block):
                raise BadChangelogError("an LZ4 block is truncated")
            out += block[at : at + length]
            at += length
            if at >= len(block):
                return bytes(out)
            back = block[at] | block[at + 1] << 8
            length, at = _length(block, at + 2, token & 15)
            length += 4
            start = len(out) - back
            if back == 0 or start < 0 or len(out) + length > size:
                raise BadChangelogError("an LZ4 block refers to bytes outside of it")
            piece = out[start : start + length]
            # A match may overlap its own output: then its first `back` bytes repeat.
            out += piece if back >= length else (piece * (length // back + 1))[:length]
    except IndexError as error:
        raise BadChangelogError("an LZ4 block is truncated") from error


def _length(block: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            more = block[at]
            at += 1
            length += more
            if more != 255:
                break
    return length, at


def xxhash32(data: bytes, seed: int) -> int:
    """Return the 32-bit xxHash of some bytes."""
    at = 0
    if len(data) >= 16:
        sums = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        a, b, c, d = (lane & _MASK for lane in sums)
        at = len(data) & ~15
        for w, x, y, z in struct.iter_unpack("<4I", data[:at]):
            a = _round(a, w)
            b = _round(b, x)
            c = _round(c, y)
            d = _round(d, z)
        total = _left(a, 1) + _left(b, 7) + _left(c, 12) + _left(d, 18)
    else:
        total = seed + _P5
    total = (total + len(data)) & _MASK
    whole = at + (len(data) - at) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[at:whole]):
        total = _left((total + word * _P3) & _MASK, 17) * _P4 & _MASK
    for byte in data[whole:]:
        total = _left((total + byte * _P5) & _MASK, 11) * _P1 & _MASK
    total = (total ^ total >> 15) * _P2 & _MASK
    total = (total ^ total >> 13) * _P3 & _MASK
    return total ^ total >> 16


def _round(total: int, word: int) -> int:
    total = (total + word * _P2) & _MASK
    return (total << 13 | total >> 19) * _P1 & _MASK


def _left(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
