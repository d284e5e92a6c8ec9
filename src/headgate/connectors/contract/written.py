"""Whether a topic holds batches that a run has written. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime

from headgate._codec import Moment, alias


class Answer(enum.StrEnum):
    """Whether a topic holds rows of a batch; unknown counts as written."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Batches:
    """A range of batches.

    Attributes:
        first: The first batch.
        last: The last batch; None for no end.
        since: When the first batch began: brokers forget idle producers.
    """

    first: int
    last: int | None
    since: datetime

    def has(self, batch: int) -> bool:
        """Return True if a batch is in the range."""
        return batch >= self.first and (self.last is None or batch <= self.last)


@dataclass(frozen=True, slots=True)
class Writers:
    """The tasks of a run, as topics and brokers know them.

    Attributes:
        lineage: The part of output file names that identifies the run.
        run: The name of the run on brokers: `headgate.JOB.LINEAGE`.
        tasks: The names of the tasks: producer names on Pulsar, transactional ids on Kafka.
        are_gone: True if no task can be alive, on this machine or another.
        leave_marks: True if all rows written to brokers left a mark there.
    """

    lineage: str
    run: str
    tasks: tuple[str, ...]
    are_gone: bool = True
    leave_marks: bool = True


@dataclass(frozen=True, slots=True)
class Written:
    """The rows of a range of batches in a topic.

    Attributes:
        rows: The number of rows; None if unknown.
        tasks: The number of tasks that wrote them; None if unknown.
        why: The reason why it is unknown.
    """

    answer: Answer = field(metadata=alias("written"))
    rows: int | None = None
    tasks: int | None = None
    why: str = ""

    @property
    def is_possible(self) -> bool:
        """True if the topic holds, or may hold, rows of the batches."""
        return self.answer is not Answer.NO

    def plus(self, other: Written) -> Written:
        """Return the combined answer for these and other rows."""
        if not (self.is_possible and other.is_possible):
            return self if self.is_possible else other
        is_known = Answer.UNKNOWN not in (self.answer, other.answer)
        return Written(
            Answer.YES if is_known else Answer.UNKNOWN,
            rows=_sum(self.rows, other.rows),
            tasks=_sum(self.tasks, other.tasks),
            why=self.why or other.why,
        )


@dataclass(frozen=True, slots=True)
class Hidden:
    """Rows that are written and not visible to readers yet.

    Attributes:
        size: In bytes, as they are stored.
        since: When the oldest of them were written.
    """

    rows: int
    size: int = field(metadata=alias("bytes"))
    since: Moment


NOTHING = Written(Answer.NO, rows=0, tasks=0)


def unknown(why: str) -> Written:
    """Return an unknown answer with its reason."""
    return Written(Answer.UNKNOWN, why=why)


MAYBE_ALIVE = unknown("executors of the run may be alive on other machines")
UNMARKED = unknown("delivery is at-least-once, which leaves no marks")


def by_tasks(count: int) -> Written:
    """Return the answer if this many tasks have written."""
    return Written(Answer.YES, tasks=count) if count else NOTHING


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
