"""Checksums of files: our own, and those that Spark and Hadoop write beside a file.

Spark 4.3 keeps `NAME.crc` beside state files: JSON with the CRC-32C and the size. Hadoop's local
file system keeps `.NAME.crc`: the bytes `crc\\0`, how many bytes each sum covers, then one CRC-32
for each such piece.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

_PIECE = 1 << 22
# CRC-32C is computed for this many parts of a piece at once, which numpy does side by side.
_LANES = 2048
_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
_HADOOP = b"crc\x00"


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def crc32c(data: bytes, start: int = 0) -> int:
    """Return the CRC-32C of some bytes, going on from that of the bytes before them."""
    crc = start ^ _ONES
    width = len(data) // _LANES & ~1  # in bytes; two are taken at a time
    if width >= 64:
        head = width * _LANES
        crc = _fold(np.frombuffer(data, np.dtype("<u2"), head // 2).reshape(_LANES, -1), crc)
        data = data[head:]
    table = _table().tolist()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ _ONES


def find_spark_problem(file: Path, sums: Path) -> str:
    """Return what differs between a file and Spark's checksum of it; empty if nothing does."""
    try:
        told = json.loads(sums.read_text(encoding="utf-8"))
        algorithm, value, size = told["algorithm"], int(told["value"]), int(told["mainFileSize"])
    except (ValueError, TypeError, KeyError):
        return f"its checksum file {sums.name} is damaged"
    if algorithm != "CRC32C":
        return f"its checksum file {sums.name} tells of the unknown algorithm {algorithm!r}"
    if file.stat().st_size != size:
        return f"{file.stat().st_size} bytes, and {size} were written"
    found = 0
    with file.open("rb") as content:
        while piece := content.read(_PIECE):
            found = crc32c(piece, found)
    # Java's integers are signed.
    return "" if found == value & _ONES else "its checksum differs from the one Spark wrote"


def find_hadoop_problem(file: Path, sums: Path) -> str:
    """Return what differs between a file and Hadoop's checksums of it; empty if nothing does."""
    wanted = sums.read_bytes()
    each = struct.unpack(">I", wanted[4:8])[0] if len(wanted) >= 8 else 0
    if wanted[:4] != _HADOOP or each == 0:
        return f"its checksum file {sums.name} is damaged"
    pieces = -(-file.stat().st_size // each)
    if len(wanted) != 8 + 4 * pieces:
        return f"{file.stat().st_size} bytes, and its checksum file {sums.name} is of another size"
    at = 8
    with file.open("rb") as content:
        while block := content.read(each * 4096):
            found = [zlib.crc32(block[i : i + each]) for i in range(0, len(block), each)]
            if struct.pack(f">{len(found)}I", *found) != wanted[at : at + 4 * len(found)]:
                return "its checksum differs from the one Hadoop wrote"
            at += 4 * len(found)
    return ""


@cache
def _table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ _POLYNOMIAL, table >> 1).astype(np.uint32)
    return table


@cache
def _wide_table() -> npt.NDArray[np.uint32]:
    """Return what two bytes at once become."""
    table = _table()
    pairs = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        pairs = table[pairs & 0xFF] ^ (pairs >> 8)
    return pairs


def _fold(lanes: npt.NDArray[np.uint16], crc: int) -> int:
    """Return the running sum after all lanes: each is summed alone, then they are joined."""
    table = _wide_table()
    sums = np.zeros(lanes.shape[0], np.uint32)
    for pairs in np.ascontiguousarray(lanes.T):
        sums = table[(sums & 0xFFFF) ^ pairs] ^ (sums >> 16)
    shift = _shift(2 * lanes.shape[1])
    for each in sums.tolist():
        crc = (
            shift[0][crc & 0xFF]
            ^ shift[1][crc >> 8 & 0xFF]
            ^ shift[2][crc >> 16 & 0xFF]
            ^ shift[3][crc >> 24]
            ^ each
        )
    return crc


@cache
def _shift(zeros: int) -> list[list[int]]:
    """Return, by byte of a running sum, what that byte becomes after so many zero bytes."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    table = _table()
    for _ in range(zeros):
        bits = table[bits & 0xFF] ^ (bits >> 8)
    tables = []
    for byte in range(4):
        values = np.zeros(256, np.uint32)
        for bit in range(8):
            has = (np.arange(256) >> bit & 1).astype(bool)
            values[has] ^= bits[8 * byte + bit]
        tables.append(values.tolist())
    return tables
