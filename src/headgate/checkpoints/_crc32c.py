"""CRC-32C, which Spark writes beside state files and Python's library lacks.

A module of its own, since numpy takes a while to import and few commands need checksums.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

# The number of parts of a block that numpy sums in parallel.
_LANES = 2048
_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF


def crc32c(data: bytes, start: int = 0) -> int:
    """Return the CRC-32C of some bytes, continued from that of the bytes before them."""
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


@cache
def _table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ _POLYNOMIAL, table >> 1).astype(np.uint32)
    return table


@cache
def _wide_table() -> npt.NDArray[np.uint32]:
    """Return the table for two bytes at once."""
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
    for checksum in sums.tolist():
        crc = (
            shift[0][crc & 0xFF]
            ^ shift[1][crc >> 8 & 0xFF]
            ^ shift[2][crc >> 16 & 0xFF]
            ^ shift[3][crc >> 24]
            ^ checksum
        )
    return crc


@cache
def _shift(zeros: int) -> list[list[int]]:
    """Return, by byte of a running sum, its value after this many zero bytes."""
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
