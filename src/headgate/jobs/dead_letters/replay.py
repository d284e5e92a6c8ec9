"""Replay of dead letters: their records go back to the topics they came from, each once.

A dead letter holds the value of its record, but neither key nor headers. So the record is read
again from its topic, and sent as it was, to its partition. If the record was deleted, the letter's
own value is sent on logs without keys.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from headgate._clock import Clock, SystemClock
from headgate._codec import alias, shaped
from headgate.connectors.contract.places import PlacedRecord, Places, Send
from headgate.connectors.registry import get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.topics import Topic
from headgate.jobs.dead_letters.letter import DeadLetter, find_letter
from headgate.jobs.dead_letters.listing import get_letters
from headgate.jobs.dead_letters.replay_memory import (
    ReplayJournal,
    ReplayMemory,
    mark_record,
    open_journal,
    read_memory,
)
from headgate.jobs.dead_letters.way_back import Ownership, find_way_back
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import get_flow

# The maximum size of a batch, which is sent and recorded as sent.
_AT_ONCE = 500
_BYTES_AT_ONCE = 16 << 20
# The most letters that a result names.
_NAMED = 100


class LeftOut(enum.StrEnum):
    """Why a letter's record cannot be sent."""

    CUT = "cut"
    NO_KEY = "no-key"
    GONE = "gone"
    NO_WAY = "no-way"
    OLD_ROW = "old-row"


