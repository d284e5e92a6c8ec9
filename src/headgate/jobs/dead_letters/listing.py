"""The dead letters of a job: counted by kind, listed, and one with its whole record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.connectors.contract.places import Places
from headgate.connectors.registry import get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.jobs.dead_letters.letter import DeadLetter, find_letter
from headgate.jobs.dead_letters.replay_memory import ReplayMemory, read_memory
from headgate.jobs.dead_letters.tally import AT_MOST, Counting, Tally
from headgate.jobs.dead_letters.way_back import Ownership, find_way_back, topics_of_operators
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import get_flow

# The most records in which letters of one reason are searched.
_LOOK_BACK = 100_000
_STEP_BACK = 8

_COUNTING = Counting()


@dataclass(frozen=True, slots=True)
class LetterCount:
    """The number of letters by reason and by the topic of their records."""

    topic: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """The dead letters of a job.

    Attributes:
        topic: Their topic.
        log: The log of the topic, as `--on` names it.
        total: The number of letters, of every reason.
        at_least: Whether there may be more: only the newest are counted.
        counts: By topic and reason, largest first.
        letters: The newest ones of the requested reason, newest first.
        foreign: The number of other records in the topic.
        others: The number of other jobs' letters in the topic, which no other field includes.
    """

    job: str
    topic: str
    log: str
    total: int
    at_least: bool
    counts: tuple[LetterCount, ...]
    letters: tuple[DeadLetter, ...]
    foreign: int
    others: int = 0


def list_dead_letters(
    home: JobFolder, *, reason: str | None = None, limit: int = 100, count_up_to: int = AT_MOST
) -> DeadLetters:
    """Return the number of a job's dead letters, by topic and reason, and the newest ones.

    Args:
        reason: List only letters with this reason, such as BAD_JSON; all are counted.
        limit: The maximum number of listed letters.
        count_up_to: The maximum number of letters that are read for the counts.

    Raises:
        HeadgateError: JOB_NEVER_RAN; errors of reading the log.
    """
    graph = get_flow(home, doing="list the dead letters of")
    topic, ownership = graph.dead_letters, Ownership(home.name, graph)
    connector = get_connector(topic)
    places, log = connector.open_places(topic), connector.where(topic)
    try:
        tally = _COUNTING.count(f"{log} {topic.name}", places, at_most=count_up_to)
        wanted = None if reason is None else reason.upper()
        letters = _newest(places, ownership, wanted, limit) if tally.counts else []
    except HeadgateError as error:
        if error.code != "TOPIC_NOT_FOUND":
            raise
        tally, letters = Tally(), []
    memory, topics = read_memory(home), topics_of_operators(graph)
    counts: Counter[tuple[str, str]] = Counter()
    for kind, count in tally.counts.items():
        if ownership.has(kind):
            origin = kind.topic or topics.get(kind.source, kind.source)
            counts[origin, kind.reason] += count
    return DeadLetters(
        job=home.name,
        topic=topic.name,
        log=log,
        total=counts.total(),
        at_least=not tally.is_all,
        counts=tuple(LetterCount(*kind, count) for kind, count in counts.most_common()),
        letters=tuple(
            _placed(_with_replay(memory, graph, letter), topics).shorten() for letter in letters
        ),
        foreign=tally.foreign,
        others=tally.counts.total() - counts.total(),
    )


def get_dead_letter(home: JobFolder, id: str) -> DeadLetter:  # noqa: A002
    """Return one dead letter with its whole record.

    Raises:
        HeadgateError: JOB_NEVER_RAN, DEAD_LETTER_NOT_FOUND; errors of reading the log.
    """
    graph = get_flow(home, doing="show a dead letter of")
    places = get_connector(graph.dead_letters).open_places(graph.dead_letters)
    (letter,) = get_letters(home, graph, places, [id])
    return _placed(letter, topics_of_operators(graph))


def get_letters(
    home: JobFolder, graph: Graph, places: Places, ids: Sequence[str]
) -> list[DeadLetter]:
    """Return the letters of these ids in their order, with their replays.

    Raises:
        HeadgateError: DEAD_LETTER_NOT_FOUND.
    """
    try:
        records = places.find(ids)
    except HeadgateError as error:
        if error.code != "TOPIC_NOT_FOUND":
            raise
        records = {}
    memory, letters, ownership = read_memory(home), [], Ownership(home.name, graph)
    for place in dict.fromkeys(ids):
        letter = find_letter(records[place]) if place in records else None
        if letter is None or not ownership.has(letter.kind):
            why = "there is none at that place, or it has been deleted"
            if letter is not None:
                why = f"it is of job {letter.job!r}" if letter.job else "it is of another job"
            raise HeadgateError(
                "DEAD_LETTER_NOT_FOUND",
                f"cannot find dead letter {place!r} of job {home.name!r}: {why}",
                hint=f"headgate dead-letters {home.name} list",
            )
        letters.append(_with_replay(memory, graph, letter))
    return letters


def _with_replay(memory: ReplayMemory, graph: Graph, letter: DeadLetter) -> DeadLetter:
    """Return a letter with the last replay of its record."""
    topic = find_way_back(graph, letter).topic
    replay = memory.find(letter, None if topic is None else topic.name)
    if replay is None:
        return letter
    return replace(
        letter, replayed_at=replay.at, replayed_by=replay.by, in_doubt=not replay.is_sure
    )


def _placed(letter: DeadLetter, topics: Mapping[str, str]) -> DeadLetter:
    """Return a letter of a row with the topic of the row's record."""
    if not letter.of_row or letter.topic:
        return letter
    return replace(letter, topic=topics.get(letter.source, ""))


def _newest(
    places: Places, ownership: Ownership, reason: str | None, limit: int
) -> list[DeadLetter]:
    """Return the newest letters of a job and a reason, newest first."""
    span = limit
    while limit:
        records = places.last(span)
        letters = [letter for record in records if (letter := find_letter(record)) is not None]
        wanted = [
            letter
            for letter in letters
            if ownership.has(letter.kind) and reason in (None, letter.reason)
        ]
        if len(wanted) >= limit or len(records) < span or span >= _LOOK_BACK:
            return wanted[::-1][:limit]
        span *= _STEP_BACK
    return []
