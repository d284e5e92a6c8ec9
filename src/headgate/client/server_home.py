"""The jobs of a server, over REST."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from headgate._codec import encode, shaped
from headgate.checkpoints.checkpoint import AnyCheckpoint, by_age
from headgate.client.connection import Connection
from headgate.client.home import Home
from headgate.client.operations import wait_for
from headgate.connectors.contract.topics import TopicSummary
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.portable import PortableSavepoint
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.requests import Patience
from headgate.jobs.control.verbs import Loss, Savepoint, Stopped
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import Replayed, ReplayProgress, ReplayRequest
from headgate.jobs.removal.deletion import Deletion
from headgate.jobs.removal.pruning import Pruning
from headgate.jobs.startup.background import Detached
from headgate.jobs.state.values import State, StateOverview, StateQuestion
from headgate.jobs.values import NO_CONSENT, Consent
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.job import JobDetails, JobView
from headgate.jobs.views.log_search import LogFilter, LogMatches
from headgate.jobs.views.logs import Log, LogPage
from headgate.jobs.views.processes import Processes

_FOLLOW_EVERY = timedelta(seconds=1)
# The most checkpoints that a server returns at once.
_PAGE = 1_000
# A server that gives up reports its own error.
_LONGEST_REPLAY = timedelta(days=7)
# A job's state may be terabytes of files.
_LONGEST_DELETE = timedelta(hours=6)

_Value = TypeVar("_Value")


# Responses that are not values of a home.
@dataclass(frozen=True, slots=True)
class _Jobs:
    jobs: list[JobView]


@dataclass(frozen=True, slots=True)
class _Topics:
    topics: list[TopicSummary]


@dataclass(frozen=True, slots=True)
class _Records:
    records: list[str]


@dataclass(frozen=True, slots=True)
class _Checkpoints:
    checkpoints: list[AnyCheckpoint]
    more: bool
    next: str | None = None


@dataclass(frozen=True, slots=True)
class _Restored:
    started: Detached
    restored: RestorePlan

    __get_pydantic_core_schema__ = shaped(flatten="started")


class ServerState(State):
    """The state of a server's jobs."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    def _ask(self, kind: type[_Value], question: StateQuestion) -> _Value:
        path, asked = ("jobs", question.job, "state"), encode(question)
        del asked["ask"], asked["job"]
        if question.ask == "query":
            answer = self._server.send("POST", *path, "sql", body=asked, patient=True)
        else:
            uid, last = asked.pop("uid"), {"look_up": "value", "first_rows": "rows"}
            part = last.get(question.ask, question.ask)
            answer = self._server.get(*path, uid, part, patient=True, **asked)
        return self._server.parse(kind, answer)


