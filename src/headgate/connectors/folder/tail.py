"""The last rows in the visible files of a folder, for people."""

from __future__ import annotations

import io
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from headgate._locations import Location, parse_location
from headgate.connectors.contract.places import PlacedRecord
from headgate.connectors.folder.descriptor import LINES, Folder
from headgate.connectors.folder.ends import full_path
from headgate.errors import HeadgateError

_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}

# The number of a row in its file, and the row.
_Numbered = tuple[int, bytes]


def read_last(folder: Folder, count: int) -> list[PlacedRecord]:
    """Return the last rows of the newest files, newest last; files are read one at a time.

    Raises:
        HeadgateError: TOPIC_OPTION_UNSUPPORTED for Avro, and files that Snappy compressed.
    """
    root = parse_location(full_path(folder))
    records: list[PlacedRecord] = []
    for file, modified in sorted(_visible(root), key=lambda found: found[1], reverse=True):
        if len(records) >= count:
            break
        name = str(file)[len(str(root)) :].strip("/")
        rows = deque(_rows(folder, file), maxlen=count - len(records))
        records[:0] = [_record(f"{name}:{number}", modified, row) for number, row in rows]
    return records


def _visible(root: Location) -> Iterator[tuple[Location, float]]:
    """Yield the files that readers see, and when each was written."""
    try:
        found: list[Location] = sorted(root.iterdir(), key=lambda path: path.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for path in found:
        if path.name.startswith(("_", ".")):
            continue
        if path.is_dir():
            yield from _visible(path)
        else:
            yield path, path.stat().st_mtime


def _rows(folder: Folder, file: Location) -> Iterable[_Numbered]:
    with file.open("rb") as content:
        if folder.own_name in LINES:
            skipped = 1 if folder.own_name == "csv" and folder.header else 0
            yield from _lines(folder, file.suffix, content, skipped)
        else:
            yield from _columnar(folder, content)


def _lines(folder: Folder, suffix: str, content: IO[bytes], skipped: int) -> Iterator[_Numbered]:
    # Imported here: the registry of connectors loads without it.
    import pyarrow as pa

    if suffix == ".snappy":
        raise unsupported(folder, "show the rows of")
    plain: Any = content
    if suffix in _COMPRESSED:
        plain = pa.CompressedInputStream(pa.PythonFile(content), _COMPRESSED[suffix])
    for number, line in enumerate(io.BufferedReader(plain)):
        if number >= skipped:
            yield number, line.rstrip(b"\n")


def _columnar(folder: Folder, content: IO[bytes]) -> Iterator[_Numbered]:
    from pyarrow import orc, parquet

    readers: dict[str, Callable[[IO[bytes]], Any]] = {
        "parquet": lambda file: parquet.ParquetFile(file).read(),
        "orc": lambda file: orc.ORCFile(file).read(),
    }
    if folder.own_name not in readers:
        raise unsupported(folder, "show the rows of")
    table = readers[folder.own_name](content)
    for number, row in enumerate(table.to_pylist(maps_as_pydicts="lossy")):
        yield number, json.dumps(row, ensure_ascii=False, default=str).encode()


def _record(place: str, modified: float, row: bytes) -> PlacedRecord:
    return PlacedRecord(
        place=place, partition=0, timestamp=round(modified * 1000), key=None, value=row
    )


def unsupported(folder: Folder, doing: str) -> HeadgateError:
    """Return the error of what folders do not support."""
    return HeadgateError(
        "TOPIC_OPTION_UNSUPPORTED",
        f"cannot {doing} {folder.describe()}: Headgate reads such files in jobs only",
        hint="read the files with DuckDB or pandas",
    )
