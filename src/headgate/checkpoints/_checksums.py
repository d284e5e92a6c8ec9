"""Checksums that Spark and Hadoop keep beside a file.

Spark 4.3 keeps `NAME.crc` beside state files: JSON with the CRC-32C and the size. Hadoop's local
file system keeps `.NAME.crc`: the bytes `crc\\0`, how many bytes each sum covers, then one CRC-32
for each such piece.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib

from headgate.checkpoints.stores.place import Files

_PIECE = 1 << 22
_ONES = 0xFFFFFFFF
_HADOOP = b"crc\x00"


def sums_names(file: str) -> tuple[str, str]:
    """Return the names of a file's checksum files: Spark's, and Hadoop's."""
    folder, slash, name = file.rpartition("/")
    return f"{file}.crc", f"{folder}{slash}.{name}.crc"


def sha256_of(files: Files, file: str) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with files.open(file) as content:
        # BufferedReader has what file_digest needs.
        return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]


def find_spark_problem(files: Files, file: str, sums: str) -> str:
    """Return how a file differs from Spark's checksum; empty if it does not."""
    from headgate.checkpoints._crc32c import crc32c

    try:
        sums_json = json.loads(files.read(sums).decode())
        algorithm, value = sums_json["algorithm"], int(sums_json["value"])
        size = int(sums_json["mainFileSize"])
    except (ValueError, TypeError, KeyError):
        return f"its checksum file {_name(sums)} is corrupted"
    if algorithm != "CRC32C":
        return f"its checksum file {_name(sums)} names the unknown algorithm {algorithm!r}"
    if files.size(file) != size:
        return f"it has {files.size(file)} bytes instead of {size}"
    actual = 0
    with files.open(file) as content:
        while piece := content.read(_PIECE):
            actual = crc32c(piece, actual)
    # Java's integers are signed.
    return "" if actual == value & _ONES else "its checksum differs from Spark's"


def find_hadoop_problem(files: Files, file: str, sums: str) -> str:
    """Return how a file differs from Hadoop's checksums; empty if it does not."""
    wanted = files.read(sums)
    piece_size = struct.unpack(">I", wanted[4:8])[0] if len(wanted) >= 8 else 0
    if wanted[:4] != _HADOOP or piece_size == 0:
        return f"its checksum file {_name(sums)} is corrupted"
    pieces = -(-files.size(file) // piece_size)
    if len(wanted) != 8 + 4 * pieces:
        return (
            f"it has {files.size(file)} bytes, and its checksum file {_name(sums)} is for "
            "another size"
        )
    at = 8
    with files.open(file) as content:
        while block := content.read(piece_size * 4096):
            block_sums = [
                zlib.crc32(block[i : i + piece_size]) for i in range(0, len(block), piece_size)
            ]
            if (
                struct.pack(f">{len(block_sums)}I", *block_sums)
                != wanted[at : at + 4 * len(block_sums)]
            ):
                return "its checksum differs from Hadoop's"
            at += 4 * len(block_sums)
    return ""


def _name(file: str) -> str:
    return file.rpartition("/")[2]
