"""The store's topics as folders, read as a reader of embedded topics does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FilesReader:
    """Reads embedded topics to their end; a place is the files of each topic before it."""

    topics: Path

    def find_ends(self, topics: Sequence[str]) -> dict[str, set[Path]]:
        """Return where topics end now."""
        return {topic: set(self._files(topic)) for topic in topics}

    def beginning(self, topic: str) -> dict[str, set[Path]]:
        """Return where a topic begins."""
        return {topic: set()}

    def read(self, since: dict[str, set[Path]]) -> Iterator[tuple[str, bytes]]:
        """Yield topic and value of all records in files that have come since."""
        for topic, before in since.items():
            for file in self._files(topic):
                if file not in before:
                    with file.open("rb") as lines:
                        for line in lines:
                            yield topic, line.rstrip(b"\n")

    def _files(self, topic: str) -> Iterator[Path]:
        folder = self.topics / topic
        for file in sorted(folder.rglob("*.jsonl")):
            # What begins so is not part of a topic: unfinished files, and its ledger.
            if not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts):
                yield file
