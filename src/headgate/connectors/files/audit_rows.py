"""The rows that a run wrote to an embedded topic: file names state the run and the batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headgate.connectors.audit import Meter, Passed, Row
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.records import read_records as read_lines
from headgate.connectors.files.topic import list_files
from headgate.connectors.files.written import FILE

# After every batch: nothing counts of a run that is not an ancestor of the audited one.
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of an embedded topic: file names state the run and the batch."""

    topic: Files
    lineage: str
    batch: int
    earlier: Mapping[str, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all rows."""
        for line, match in meter.over(self._lines(), self.topic.name, None):
            if match is None:
                passed.foreign += 1
            elif match["lineage"] != self.lineage:
                passed.other_runs += 1
                if int(match["batch"]) > self.earlier.get(match["lineage"], _ALL):
                    yield Row(None, -1, -1, line, is_earlier=True)
            else:
                passed.rows += 1
                yield Row(None, -1, -1, line, int(match["batch"]) > self.batch)

    def _lines(self) -> Iterator[tuple[bytes, re.Match[str] | None]]:
        for file in list_files(Path(self.topic.path)):
            match = FILE.fullmatch(file.path.name)
            for line in read_lines(file.path):
                yield line, match
