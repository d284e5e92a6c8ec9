"""Answers of the reader of state: finds where the state lies, and reads it with Spark."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headgate._codec import decode, encode
from headgate.checkpoints.restore import fork, fork_batch
from headgate.checkpoints.sparklog import read_batch
from headgate.checkpoints.stores import spark_folder
from headgate.engine.session.stores import stores_of
from headgate.errors import Domain, HeadgateError
from headgate.jobs.registry import get_job
from headgate.jobs.state.places import NOW, Place, find_asked, list_places
from headgate.jobs.state.values import (
    Held,
    StateHistory,
    StateQuestion,
    StateRows,
    StateValue,
    compare,
)

if TYPE_CHECKING:
    from headgate.engine.state.reading import FoundRows, StatePlace, StateReader

_T = TypeVar("_T")
# Files of a running job may be deleted before they are read; by then there is a newer batch.
_TRIES = 5
_PAUSE = 0.1
_FORKS = 4
MOST_ROWS = 10_000
# The next reader can answer.
OUTDATED = "STATE_READER_OUTDATED"


class Answers:
    """Answers questions on the state of the jobs of one home; from any thread.

    Args:
        folder: For folders that Spark reads; emptied.
        reader: Returns the reader of state once it has started.
        stores: The object stores that it can read.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        reader: Callable[[], StateReader],
        *,
        stores: Collection[str] = (),
    ) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._root = root
        self._folder = folder
        self._reader = reader
        self._stores = stores
        self._forks: OrderedDict[str, Path] = OrderedDict()
        self._users: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._answers: dict[str, Callable[[StateQuestion], Any]] = {
            "look_up": self._look_up,
            "history": self._history,
            "first_rows": self._first_rows,
            "query": self._query,
        }

    def answer(self, message: Mapping[str, Any]) -> Any:
        """Return the answer to a question as JSON values, or raise why there is none."""
        if message["ask"] not in self._answers:
            raise HeadgateError(
                "STATE_QUESTION_UNKNOWN",
                f"cannot answer {message['ask']!r}: the state reader does not know this request",
                hint="headgate state JOB",
            )
        question = decode(StateQuestion, message)
        return encode(_again(lambda: self._answers[question.ask](question)))

    def _look_up(self, question: StateQuestion) -> StateValue:
        place = self._find_asked(question)
        uid, key = str(question.uid), str(question.key)
        shown, [result] = self._reader().look_up([_state(place)], uid, key)
        if isinstance(result, HeadgateError):
            raise result
        deleted, value = result
        return StateValue(
            job=question.job,
            uid=uid,
            key=shown,
            checkpoint=place.checkpoint,
            moment=place.moment,
            found=value is not None,
            deleted=deleted,
            value=value,
        )

    def _history(self, question: StateQuestion) -> StateHistory:
        """Return a key's value at the retained checkpoints, and now.

        A checkpoint that cannot be read has an entry with the reason; one that is removed meanwhile
        has none.
        """
        uid, key = str(question.uid), str(question.key)
        job = get_job(self._root, question.job, verb="read the state of")
        places = list_places(job, uid)
        self._check_store(places.now)
        kept = [_state_or_problem(place) for place in places.kept]
        readable = [state for state in kept if not isinstance(state, Held)]
        shown, values = self._reader().look_up([*readable, _state(places.now)], uid, key)
        results = iter(values)
        history: list[Held] = []
        for place, state in zip((*places.kept, places.now), (*kept, None), strict=True):
            result = state if isinstance(state, Held) else next(results)
            is_removed = isinstance(place, Place) and not place.folder.exists()
            if isinstance(result, tuple):
                history.append(Held(place.checkpoint, place.moment, result[1]))
            elif not is_removed:
                problem = result.problem if isinstance(result, Held) else result.message
                history.append(Held(place.checkpoint, place.moment, problem=problem))
        return StateHistory(
            job=question.job,
            uid=uid,
            key=shown,
            entries=compare(history),
            left_off=places.left_off,
        )

    def _first_rows(self, question: StateQuestion) -> StateRows:
        place = self._find_asked(question)
        with self._at_rest(place) as rest:
            rows = self._reader().first_rows(rest, str(question.uid), _get_limit(question))
        return _rows(place, rows)

    def _query(self, question: StateQuestion) -> StateRows:
        place, limit = self._find_asked(question), _get_limit(question)
        with self._at_rest(place) as rest:
            rows = self._reader().query(rest, str(question.sql), uid=question.uid, limit=limit)
        return _rows(place, rows)

    def _find_asked(self, question: StateQuestion) -> Place:
        place = find_asked(self._root, question)
        self._check_store(place)
        return place

    def _check_store(self, place: Place) -> None:
        """Refuse a place on a store whose jars the reader was started without."""
        if not set(stores_of([place.folder])) <= set(self._stores):
            raise HeadgateError(
                OUTDATED,
                f"cannot read state in {place.folder}: the reader was started without the jars of "
                "its store",
                hint=f"headgate state {place.job}",
                domain=Domain.INTERNAL,
                retryable=True,
            )

    def close(self) -> None:
        """Remove the folders that were made for Spark."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _at_rest(self, place: Place) -> Iterator[StatePlace]:
        """Yield a place whose files do not change, as Spark's own reader requires.

        The folder stays as long as a thread reads it, and for a while after.
        """
        name = hashlib.sha256(f"{place.folder.absolute()}\n{place.batch}".encode()).hexdigest()[:24]
        with self._lock:
            if name not in self._forks:
                into = self._folder / name
                if place.checkpoint == NOW:
                    fork_batch(place.folder, place.batch, into, quick=True)
                else:
                    fork(place.folder, into, quick=True)
                self._forks[name] = into
            into = self._forks[name]
            self._forks.move_to_end(name)
            self._users[name] += 1
            self._evict()
        try:
            yield _state(place, into)
        finally:
            with self._lock:
                self._users[name] -= 1
                self._evict()

    def _evict(self) -> None:
        """Remove the oldest unused folders, down to a few; the lock must be held."""
        unused = [name for name in self._forks if not self._users[name]]
        for name in unused[: max(len(self._forks) - _FORKS, 0)]:
            shutil.rmtree(self._forks.pop(name), ignore_errors=True)
            del self._users[name]


def _again(look: Callable[[], _T]) -> _T:
    """Repeat a look that found files deleted: a running job removes old files."""
    for left in range(_TRIES, 0, -1):
        try:
            return look()
        except (HeadgateError, OSError) as error:
            if left == 1 or not _is_gone(error):
                raise
        time.sleep(_PAUSE)
    raise AssertionError("the last attempt returns or raises")


def _is_gone(error: HeadgateError | OSError) -> bool:
    if isinstance(error, OSError):
        return True
    if error.code == "CHECKPOINT_NOT_WRITTEN":
        # A file to copy is missing; the disk is not full.
        return isinstance(error.__cause__, FileNotFoundError)
    return error.code in ("STATE_UNREADABLE", "CHECKPOINT_INCOMPLETE")


def _state_or_problem(place: Place | Held) -> StatePlace | Held:
    if isinstance(place, Held):
        return place
    try:
        return _state(place)
    except HeadgateError as error:
        return Held(place.checkpoint, place.moment, problem=error.message)


def _state(place: Place, folder: Path | None = None) -> StatePlace:
    from headgate.engine.state.reading import StatePlace, StateShape

    shape = StateShape(place.flow, place.operators, place.history, place.keys)
    began = read_batch(place.folder, place.batch).timestamp_ms
    return StatePlace(folder or spark_folder(place.folder), place.batch, shape, place.ids(), began)


def _get_limit(question: StateQuestion) -> int:
    limit = question.limit or 0
    if 1 <= limit <= MOST_ROWS:
        return limit
    raise HeadgateError(
        "STATE_ROWS_OUT_OF_RANGE",
        f"cannot show {limit} rows: the number must be from 1 to {MOST_ROWS}",
        hint="request fewer, or take a portable savepoint for all of them",
    )


def _rows(place: Place, rows: FoundRows) -> StateRows:
    return StateRows(
        job=place.job,
        checkpoint=place.checkpoint,
        moment=place.moment,
        columns=rows.columns,
        types=rows.types,
        rows=tuple(tuple(row) for row in rows.rows),
        cut=rows.more,
    )
