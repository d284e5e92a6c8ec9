"""The connector of embedded topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from headgate.connectors.audit import AuditedRun, Input, OutputRows
from headgate.connectors.connector import Positions, SparkEnds, TopicSetup
from headgate.connectors.files import _spark, positions, setup, written
from headgate.connectors.files.audit_input import open_input
from headgate.connectors.files.audit_rows import FileRows
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.log import FilesLog
from headgate.connectors.files.places import FilesPlaces
from headgate.connectors.kafka.starts import STARTS
from headgate.connectors.written import MAYBE_ALIVE, Batches, Writers, Written
from headgate.flow.topics import Topic

_SCHEME = "files:"


class FilesWriting:
    """Rows in files named by run, batch and task."""

    rests_on = "files named by run, batch and task"
    can_repeat = False
    has_transactions = False

    def end_transactions(self, _topic: Files, _ids: Iterable[str]) -> None:
        """Do nothing: a file is published at once."""

    def find_written(
        self, topics: Mapping[str, Files], writers: Writers, batches: Batches
    ) -> dict[str, Written]:
        """Return what each topic's folder holds of a run's batches."""
        return {
            name: written.find_written(Path(topic.path), writers, batches)
            if writers.are_gone
            else MAYBE_ALIVE
            for name, topic in topics.items()
        }


class FilesAudit:
    """Lines by their bytes, and rows by their file names."""

    shows_places = False

    def open_input(self, job: str, topic: Files, begin: str | None, end: str) -> Input:
        """Return the lines that a run read."""
        return open_input(job, topic, begin, end)

    def open_rows(self, run: AuditedRun, topic: Files) -> OutputRows:
        """Return the lines that runs wrote."""
        return FileRows(topic, run.lineage, run.batch, run.earlier)


class FilesConnector:
    """Topics in folders."""

    kind = Files.kind
    has_keys = False
    spark: SparkEnds[Files] = _spark
    # The source refuses starts that embedded topics do not support.
    starts = STARTS
    positions: Positions[Files] = positions
    writing = FilesWriting()
    setup: TopicSetup[Files] = setup
    audit = FilesAudit()

    def find_log(self, text: str) -> FilesLog | None:
        """Return the folder for a value of `--on`."""
        root = text.removeprefix(_SCHEME)
        return FilesLog(Path(root)) if text.startswith(_SCHEME) and root else None

    def log_of(self, topic: Files) -> FilesLog:
        """Return the parent folder of the topic's folder."""
        return FilesLog(Path(topic.path).parent)

    def where(self, topic: Files) -> str:
        """Return the folder of the log, or the topic's folder if it has another name."""
        path = Path(topic.path)
        return f"{_SCHEME}{path.parent if path.name == topic.name else path}"

    def find_cluster(self, _topic: Files) -> None:
        """Return None: there is no broker."""

    def reach(self, _topic: Files, _doing: str) -> None:
        """Return at once: a folder has no broker."""

    def reads(self, read: Files, topic: Topic) -> bool:
        """Return True if two topics are the same folder."""
        return isinstance(topic, Files) and Path(read.path).resolve() == Path(topic.path).resolve()

    def open_places(self, topic: Files) -> FilesPlaces:
        """Return the lines of the topic's files."""
        return FilesPlaces(Path(topic.path))
