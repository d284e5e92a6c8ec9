"""Dead letters as an operator sees them: how many of which kind, one of them whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.connectors.places import Places
from headgate.connectors.registry import get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.jobs.dead_letters.letter import DeadLetter, find_letter
from headgate.jobs.dead_letters.ownership import Ownership
from headgate.jobs.dead_letters.replay_memory import ReplayMemory, read_memory
from headgate.jobs.dead_letters.tally import AT_MOST, Counting, Tally
from headgate.jobs.dead_letters.way_back import find_way_back, topics_of_operators
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import get_flow

# How far a list looks back for letters of one reason.
_LOOK_BACK = 100_000
_STEP_BACK = 8

_COUNTING = Counting()


@dataclass(frozen=True, slots=True)
class LetterCount:
    """How many letters there are of one kind; the topic is that of their records."""

    topic: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """The dead letters of a job.

    Attributes:
        topic: Their topic.
        log: Where it is, as `--on` names it.
        total: How many there are, of every reason.
        at_least: Whether there may be more: of very many only the newest are counted.
        counts: By topic and reason, most first.
        letters: The newest ones, newest first; of the reason that was asked for.
        foreign: How many records of the topic are no dead letters.
        others: How many letters of the topic are of other jobs; they are not among the rest.
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
    """Return how many dead letters a job has, by topic and reason, and the newest of them.

    Args:
        reason: Show letters of this reason alone, such as BAD_JSON; all are counted.
        limit: How many letters to show.
        count_up_to: How many are read for the counts at most, the newest ones.

    Raises:
        HeadgateError: JOB_NEVER_RAN; what reading the log raises.
    """
    graph = get_flow(home, doing="list the dead letters of")
    topic, ownership = graph.dead_letters, Ownership(home.name, graph)
    connector = get_connector(topic)
    places, log = connector.open_places(topic), connector.where(topic)
    try:
        tally = _COUNTING.count(f"{log} {topic.name}", places, at_most=count_up_to)
        letters = _newest(places, ownership, reason, limit) if tally.counts else []
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
        letters=tuple(_placed(_told(memory, graph, each), topics).shorten() for each in letters),
        foreign=tally.foreign,
        others=tally.counts.total() - counts.total(),
    )


def get_dead_letter(home: JobFolder, id: str) -> DeadLetter:  # noqa: A002
    """Return one dead letter, whole.

    Raises:
        HeadgateError: JOB_NEVER_RAN, DEAD_LETTER_NOT_FOUND; what reading raises.
    """
    graph = get_flow(home, doing="show a dead letter of")
    places = get_connector(graph.dead_letters).open_places(graph.dead_letters)
    (found,) = get_letters(home, graph, places, [id])
    return _placed(found, topics_of_operators(graph))


def get_letters(
    home: JobFolder, graph: Graph, places: Places, ids: Sequence[str]
) -> list[DeadLetter]:
    """Return the letters of these ids in their order, with what is known of their replays.

    Raises:
        HeadgateError: DEAD_LETTER_NOT_FOUND.
    """
    try:
        records = places.find(ids)
    except HeadgateError as error:
        if error.code != "TOPIC_NOT_FOUND":
            raise
        records = {}
    found = {place: find_letter(record) for place, record in records.items()}
    memory, letters, ownership = read_memory(home), [], Ownership(home.name, graph)
    for each in dict.fromkeys(ids):
        letter = found.get(each)
        if letter is None or not ownership.has(letter):
            what = f"cannot find dead letter {each!r} of job {home.name!r}"
            why = "there is none at that place, or it is not kept any more"
            if letter is not None:
                why = f"it is of job {letter.job!r}" if letter.job else "it is of another job"
            raise HeadgateError(
                "DEAD_LETTER_NOT_FOUND",
                f"{what}: {why}",
                hint=f"headgate dead-letters {home.name} list",
            )
        letters.append(_told(memory, graph, letter))
    return letters


def _told(memory: ReplayMemory, graph: Graph, letter: DeadLetter) -> DeadLetter:
    """Return a letter with what is known of the replay of its record."""
    topic = find_way_back(graph, letter).topic
    return memory.tell(letter, None if topic is None else topic.name)


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
        mine = [each for each in letters if ownership.has(each)]
        wanted = [each for each in mine if reason is None or each.reason == reason.upper()]
        if len(wanted) >= limit or len(records) < span or span >= _LOOK_BACK:
            return wanted[::-1][:limit]
        span *= _STEP_BACK
    return []