@dataclass(frozen=True, slots=True)
class Refused:
    """A letter whose record cannot be sent, and the reason in words."""

    id: str
    why: LeftOut
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """Which dead letters are replayed, and how.

    Attributes:
        ids: These letters; by default all that exist now.
        reason: Only letters with this reason, such as BAD_JSON.
        again: Include letters that were or may have been sent.
        without_key: Send a value without a key if its record was deleted.
        into_tables: Include rows of tables without a version, which may overwrite newer ones.
        dry_run: Count what would be sent, and send nothing.
    """

    ids: tuple[str, ...] = ()
    reason: str | None = None
    again: bool = False
    without_key: bool = False
    into_tables: bool = False
    dry_run: bool = False

    def has(self, letter: DeadLetter) -> bool:
        return self.reason is None or letter.reason == self.reason.upper()


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """The progress of a replay: letters read, their maximum if known, and records sent."""

    looked_at: int
    total: int | None
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of a replay.

    Attributes:
        sent: Acknowledged records by topic; in a dry run, records that would be sent.
        without_key: How many of them were sent without their message key, which is lost.
        skipped: Letters whose records had been sent before, maybe for another letter.
        in_doubt: Letters of an interrupted replay, whose records may have arrived: not sent.
        doubts: The first of them.
        refused: Records that cannot be sent, by reason.
        named: The first of their letters.
    """

    job: str
    dry_run: bool
    sent: dict[str, int] = field(metadata=alias("sent_to"))
    without_key: int
    skipped: int
    in_doubt: int
    doubts: tuple[str, ...] = field(metadata=alias("in_doubt_ids"))
    refused: dict[str, int] = field(metadata=alias("refused_for"))
    named: tuple[Refused, ...] = field(metadata=alias("refused_letters"))

    __get_pydantic_core_schema__ = shaped(computed={"sent": "total", "refused": "refused_total"})

    @property
    def total(self) -> int:
        return sum(self.sent.values())

    @property
    def refused_total(self) -> int:
        return sum(self.refused.values())


def replay_dead_letters(
    home: JobFolder,
    request: ReplayRequest,
    *,
    by: str,
    progress: Callable[[ReplayProgress], None] | None = None,
    clock: Clock | None = None,
) -> Replayed:
    """Send the records of dead letters again, to the topics they came from.

    Each batch is recorded before it is sent and when it is acknowledged. Letters of an interrupted
    replay are reported, and not sent again.

    Args:
        by: The user, for the job's records.
        progress: Called after each batch.

    Raises:
        HeadgateError: JOB_NEVER_RAN, DEAD_LETTER_NOT_FOUND, REPLAY_RUNNING; errors of reading and
            sending, after which some records may have arrived.
    """
    graph = get_flow(home, doing="replay dead letters of")
    places = get_connector(graph.dead_letters).open_places(graph.dead_letters)
    letters: Iterable[DeadLetter] = (
        get_letters(home, graph, places, request.ids)
        if request.ids
        else _all(places, Ownership(home.name, graph))
    )
    with ExitStack() as stack:
        journal: ReplayJournal | None = None
        if not request.dry_run:
            journal = stack.enter_context(open_journal(home, by=by, clock=clock or SystemClock()))
        memory = read_memory(home) if journal is None else journal.memory
        replay = _Replay(request, graph, memory, journal, stack)
        for batch in _batches(letter for letter in letters if request.has(letter)):
            replay.take(batch)
            if progress is not None:
                sent = sum(replay.sent.values())
                progress(ReplayProgress(replay.looked_at, len(request.ids) or None, sent))
    return replay.result(home.name)


def _all(places: Places, ownership: Ownership) -> Iterator[DeadLetter]:
    """Yield all present letters of a job, oldest first within each part of the topic."""
    try:
        stretches = places.stretches()
    except HeadgateError as error:
        if error.code != "TOPIC_NOT_FOUND":
            raise
        stretches = []
    for stretch in stretches:
        for record in places.read(stretch):
            letter = find_letter(record)
            if letter is not None and ownership.has(letter.kind):
                yield letter


def _batches(letters: Iterable[DeadLetter]) -> Iterator[list[DeadLetter]]:
    batch: list[DeadLetter] = []
    size = 0
    for letter in letters:
        if batch and (len(batch) >= _AT_ONCE or size + letter.size > _BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(letter)
        size += letter.size
    if batch:
        yield batch


@dataclass(slots=True)
class _Open:
    """A topic that records go back to."""

    topic: Topic
    places: Places
    send: Send | None = None


@dataclass(slots=True)
class _Replay:
    """A running replay."""

    request: ReplayRequest
    graph: Graph
    memory: ReplayMemory
    # None in a dry run.
    journal: ReplayJournal | None
    stack: ExitStack
    looked_at: int = 0
    skipped: int = 0
    keyless: int = 0
    sent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refused: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    named: list[Refused] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    in_doubt: int = 0
    opened: dict[str, _Open] = field(default_factory=dict)
    # The marks of the records of this replay: each is sent once, even with `again`.
    taken: set[str] = field(default_factory=set)

    def take(self, letters: Sequence[DeadLetter]) -> None:
        """Send the records of some letters."""
        self.looked_at += len(letters)
        by_topic: dict[str, list[DeadLetter]] = defaultdict(list)
        for letter in letters:
            way = find_way_back(self.graph, letter)
            if not self._is_due(letter, way.topic):
                continue
            if way.topic is None:
                self._refuse(letter, LeftOut.NO_WAY, way.why_not)
                continue
            if way.table and not self.request.into_tables:
                words = (
                    f"table {way.table!r} has no version column, so its row would replace a newer "
                    "one (--into-tables sends it)"
                )
                self._refuse(letter, LeftOut.OLD_ROW, words)
                continue
            name = way.topic.describe()
            if name not in self.opened:
                self.opened[name] = _Open(
                    way.topic, get_connector(way.topic).open_places(way.topic)
                )
            by_topic[name].append(letter)
        for name, some in by_topic.items():
            self._send(self.opened[name], some)

    def result(self, job: str) -> Replayed:
        return Replayed(
            job=job,
            dry_run=self.request.dry_run,
            sent=dict(self.sent),
            without_key=self.keyless,
            skipped=self.skipped,
            in_doubt=self.in_doubt,
            doubts=tuple(self.doubts),
            refused=dict(self.refused),
            named=tuple(self.named),
        )

    def _is_due(self, letter: DeadLetter, topic: Topic | None) -> bool:
        before = self.memory.find(letter, None if topic is None else topic.name)
        if before is None or self.request.again:
            return True
        if before.is_sure:
            self.skipped += 1
        else:
            self.in_doubt += 1
            self.doubts += [letter.id] if len(self.doubts) < _NAMED else []
        return False

    def _refuse(self, letter: DeadLetter, why: LeftOut, words: str) -> None:
        self.refused[why.value] += 1
        if len(self.named) < _NAMED:
            self.named.append(Refused(letter.id, why, words))

    def _send(self, to: _Open, letters: Sequence[DeadLetter]) -> None:
        originals = to.places.find_spots({(letter.partition, letter.offset) for letter in letters})
        due: list[tuple[DeadLetter, PlacedRecord]] = []
        for letter in letters:
            mark = mark_record(to.topic.name, letter)
            if mark in self.taken:
                self.skipped += 1
                continue
            record = self._record(to, letter, originals.get((letter.partition, letter.offset)))
            if record is not None:
                self.taken.add(mark)
                due.append((letter, record))
        if not due:
            return
        if self.journal is not None:
            if to.send is None:
                to.send = self.stack.enter_context(to.places.sending())
            batch = self.journal.begin(to.topic.name, [letter for letter, _ in due])
            to.send([record for _, record in due])
            self.journal.finish(batch)
        self.sent[to.topic.name] += len(due)

    def _record(
        self, to: _Open, letter: DeadLetter, original: PlacedRecord | None
    ) -> PlacedRecord | None:
        """Return the record to send for a letter; None if it is refused."""
        if original is not None and _is_same(letter, original):
            return original
        if letter.of_row:
            words = "its row failed inside the flow, and its record has been deleted"
            self._refuse(letter, LeftOut.GONE, words)
        elif letter.cut:
            words = (
                f"it holds {len(letter.raw or b'')} of the {letter.size} bytes of its record, "
                "which has been deleted"
            )
            self._refuse(letter, LeftOut.CUT, words)
        elif not get_connector(to.topic).has_keys:
            return _of_letter(letter, partition=0)
        elif not self.request.without_key:
            words = "its record has been deleted, and with it its message key"
            self._refuse(letter, LeftOut.NO_KEY, words)
        else:
            self.keyless += 1
            return _of_letter(letter, partition=letter.partition)
        return None


def _is_same(letter: DeadLetter, record: PlacedRecord) -> bool:
    """Tell whether a record is that of a letter: its topic may have been recreated."""
    if record.timestamp != letter.timestamp:
        return False
    if letter.of_row:
        return True
    if record.value is None or letter.raw is None:
        return record.value is None and letter.raw is None
    return len(record.value) == letter.size and record.value.startswith(letter.raw)


def _of_letter(letter: DeadLetter, *, partition: int) -> PlacedRecord:
    return PlacedRecord(
        place=letter.id,
        partition=partition,
        timestamp=letter.timestamp,
        key=None,
        value=letter.raw,
    )
