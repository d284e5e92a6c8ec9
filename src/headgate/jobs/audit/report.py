"""The result of an audit, and its verdict. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate._codec import left_out, shaped
from headgate._units import format_count
from headgate.connectors.contract.audit import Passed
from headgate.engine.settings import Delivery


class By(enum.StrEnum):
    """What links a row to its record."""

    POSITION = "position"
    KEY = "key"


class Kind(enum.StrEnum):
    """The kinds of problems of a record or a row."""

    LOST = "lost"
    DOUBLED = "doubled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAudit:
    """The counts of one partition of a source.

    Attributes:
        records: Records in the range.
        written: Records that are in an output.
        lost: Records that should be in an output and are not; None if the flow does not tell.
        doubled: Surplus rows.
        ahead: Rows of batches that are not committed yet.
        unknown: Records that rows name and that are not in the input.
    """

    records: int
    written: int
    lost: int | None
    doubled: int
    ahead: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAudit:
    """The counts of one source.

    Attributes:
        partitions: By number; of a source that reads several topics, by topic and number.
        unjudged: Reasons why losses cannot be found; empty if they can.
        gaps: Why records of the input may have been deleted since; empty if they cannot.
        keyless: Records without the key, which are in no other count.
        ahead: Rows of uncommitted batches that belong to no partition.
        unknown: Rows of keys that are not in the input.
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
        return sum(partition.records for partition in self.partitions.values())

    @property
    def lost(self) -> int | None:
        """Lost records; None if losses cannot be found."""
        if self.unjudged:
            return None
        return sum(partition.lost or 0 for partition in self.partitions.values())

    @property
    def doubled(self) -> int:
        return sum(partition.doubled for partition in self.partitions.values())

    @property
    def all_unknown(self) -> int:
        return self.unknown + sum(partition.unknown for partition in self.partitions.values())

    @property
    def all_ahead(self) -> int:
        return self.ahead + sum(partition.ahead for partition in self.partitions.values())


@dataclass(frozen=True, slots=True)
class Example:
    """A record or key with a problem.

    Attributes:
        place: `TOPIC/PARTITION/OFFSET`; empty in an audit by key.
        key: The values of the key's columns as JSON; empty in an audit by position.
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
    """The result of an audit.

    Attributes:
        checkpoint: The last batch that counts.
        key: The compared columns; empty in an audit by position.
        sources: By id.
        outputs: By id, dead letters last.
        notes: Further remarks.
    """

    job: str
    lineage: str
    checkpoint: str
    by: By
    delivery: Delivery
    key: tuple[str, ...] = ()
    sources: Mapping[str, SourceAudit]
    outputs: Mapping[str, Passed] = field(metadata=left_out())
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
        """Lost records; None if losses cannot be found for any source."""
        lost = [source.lost for source in self.sources.values() if source.lost is not None]
        return sum(lost) if lost else None

    @property
    def doubled(self) -> int:
        return sum(source.doubled for source in self.sources.values())

    @property
    def unknown(self) -> int:
        return sum(source.all_unknown for source in self.sources.values())

    @property
    def records(self) -> int:
        return sum(source.records for source in self.sources.values())

    @property
    def ahead(self) -> int:
        return sum(source.all_ahead for source in self.sources.values())

    @property
    def rows(self) -> dict[str, int]:
        """Rows of this run by output."""
        return {name: output.rows for name, output in self.outputs.items()}

    @property
    def other_runs(self) -> int:
        return sum(output.other_runs for output in self.outputs.values())

    @property
    def foreign(self) -> int:
        return sum(output.foreign for output in self.outputs.values())

    @property
    def ok(self) -> bool:
        """Whether nothing is lost, and no row occurs more often than the delivery allows."""
        invented = sum(source.all_unknown for source in self.sources.values() if not source.gaps)
        doubled = self.doubled if self.delivery is Delivery.EXACTLY_ONCE else 0
        return not self.lost and not doubled and not invented

    @property
    def verdict(self) -> str:
        """The result in one or two sentences."""
        if not self.records and not self.unknown:
            return "There is nothing to audit: no record was read in the range."
        problems = [
            f"{format_count(count)} {singular if count == 1 else plural}"
            for count, singular, plural in (
                (self.lost, "record is lost", "records are lost"),
                (self.doubled, "row is there too often", "rows are there too often"),
                (self.unknown, "row has no record", "rows have no record"),
            )
            if count
        ]
        *first, last = problems or [self._praise()]
        sentences = [f"{', '.join(first)} and {last}." if first else f"{last}."]
        if self.doubled and self.delivery is Delivery.AT_LEAST_ONCE:
            sentences.append("Delivery is at-least-once, which allows doubled rows.")
        unjudged = [name for name, source in self.sources.items() if source.unjudged]
        if unjudged:
            sentences.append(f"Losses of {', '.join(unjudged)} were not judged.")
        return " ".join(sentences)

    def _praise(self) -> str:
        judged = sum(source.records for source in self.sources.values() if not source.unjudged)
        if not judged:
            return "No row is there too often"
        if self.by is By.KEY:
            return f"Each key of {format_count(judged)} records is as often in the outputs"
        return f"Each of {format_count(judged)} records is in exactly one output row"