class ServerHome(Home):
    """The jobs of a server."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    @property
    def where(self) -> str:
        return self._server.url

    @property
    def state(self) -> State:
        return ServerState(self._server)

    def jobs(self) -> list[JobView]:
        return self._get(_Jobs, "jobs").jobs

    def names(self) -> list[str]:
        return sorted(job.name for job in self.jobs())

    def job(self, job: str) -> JobView:
        return self._get(JobDetails, "jobs", job).view

    def details(self, job: str) -> JobDetails:
        details = self._get(JobDetails, "jobs", job)
        try:
            return replace(details, checkpoints=tuple(self.checkpoints(job)))
        except HeadgateError as error:
            if error.code not in ("STORE_UNAVAILABLE", "STORE_REFUSED"):
                raise
            return replace(details, unlisted=error.message)

    def start(self, job: str, *, consent: Consent = NO_CONSENT) -> Detached:
        return self._post(Detached, job, "start", encode(consent))

    def stop(
        self,
        job: str,
        *,
        savepoint: str | None = None,
        drain: bool = False,
        patience: Patience | None = None,
    ) -> Stopped:
        if savepoint:
            raise _own_folder(f"stop job {job!r} with a savepoint", "--savepoint")
        body = {"drain": drain, "savepoint": savepoint is not None}
        return self._post(Stopped, job, "stop", body, patience)

    def cancel(self, job: str, *, patience: Patience | None = None) -> JobView:
        return self._post(JobView, job, "cancel", {}, patience)

    def preview_cancel(self, job: str) -> Loss:
        return self._post(Loss, job, "cancel", {"dry_run": True})

    def delete(self, job: str, *, keep_savepoints: bool = False) -> Deletion:
        answer = self._server.send("DELETE", "jobs", job, keep_savepoints=keep_savepoints)
        patience = Patience(longest=_LONGEST_DELETE)
        # Once the job is gone, nothing can be asked about it.
        result = wait_for(
            self._server, answer, verb=f"delete job {job!r}", patience=patience, look=None
        )
        return self._server.parse(Deletion, result)

    def preview_delete(self, job: str, *, keep_savepoints: bool = False) -> Deletion:
        answer = self._server.send(
            "DELETE", "jobs", job, keep_savepoints=keep_savepoints, dry_run=True
        )
        return self._server.parse(Deletion, answer)

    def prune(self, job: str, *, drop_checkpoints: bool = False, dry_run: bool = False) -> Pruning:
        body = {"drop_checkpoints": drop_checkpoints, "dry_run": dry_run}
        return self._post(Pruning, job, "prune", body, Patience(longest=_LONGEST_DELETE))

    def restart(
        self, job: str, *, patience: Patience | None = None, consent: Consent = NO_CONSENT
    ) -> Detached:
        return self._post(Detached, job, "restart", encode(consent), patience)

    def pause(self, job: str, *, patience: Patience | None = None) -> JobView:
        return self._post(JobView, job, "pause", {}, patience)

    def resume(self, job: str, *, patience: Patience | None = None) -> JobView:
        return self._post(JobView, job, "resume", {}, patience)

    def take_savepoint(
        self, job: str, *, to: str | Path | None = None, patience: Patience | None = None
    ) -> Savepoint:
        return self._take(Savepoint, job, to, patience)

    def take_portable_savepoint(
        self, job: str, *, to: str | Path | None = None, patience: Patience | None = None
    ) -> PortableSavepoint:
        return self._take(PortableSavepoint, job, to, patience)

    def checkpoints(self, job: str, *, every_run: bool = False) -> list[AnyCheckpoint]:
        listed: list[AnyCheckpoint] = []
        page = _Checkpoints([], more=True)
        while page.more:
            page = self._get(
                _Checkpoints,
                *("jobs", job, "checkpoints"),
                every_run=every_run,
                limit=_PAGE,
                after=page.next,
            )
            listed += page.checkpoints
        return sorted(listed, key=by_age)

    def checkpoint(self, job: str, checkpoint: str) -> AnyCheckpoint:
        name, run = _split(checkpoint)
        return self._checkpoint(self._server.get("jobs", job, "checkpoints", name, run=run))

    def pin(self, job: str, checkpoint: str, *, pinned: bool) -> AnyCheckpoint:
        method = "PUT" if pinned else "DELETE"
        name, run = _split(checkpoint)
        path = ("jobs", job, "checkpoints", name, "pin")
        answer = self._server.send(method, *path, run=run)
        return self._checkpoint(self._wait(answer, "pin", job))

    def preview_restore(
        self, job: str, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> RestorePlan:
        return self._post(RestorePlan, job, "restore", _restore(source, at, drop, dry_run=True))

    def restore(
        self, job: str, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> tuple[RestorePlan, Detached]:
        """Go back to a checkpoint, and run on from there on the server."""
        done = self._post(_Restored, job, "restore", _restore(source, at, drop, dry_run=False))
        return done.restored, done.started

    def submit(
        self,
        flow: str,
        settings: Mapping[str, Any],
        *,
        fresh: bool = False,
        restore_from: str | None = None,
        consent: Consent = NO_CONSENT,
        patience: Patience | None = None,
    ) -> Detached:
        """Run a flow of the server's flows folder as a job there.

        Args:
            flow: The path of its file in that folder.
            settings: By the names of headgate.toml and in its terms.
        """
        body = {"flow": flow, "settings": dict(settings), "fresh": fresh, **encode(consent)}
        body["restore_from"] = restore_from
        answer = self._server.send_once("POST", "jobs", key=uuid.uuid4().hex, body=body)
        verb = f"run {flow}"
        result = wait_for(self._server, answer, verb=verb, patience=patience, look=None)
        return self._server.parse(Detached, result)

    def processes(self, job: str) -> Processes:
        return self._get(Processes, "jobs", job, "processes")

    def tail_log(
        self, job: str, log: Log, *, last: int, executor: str | None = None
    ) -> list[bytes]:
        return [line.encode() for line in self._page(job, log, last, executor=executor).lines]

    def follow_log(
        self, job: str, log: Log, *, last: int, executor: str | None = None
    ) -> Iterator[bytes]:
        clock = Patience().clock
        page = self._page(job, log, last, executor=executor)
        while True:
            yield from (line.encode() for line in page.lines)
            if not page.lines:
                clock.sleep(_FOLLOW_EVERY)
            try:
                page = self._page(job, log, last, page.position, executor=executor)
            except HeadgateError as error:
                # While a log is rolled, its file is missing for a moment.
                if error.code != "LOG_NOT_FOUND":
                    raise
                page = LogPage((), page.position)

    def search_log(
        self, job: str, log: Log, wanted: LogFilter, *, last: int, executor: str | None = None
    ) -> LogMatches:
        query = {"log": log.value, "text": wanted.text, "level": wanted.level, "limit": last}
        query["executor"] = executor
        return self._get(LogMatches, "jobs", job, "logs", "search", patient=True, **query)

    def list_topics(self) -> list[TopicSummary]:
        """Return the topics of the server's log, by name."""
        return self._get(_Topics, "topics").topics

    def tail_topic(self, topic: str, *, last: int) -> list[bytes]:
        """Return the last records of a topic of the server's log."""
        answer = self._get(_Records, "topics", topic, "records", limit=last)
        return [record.encode() for record in answer.records]

    def graph(self, job: str) -> GraphView:
        return self._get(GraphView, "jobs", job, "graph")

    def events(self, job: str, *, after: int | None = None, limit: int = 200) -> Events:
        return self._get(Events, "jobs", job, "events", after=after, limit=limit)

    def exceptions(self, job: str) -> Exceptions:
        return self._get(Exceptions, "jobs", job, "exceptions")

    def operators(self, job: str, *, at: str | None = None) -> StateOverview:
        return self._get(StateOverview, "jobs", job, "state", at=at)

    def dead_letters(self, job: str, *, reason: str | None = None, limit: int = 100) -> DeadLetters:
        path = ("jobs", job, "dead-letters")
        return self._get(DeadLetters, *path, patient=True, reason=reason, limit=limit)

    def dead_letter(self, job: str, letter: str) -> DeadLetter:
        return self._get(DeadLetter, "jobs", job, "dead-letters", letter, patient=True)

    def replay_dead_letters(
        self,
        job: str,
        request: ReplayRequest,
        *,
        by: str,  # noqa: ARG002 - the server knows the user from the token
        progress: Callable[[ReplayProgress], None] | None = None,  # noqa: ARG002 - not over HTTP
    ) -> Replayed:
        path = ("jobs", job, "dead-letters", "replay")
        answer = self._server.send("POST", *path, body=encode(request))
        result = self._wait(answer, "replay", job, Patience(longest=_LONGEST_REPLAY))
        return self._server.parse(Replayed, result)

    def _get(self, kind: type[_Value], *path: str, patient: bool = False, **query: Any) -> _Value:
        return self._server.parse(kind, self._server.get(*path, patient=patient, **query))

    def _post(
        self,
        kind: type[_Value],
        job: str,
        verb: str,
        body: Mapping[str, Any],
        patience: Patience | None = None,
    ) -> _Value:
        answer = self._server.send("POST", "jobs", job, verb, body=body)
        return self._server.parse(kind, self._wait(answer, verb, job, patience))

    def _take(
        self, kind: type[_Value], job: str, to: str | Path | None, patience: Patience | None
    ) -> _Value:
        if to is not None:
            raise _own_folder(f"take a savepoint of job {job!r}", "--to")
        body = {"portable": kind is PortableSavepoint}
        answer = self._server.send("POST", "jobs", job, "savepoints", body=body)
        return self._server.parse(kind, self._wait(answer, "savepoint", job, patience))

    def _wait(self, answer: Any, verb: str, job: str, patience: Patience | None = None) -> Any:
        return wait_for(
            self._server, answer, verb=verb, patience=patience, look=lambda: self.job(job)
        )

    def _page(
        self,
        job: str,
        log: Log,
        last: int,
        after: str | None = None,
        *,
        executor: str | None = None,
    ) -> LogPage:
        query: dict[str, Any] = {"log": log.value, "limit": last}
        query |= {"after": after, "executor": executor}
        return self._get(LogPage, "jobs", job, "logs", **query)

    def _checkpoint(self, answer: Any) -> AnyCheckpoint:
        page = {"checkpoints": [answer], "more": False}
        return self._server.parse(_Checkpoints, page).checkpoints[0]


def _split(checkpoint: str) -> tuple[str, str | None]:
    """Return a checkpoint's id, and its run if it is named as `LINEAGE/chk-17`."""
    run, _, name = checkpoint.rpartition("/")
    return name, run or None


def _restore(
    source: str | None, at: str | None, drop: Collection[str], *, dry_run: bool
) -> dict[str, Any]:
    return {"from": source, "at": at, "drop_state": list(drop), "dry_run": dry_run}


def _own_folder(what: str, option: str) -> HeadgateError:
    return HeadgateError(
        "SERVER_FOLDER",
        f"cannot {what} in another folder: a server keeps savepoints in the job's folder",
        hint=f"omit the folder of {option}",
    )
