"""What an audit found, as values, and what to make of it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate._codec import left_out, shaped
from headgate._units import format_count
from headgate.engine.settings import Delivery


class By(enum.StrEnum):
    """What ties a row to its record."""

    POSITION = "position"
    KEY = "key"


class Kind(enum.StrEnum):
    """What can be wrong with a record or a row."""

    LOST = "lost"
    DOUBLED = "doubled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAudit:
    """What was found of one partition of a source.

    Attributes:
        records: In the range.
        written: Of those, how many are in an output.
        lost: Of those, how many ought to be in an output and are in none; None where the flow
            does not tell.
        doubled: Rows too many.
        ahead: Rows of batches that are not committed yet.
        unknown: What rows say they came from, and the input does not have.
    """

    records: int
    written: int
    lost: int | None
    doubled: int
    ahead: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAudit:
    """What was found of one source.

    Attributes:
        partitions: By number; of a source that reads several topics, by topic and number.
        unjudged: Why losses cannot be told, a line for each place; empty where they can.
        gaps: Why the input may have lost records since; empty where it may not.
        keyless: Records without the key, which are in no other count.
        ahead: Rows of batches that are not committed yet, of no partition in particular.
        unknown: Rows of keys that the input does not have.
    """

    topic: str
    partitions: Mapping[str, PartitionAudit]
    unjudged: tuple[str, ...] = ()
    gaps: str = field(default="", metadata=left_out())
    keyless: int = 0
    ahead: int = field(default=0, metadata=left_out())
    unknown: int = field(default=0, metadata=left_out())

    __get_pydantic_core_schema__ = shaped(
        computed={
            "lost": "lost",
            "doubled": "doubled",
            "unknown": "all_unknown",
            "ahead": "all_ahead",
        }
    )

    @property
    def records(self) -> int:
        """Records in the range."""
        return sum(each.records for each in self.partitions.values())

    @property
    def lost(self) -> int | None:
        """Records that are lost; None if unknown."""
        return None if self.unjudged else sum(each.lost or 0 for each in self.partitions.values())

    @property
    def doubled(self) -> int:
        """Rows too many."""
        return sum(each.doubled for each in self.partitions.values())

    @property
    def all_unknown(self) -> int:
        """Rows of nothing that the input has."""
        return self.unknown + sum(each.unknown for each in self.partitions.values())

    @property
    def all_ahead(self) -> int:
        """Rows of batches that are not committed yet."""
        return self.ahead + sum(each.ahead for each in self.partitions.values())


@dataclass(frozen=True, slots=True)
class OutputAudit:
    """What an output holds.

    Attributes:
        rows: Of this run.
        other_runs: Rows of other runs of this job, or of other jobs.
        foreign: Rows that no job marked.
        keyless: Rows of this run without the key.
    """

    rows: int = 0
    other_runs: int = 0
    foreign: int = 0
    keyless: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """One record or key that is not as it ought to be.

    Attributes:
        place: Topic, partition and offset between slashes; empty in an audit by key.
        key: The values of the key's columns, as JSON writes them; empty otherwise.
    """

    kind: Kind
    source: str
    place: str = ""
    key: tuple[str, ...] = ()

    __get_pydantic_core_schema__ = shaped(absent=lambda self: ("place",) if self.key else ("key",))

    def __str__(self) -> str:
        return self.place or ", ".join(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found.

    Attributes:
        checkpoint: The last batch that counts.
        key: The columns compared; empty in an audit by position.
        sources: By id.
        outputs: By id, dead letters last.
        notes: What has to be known besides.
    """

    job: str
    lineage: str
    checkpoint: str
    by: By
    delivery: Delivery
    key: tuple[str, ...] = ()
    sources: Mapping[str, SourceAudit]
    outputs: Mapping[str, OutputAudit] = field(metadata=left_out())
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()

    __get_pydantic_core_schema__ = shaped(
        computed={
            "ok": "ok",
            "outputs": "rows",
            "lost": "lost",
            "doubled": "doubled",
            "unknown": "unknown",
            "ahead": "ahead",
            "other_runs": "other_runs",
            "foreign": "foreign",
            "verdict": "verdict",
        }
    )

    @property
    def lost(self) -> int | None:
        """Records that are lost; None where it can be told of no source."""
        judged = [each.lost for each in self.sources.values() if each.lost is not None]
        return sum(judged) if judged else None

    @property
    def doubled(self) -> int:
        """Rows too many."""
        return sum(each.doubled for each in self.sources.values())

    @property
    def unknown(self) -> int:
        """Rows of nothing that the input has."""
        return sum(each.all_unknown for each in self.sources.values())

    @property
    def records(self) -> int:
        """Records that were looked for."""
        return sum(each.records for each in self.sources.values())

    @property
    def rows(self) -> dict[str, int]:
        """Rows of this run by output."""
        return {name: output.rows for name, output in self.outputs.items()}

    @property
    def ahead(self) -> int:
        """Rows of batches that are not committed yet."""
        return sum(source.all_ahead for source in self.sources.values())

    @property
    def other_runs(self) -> int:
        """Rows of other runs of this job, or of other jobs."""
        return sum(output.other_runs for output in self.outputs.values())

    @property
    def foreign(self) -> int:
        """Rows that no job marked."""
        return sum(output.foreign for output in self.outputs.values())

    @property
    def ok(self) -> bool:
        """Whether nothing is lost, and nothing there more often than the job promised."""
        invented = sum(each.all_unknown for each in self.sources.values() if not each.gaps)
        doubled = self.doubled if self.delivery is Delivery.EXACTLY_ONCE else 0
        return not self.lost and not doubled and not invented

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or two."""
        return verdict(self)


def verdict(audit: Audit) -> str:
    """Return what was found, in a sentence or two."""
    if not audit.records and not audit.unknown:
        return "There is nothing to audit: no record was read in the range."
    wrong = [
        *_told(audit.lost or 0, "record is lost", "records are lost"),
        *_told(audit.doubled, "row is there too often", "rows are there too often"),
        *_told(audit.unknown, "row has no record", "rows have no record"),
    ]
    sentences = [_joined(wrong) if wrong else _all_well(audit)]
    if audit.doubled and audit.delivery is Delivery.AT_LEAST_ONCE:
        sentences.append("Delivery is at-least-once, which allows doubled rows.")
    unjudged = [name for name, each in audit.sources.items() if each.unjudged]
    if unjudged:
        sentences.append(f"Losses of {', '.join(unjudged)} were not judged.")
    return " ".join(sentences)


def _all_well(audit: Audit) -> str:
    judged = sum(each.records for each in audit.sources.values() if not each.unjudged)
    if not judged:
        return "No row is there too often."
    if audit.by is By.KEY:
        return f"Each key of {format_count(judged)} records is as often in the outputs."
    return f"Each of {format_count(judged)} records is in exactly one output row."


def _told(count: int, one: str, many: str) -> list[str]:
    return [f"{format_count(count)} {one if count == 1 else many}"] if count else []


def _joined(parts: list[str]) -> str:
    *first, last = parts
    text = f"{', '.join(first)} and {last}" if first else last
    return f"{text}."
