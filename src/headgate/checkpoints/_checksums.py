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
from pathlib import Path

_PIECE = 1 << 22
_ONES = 0xFFFFFFFF
_HADOOP = b"crc\x00"


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def find_spark_problem(file: Path, sums: Path) -> str:
    """Return what differs between a file and Spark's checksum of it; empty if nothing does."""
    from headgate.checkpoints._crc32c import crc32c

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
