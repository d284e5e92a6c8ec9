"""Whether a run has written some batches to a topic, as the topic itself can answer it. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime

from headgate._codec import alias


class Answer(enum.StrEnum):
    """Whether a topic holds rows of a batch; what is unknown counts as written."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches that are asked for.

    Attributes:
        first: The first of them.
        last: The last of them; None for all that follow.
        since: When the first was begun: brokers forget producers that were idle for long.
    """

    first: int
    last: int | None
    since: datetime

    def has(self, batch: int) -> bool:
        """Tell whether a batch is one of them."""
        return batch >= self.first and (self.last is None or batch <= self.last)


@dataclass(frozen=True, slots=True)
class Writers:
    """The tasks of a run, as topics and brokers know them.

    Attributes:
        lineage: What output files are named after.
        run: What names the run to brokers: `headgate.JOB.LINEAGE`.
        tasks: What names each task: producer names on Pulsar, transactional ids on Kafka.
        are_gone: Whether no task can be alive, on this machine or another.
        leave_marks: Whether all that they wrote to brokers left a mark there.
    """

    lineage: str
    run: str
    tasks: tuple[str, ...]
    are_gone: bool = True
    leave_marks: bool = True


@dataclass(frozen=True, slots=True)
class Written:
    """What a topic holds of the batches.

    Attributes:
        rows: How many; None where that cannot be counted.
        tasks: How many tasks wrote them; None where that cannot be counted.
        why: Why it is unknown.
    """

    answer: Answer = field(metadata=alias("written"))
    rows: int | None = None
    tasks: int | None = None
    why: str = ""

    @property
    def is_possible(self) -> bool:
        """Whether the topic holds, or may hold, rows of the batches."""
        return self.answer is not Answer.NO

    def plus(self, other: Written) -> Written:
        """Return what a topic holds of these and of others."""
        if not (self.is_possible and other.is_possible):
            return self if self.is_possible else other
        is_known = Answer.UNKNOWN not in (self.answer, other.answer)
        return Written(
            Answer.YES if is_known else Answer.UNKNOWN,
            rows=_sum(self.rows, other.rows),
            tasks=_sum(self.tasks, other.tasks),
            why=self.why or other.why,
        )


NOTHING = Written(Answer.NO, rows=0, tasks=0)


def unknown(why: str) -> Written:
    """Return that a topic cannot tell, and why."""
    return Written(Answer.UNKNOWN, why=why)


MAYBE_ALIVE = unknown("executors of the run may be alive on other machines")
UNMARKED = unknown("delivery is at-least-once, which leaves no marks")


def by_tasks(count: int) -> Written:
    """Return what a topic holds if so many tasks have written."""
    return Written(Answer.YES, tasks=count) if count else NOTHING


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
