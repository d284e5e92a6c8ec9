"""What the reader of state answers: finds where the state lies, and has it read."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headgate._codec import encode
from headgate.checkpoints.restore import fork, fork_batch
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.registry import get_job
from headgate.jobs.state.places import (
    NOW,
    Place,
    Unread,
    check_form,
    check_operator,
    find_place,
    list_places,
)
from headgate.jobs.state.values import Held, StateHistory, StateRows, StateValue, compare

if TYPE_CHECKING:
    from headgate.engine.state_reading import FoundRows, StatePlace, StateReader

_T = TypeVar("_T")
# Files of a job that runs may be gone before they are read; by then there is a newer batch.
_TRIES = 5
_PAUSE = 0.1
_FORKS = 4
MOST_ROWS = 10_000


class Answers:
    """Answers questions on the state of the jobs of one home; from any thread.

    Args:
        folder: For folders that Spark reads; emptied.
        reader: Gives the reader of state once it is there.
    """

    def __init__(self, root: Path, folder: Path, reader: Callable[[], StateReader]) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._root = root
        self._folder = folder
        self._reader = reader
        self._forks: OrderedDict[str, Path] = OrderedDict()
        self._users: Counter[str] = Counter()
        self._lock = threading.Lock()

    def answer(self, question: Mapping[str, Any]) -> Any:
        """Return the answer to a question as JSON values.

        Raises:
            HeadgateError: There is none, and why.
        """
        asked = {name: value for name, value in question.items() if name != "ask"}
        match question["ask"]:
            case "look_up":
                return encode(self.look_up(**asked))
            case "history":
                return encode(self.history(**asked))
            case "first_rows":
                return encode(self.first_rows(**asked))
            case "query":
                return encode(self.query(**asked))
            case other:
                raise HeadgateError(
                    "STATE_QUESTION_UNKNOWN",
                    f"cannot answer {other!r}: the state reader does not know this request",
                    hint="headgate state JOB",
                )

    def _job(self, name: str) -> JobFolder:
        return get_job(self._root, name, verb="read the state of")

    def look_up(self, job: str, uid: str, key: str, at: str | None) -> StateValue:
        """Return what an operator holds under a key."""

        def look() -> StateValue:
            place = find_place(self._job(job), at)
            check_operator(place, uid)
            shown, [found] = self._reader().look_up([_state(place)], uid, key)
            if isinstance(found, HeadgateError):
                raise found
            deleted, value = found
            return StateValue(
                job=job,
                uid=uid,
                key=shown,
                checkpoint=place.checkpoint,
                moment=place.moment,
                found=value is not None,
                deleted=deleted,
                value=value,
            )

        return _again(look)

    def history(self, job: str, uid: str, key: str) -> StateHistory:
        """Return what an operator held under a key at the retained checkpoints, and now.

        One that cannot be read says so in its entry; one that is removed meanwhile has none.
        """

        def look() -> StateHistory:
            places = list_places(self._job(job), uid)
            kept = [_state_or_unread(each) for each in places.kept]
            states = [each for each in kept if not isinstance(each, Unread)]
            shown, found = self._reader().look_up([*states, _state(places.now)], uid, key)
            results = iter(found)
            held: list[Held] = []
            for place, each in zip((*places.kept, places.now), (*kept, None), strict=True):
                result = each if isinstance(each, Unread) else next(results)
                if not isinstance(result, tuple) and _is_removed(place):
                    continue
                held.append(_held(place, result))
            return StateHistory(
                job=job, uid=uid, key=shown, entries=compare(held), left_off=places.left_off
            )

        return _again(look)

    def first_rows(self, job: str, uid: str, at: str | None, limit: int) -> StateRows:
        """Return the first rows that an operator holds."""

        def look() -> StateRows:
            place = find_place(self._job(job), at)
            check_operator(place, uid)
            with self._at_rest(place) as rest:
                return _rows(place, self._reader().first_rows(rest, uid, _bounded(limit)))

        return _again(look)

    def query(self, job: str, sql: str, uid: str | None, at: str | None, limit: int) -> StateRows:
        """Return what a query over state gives."""

        def look() -> StateRows:
            place = find_place(self._job(job), at)
            check_form(place)
            if uid is not None:
                check_operator(place, uid)
            with self._at_rest(place) as rest:
                found = self._reader().query(rest, sql, uid=uid, limit=_bounded(limit))
            return _rows(place, found)

        return _again(look)

    def close(self) -> None:
        """Remove what was made for Spark."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _at_rest(self, place: Place) -> Iterator[StatePlace]:
        """Give a place whose folder Spark's own reader takes: it wants one that stands still.

        The folder stays as long as somebody reads it, and for a while after.
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
        """Remove the oldest folders that nobody reads, down to a few; the lock must be held."""
        unused = [name for name in self._forks if not self._users[name]]
        for name in unused[: max(len(self._forks) - _FORKS, 0)]:
            shutil.rmtree(self._forks.pop(name), ignore_errors=True)
            del self._users[name]


def _again(look: Callable[[], _T]) -> _T:
    """Look again where files were gone: a job that runs clears up behind itself."""
    for left in range(_TRIES, 0, -1):
        try:
            return look()
        except (HeadgateError, OSError) as error:
            if left == 1 or not _is_gone(error):
                raise
        time.sleep(_PAUSE)
    raise AssertionError("the last try returns or raises")


def _is_gone(error: HeadgateError | OSError) -> bool:
    if isinstance(error, OSError):
        return True
    if error.code == "CHECKPOINT_NOT_WRITTEN":
        # A file that was to be brought along, and not the disk.
        return isinstance(error.__cause__, FileNotFoundError)
    return error.code in ("STATE_UNREADABLE", "CHECKPOINT_INCOMPLETE")


def _is_removed(place: Place | Unread) -> bool:
    """Tell whether a checkpoint was removed while it was read."""
    return isinstance(place, Place) and not place.folder.exists()


def _held(place: Place | Unread, result: tuple[bool, Any] | HeadgateError | Unread) -> Held:
    match result:
        case HeadgateError():
            problem = result.message
        case Unread():
            problem = result.problem
        case (deleted, value):
            return Held(place.checkpoint, place.moment, deleted, value)
    return Held(place.checkpoint, place.moment, deleted=False, value=None, problem=problem)


def _state_or_unread(place: Place | Unread) -> StatePlace | Unread:
    if isinstance(place, Unread):
        return place
    try:
        return _state(place)
    except HeadgateError as error:
        return Unread(place.checkpoint, place.moment, error.message)


def _state(place: Place, folder: Path | None = None) -> StatePlace:
    from headgate.engine.state_reading import StatePlace, StateShape

    shape = StateShape(place.flow, place.operators, place.history, place.keys)
    return StatePlace(folder or place.folder, place.batch, shape, place.ids())


def _bounded(limit: int) -> int:
    if 1 <= limit <= MOST_ROWS:
        return limit
    raise HeadgateError(
        "STATE_ROWS_OUT_OF_RANGE",
        f"cannot show {limit} rows: the number must be from 1 to {MOST_ROWS}",
        hint="request fewer, or take a portable savepoint for all of them",
    )


def _rows(place: Place, found: FoundRows) -> StateRows:
    return StateRows(
        job=place.job,
        checkpoint=place.checkpoint,
        moment=place.moment,
        columns=found.columns,
        types=found.types,
        rows=tuple(tuple(row) for row in found.rows),
        cut=found.more,
    )
