"""The files of a job's samples: a line for each span of time that was measured.

`samples.jsonl` holds a line for each second with a batch, and one for each ten without; when it is
full, its older half goes to `samples.old.jsonl`, thinned to a line for each half minute. So there
are ten minutes or more in full and half a day in short, in less than a mebibyte. The first line of
each is its format. Corrupted and half-written lines are skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate._disk import replace_file
from headgate.errors import HeadgateError

FORMAT = 1
RECENT = "samples.jsonl"
OLDER = "samples.old.jsonl"

_RECENT_FULL = 384 << 10
_OLDER_FULL = 512 << 10
_OLDER_EVERY_MS = 30_000
_MOST_PARSED = 64
_HEADER = json.dumps({"format": FORMAT}) + "\n"


@dataclass(slots=True)
class Sample:
    """The measurements of one span of time.

    Attributes:
        end: When the span ended, in epoch milliseconds; it began `span` before.
        inputs: Records read, by source.
        outputs: Rows by output, counted ones included that are not written.
        written: Rows that went to a topic.
        lag: Records, bytes and seconds left to read; None for an unknown value.
        batches: How many batches ended.
        took: Milliseconds of these batches, in all and by phase; None without batches.
        state: Rows and bytes by operator.
        watermark: In epoch milliseconds.
        latency: p50, p95 and p99 in milliseconds.
    """

    end: int
    span: int
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    written: int = 0
    lag: list[float | None] = field(default_factory=lambda: [None, None, None])
    batches: int = 0
    took: list[float] | None = None
    state: dict[str, list[int]] = field(default_factory=dict)
    watermark: int | None = None
    latency: list[int] | None = None

    @property
    def start(self) -> int:
        """When the span began, in epoch milliseconds."""
        return self.end - self.span

    def to_line(self) -> str:
        """Return the sample as one line of JSON, without zeros and unknown values."""
        content: dict[str, Any] = {"t": self.end, "s": self.span}
        read = {name: count for name, count in self.inputs.items() if count}
        written = {name: count for name, count in self.outputs.items() if count}
        optional = {"i": read, "o": written, "w": self.written, "b": self.batches, "k": self.state}
        content |= {name: value for name, value in optional.items() if value}
        if any(part is not None for part in self.lag):
            content["l"] = self.lag
        if self.took is not None:
            content["d"] = [round(part) for part in self.took]
        if self.watermark is not None:
            content["m"] = self.watermark
        if self.latency is not None:
            content["p"] = self.latency
        return json.dumps(content, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Sample:
        """Return the sample that `to_line` wrote."""
        return cls(
            content["t"],
            content["s"],
            content.get("i", {}),
            content.get("o", {}),
            content.get("w", 0),
            content.get("l", [None, None, None]),
            content.get("b", 0),
            content.get("d"),
            content.get("k", {}),
            content.get("m"),
            content.get("p"),
        )

    def add(self, later: Sample) -> None:
        """Merge a later sample into this one."""
        start = min(self.start, later.start)
        self.end = max(self.end, later.end)
        self.span = self.end - start
        for mine, more in ((self.inputs, later.inputs), (self.outputs, later.outputs)):
            for name, count in more.items():
                mine[name] = mine.get(name, 0) + count
        if later.took is not None:
            mine_took = self.took or [0.0] * len(later.took)
            self.took = [a + b for a, b in zip(mine_took, later.took, strict=True)]
        self.written += later.written
        self.batches += later.batches
        self.lag = [_most(a, b) for a, b in zip(self.lag, later.lag, strict=True)]
        self.state = later.state or self.state
        self.watermark = self.watermark if later.watermark is None else later.watermark
        if later.latency is not None:
            both = zip(self.latency or later.latency, later.latency, strict=True)
            self.latency = [max(a, b) for a, b in both]


def append(folder: Path, sample: Sample) -> None:
    """Add a sample to the recent ones, and move older ones away if the file is full."""
    if _append(folder / RECENT, sample.to_line()) > _RECENT_FULL:
        roll(folder)


def roll(folder: Path) -> None:
    """Move the older half of the recent samples to the older ones, thinned."""
    recent = list(_parse(_lines(folder / RECENT)))
    half = len(recent) // 2
    old, new = recent[:half], recent[half:]
    kept = list(_parse(_lines(folder / OLDER)))
    # After a crash between the two files some are there already.
    last = kept[-1].end if kept else 0
    moved = _merge(sample for sample in old if sample.end > last)
    lines = [sample.to_line() for sample in (*kept, *moved)]
    while sum(map(len, lines)) > _OLDER_FULL:
        lines = lines[max(1, len(lines) // 4) :]
    _replace(folder / OLDER, lines)
    _replace(folder / RECENT, [sample.to_line() for sample in new])


def forget(folder: Path) -> None:
    """Remove all samples."""
    for name in (RECENT, OLDER):
        (folder / name).unlink(missing_ok=True)


def _merge(samples: Iterable[Sample]) -> Iterator[Sample]:
    held: Sample | None = None
    for sample in samples:
        if held is not None and sample.end // _OLDER_EVERY_MS == held.end // _OLDER_EVERY_MS:
            held.add(sample)
            continue
        if held is not None:
            yield held
        held = sample
    if held is not None:
        yield held


def read_since(folder: Path, since: int | None) -> Iterator[Sample]:
    """Yield samples that end after a moment, oldest first; files are read from their ends.

    Args:
        since: In epoch milliseconds; None for all there are.

    Raises:
        HeadgateError: JOB_FORMAT_UNSUPPORTED for files of a newer release.
    """
    recent = _newest(folder / RECENT, since)
    begin = recent[0].start if recent else None
    if since is None or begin is None or begin > since:
        first = since or 0
        # Some are in both for a moment, while the older half moves.
        yield from (
            sample
            for sample in _read_older(folder / OLDER)
            if sample.end > first and (begin is None or sample.end <= begin)
        )
    yield from recent


# Parsed files of older samples with the state of each file, which changes rarely.
_parsed: dict[Path, tuple[tuple[int, int, int], list[Sample]]] = {}


def _read_older(file: Path) -> list[Sample]:
    """Return the samples of a file, parsed once while it is unchanged; do not change them."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return []
    mark = (status.st_ino, status.st_size, status.st_mtime_ns)
    known = _parsed.get(file)
    if known is None or known[0] != mark:
        known = (mark, list(_parse(_lines(file))))
        if len(_parsed) >= _MOST_PARSED:
            _parsed.clear()
        _parsed[file] = known
    return known[1]


def _newest(file: Path, since: int | None) -> list[Sample]:
    newest: list[Sample] = []
    for sample in _parse(reversed(_lines(file))):
        if since is not None and sample.end <= since:
            break
        newest.append(sample)
    return newest[::-1]


def _lines(file: Path) -> list[bytes]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    first, _, rest = content.partition(b"\n")
    _check_format(file, first)
    # What stands behind the last newline is not written yet.
    return rest.split(b"\n")[:-1]


def _check_format(file: Path, line: bytes) -> None:
    try:
        version = json.loads(line)["format"]
    except (ValueError, TypeError, KeyError):
        return
    if version != FORMAT:
        raise HeadgateError(
            "JOB_FORMAT_UNSUPPORTED",
            f"cannot read {file}: its format is {version!r}, and this release reads {FORMAT}",
            hint="use the release of headgate that wrote it, or a newer one",
        )


def _parse(lines: Iterable[bytes]) -> Iterator[Sample]:
    for line in lines:
        # A crash leaves half a line, and the next writer begins a new one.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            yield Sample.from_json(json.loads(line))


def _append(file: Path, line: str) -> int:
    """Add a line; return the size of the file then."""
    with file.open("ab") as target:
        if target.tell() == 0:
            target.write(_HEADER.encode())
        elif not _ends_whole(file):
            target.write(b"\n")
        target.write(line.encode())
        return target.tell()


def _ends_whole(file: Path) -> bool:
    with file.open("rb") as source:
        source.seek(-1, os.SEEK_END)
        return source.read(1) == b"\n"


def _replace(file: Path, lines: Sequence[str]) -> None:
    replace_file(file, _HEADER + "".join(lines))


def _most(a: float | None, b: float | None) -> float | None:
    known = [number for number in (a, b) if number is not None]
    return max(known) if known else None
