"""The jobs of a server, over REST."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from headgate._codec import decode, encode
from headgate.checkpoints.checkpoint import AnyCheckpoint, by_age, parse_checkpoint
from headgate.client.connection import Connection
from headgate.client.home import Home
from headgate.client.operations import wait_for
from headgate.client.parsing import parse, parse_by
from headgate.client.state import ServerState
from headgate.connectors.topics import TopicSummary
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.portable import PortableSavepoint
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.requests import Patience
from headgate.jobs.control.verbs import Loss, Savepoint, Stopped
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import Replayed, ReplayProgress
from headgate.jobs.startup.background import Detached
from headgate.jobs.state.values import StateOverview
from headgate.jobs.values import NO_CONSENT, Consent
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.job import JobDetails, JobView
from headgate.jobs.views.logs import Log, LogPage

_FOLLOW_EVERY = timedelta(seconds=1)
# As many checkpoints as a server gives at once.
_PAGE = 1_000
_KEPT = "checkpoints"
# No limit: if the server gives up, it says so in its own error.
_LONGEST_REPLAY = timedelta(days=7)
# What a server says of a job that a home does not.
_OF_THE_SERVER = ("kept_up",)

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Jobs:
    jobs: list[JobView]


@dataclass(frozen=True, slots=True)
class _Topics:
    topics: list[TopicSummary]


class ServerHome(Home):
    """The jobs of a server."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    @property
    def where(self) -> str:
        return self._server.url

    def jobs(self) -> list[JobView]:
        told = self._server.get("jobs")
        return self._parse(_Jobs, told).jobs

    def names(self) -> list[str]:
        return [each.name for each in self.jobs()]

    def job(self, job: str) -> JobView:
        told = self._server.get("jobs", job)
        return self._parse_by(_details, told).view

    def details(self, job: str) -> JobDetails:
        told = self._server.get("jobs", job)
        return replace(self._parse_by(_details, told), checkpoints=tuple(self.checkpoints(job)))

    def start(self, job: str, *, consent: Consent = NO_CONSENT) -> Detached:
        return self._started(self._do("start", job, encode(consent)))

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
        told = self._do("stop", job, body, patience)
        return self._parse(Stopped, told)

    def cancel(self, job: str, *, patience: Patience | None = None) -> JobView:
        return self._view(self._do("cancel", job, {}, patience))

    def preview_cancel(self, job: str) -> Loss:
        told = self._server.send("POST", "jobs", job, "cancel", body={"dry_run": True})
        return self._parse(Loss, told)

    def restart(
        self, job: str, *, patience: Patience | None = None, consent: Consent = NO_CONSENT
    ) -> Detached:
        return self._started(self._do("restart", job, encode(consent), patience))

    def pause(self, job: str, *, patience: Patience | None = None) -> JobView:
        return self._view(self._do("pause", job, {}, patience))

    def resume(self, job: str, *, patience: Patience | None = None) -> JobView:
        return self._view(self._do("resume", job, {}, patience))

    def take_savepoint(
        self, job: str, *, to: Path | None = None, patience: Patience | None = None
    ) -> Savepoint:
        told = self._take(job, to, patience, portable=False)
        return self._parse(Savepoint, told)

    def take_portable_savepoint(
        self, job: str, *, to: Path | None = None, patience: Patience | None = None
    ) -> PortableSavepoint:
        told = self._take(job, to, patience, portable=True)
        return self._parse(PortableSavepoint, told)

    def checkpoints(self, job: str, *, every_run: bool = False) -> list[AnyCheckpoint]:
        found: dict[tuple[str | None, str, str], AnyCheckpoint] = {}
        offset, total = 0, 1
        while offset < total:
            told = self._server.get(
                *("jobs", job, "checkpoints"), every_run=every_run, limit=_PAGE, offset=offset
            )
            page = self._parse_by(lambda it: [parse_checkpoint(each) for each in it[_KEPT]], told)
            # One that is kept meanwhile moves the others on; they are known already.
            found |= {(each.run, each.kind, each.id): each for each in page}
            offset, total = offset + _PAGE, self._parse_by(lambda it: int(it["total"]), told)
        return sorted(found.values(), key=by_age)

    def checkpoint(self, job: str, checkpoint: str) -> AnyCheckpoint:
        return self._checkpoint(self._server.get("jobs", job, "checkpoints", checkpoint))

    def pin(self, job: str, checkpoint: str, *, pinned: bool) -> AnyCheckpoint:
        method = "PUT" if pinned else "DELETE"
        told = self._server.send(method, "jobs", job, "checkpoints", checkpoint, "pin")
        return self._checkpoint(self._wait(told, "pin", job))

    def preview_restore(
        self, job: str, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> RestorePlan:
        body = {**_restore(source, at, drop), "dry_run": True}
        told = self._do("restore", job, body)
        return self._parse(RestorePlan, told)

    def restore(
        self, job: str, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> tuple[RestorePlan, Detached]:
        """Go back to a checkpoint, and run on from there on the server; return what that did."""
        told = self._do("restore", job, _restore(source, at, drop))
        plan = self._parse_by(lambda it: decode(RestorePlan, it["restored"]), told)
        return plan, self._started({key: told[key] for key in told if key != "restored"})

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
            flow: Its file as seen from that folder.
            settings: By the names of headgate.toml and in its terms.
        """
        body = {"flow": flow, "settings": dict(settings), "fresh": fresh, **encode(consent)}
        told = self._server.send("POST", "jobs", body={**body, "restore_from": restore_from})
        result = wait_for(self._server, told, verb=f"run {flow}", patience=patience, look=None)
        return self._started(result)

    def tail_log(self, job: str, log: Log, *, last: int) -> list[bytes]:
        return [line.encode() for line in self._page(job, log, last, None).lines]

    def follow_log(self, job: str, log: Log, *, last: int) -> Iterator[bytes]:
        clock = Patience().clock
        page = self._page(job, log, last, None)
        while True:
            yield from (line.encode() for line in page.lines)
            if not page.lines:
                clock.sleep(_FOLLOW_EVERY)
            try:
                page = self._page(job, log, last, page.position)
            except HeadgateError as error:
                # A log that is being rolled is away for a moment.
                if error.code != "LOG_NOT_FOUND":
                    raise
                page = LogPage((), page.position)

    def list_topics(self) -> list[TopicSummary]:
        """Return the topics of the server's log, by name."""
        told = self._server.get("topics")
        return self._parse(_Topics, told).topics

    def tail_topic(self, topic: str, *, last: int) -> list[bytes]:
        """Return the last records of a topic of the server's log."""
        told = self._server.get("topics", topic, "records", lines=last)
        return self._parse_by(lambda it: [str(each).encode() for each in it["records"]], told)

    def graph(self, job: str) -> GraphView:
        return self._parse(GraphView, self._server.get("jobs", job, "graph"))

    def events(self, job: str, *, after: int = 0, limit: int = 200) -> Events:
        told = self._server.get("jobs", job, "events", after=after, limit=limit)
        return self._parse(Events, told)

    def exceptions(self, job: str) -> Exceptions:
        return self._parse(Exceptions, self._server.get("jobs", job, "exceptions"))

    @property
    def state(self) -> ServerState:
        return ServerState(self._server)

    def operators(self, job: str, *, at: str | None = None) -> StateOverview:
        return self._parse(StateOverview, self._server.get("jobs", job, "state", at=at))

    def dead_letters(self, job: str, *, reason: str | None = None, limit: int = 100) -> DeadLetters:
        told = self._server.get(
            *("jobs", job, "dead-letters"), patient=True, reason=reason, limit=limit
        )
        return self._parse(DeadLetters, told)

    def dead_letter(self, job: str, letter: str) -> DeadLetter:
        told = self._server.get("jobs", job, "dead-letters", letter, patient=True)
        return self._parse(DeadLetter, told)

    def replay_dead_letters(
        self,
        job: str,
        *,
        ids: Sequence[str] = (),
        reason: str | None = None,
        by: str,  # noqa: ARG002 - a server knows by itself who asks
        again: bool = False,
        without_key: bool = False,
        into_tables: bool = False,
        dry_run: bool = False,
        progress: Callable[[ReplayProgress], None] | None = None,  # noqa: ARG002 - not over HTTP
    ) -> Replayed:
        flags = {"again": again, "without_key": without_key, "dry_run": dry_run}
        body = {"ids": list(ids), "reason": reason, "into_tables": into_tables, **flags}
        told = self._server.send("POST", "jobs", job, "dead-letters", "replay", body=body)
        done = self._wait(told, "replay", job, Patience(longest=_LONGEST_REPLAY))
        return self._parse(Replayed, done)

    def _do(
        self, verb: str, job: str, body: Mapping[str, Any], patience: Patience | None = None
    ) -> Any:
        told = self._server.send("POST", "jobs", job, verb, body=body)
        return self._wait(told, verb, job, patience)

    def _take(self, job: str, to: Path | None, patience: Patience | None, *, portable: bool) -> Any:
        if to is not None:
            raise _own_folder(f"take a savepoint of job {job!r}", "--to")
        told = self._server.send("POST", "jobs", job, "savepoints", body={"portable": portable})
        return self._wait(told, "savepoint", job, patience)

    def _wait(self, told: Any, verb: str, job: str, patience: Patience | None = None) -> Any:
        return wait_for(
            self._server, told, verb=verb, patience=patience, look=lambda: self.job(job)
        )

    def _page(self, job: str, log: Log, last: int, after: str | None) -> LogPage:
        told = self._server.get("jobs", job, "logs", log=log.value, lines=last, after=after)
        return self._parse(LogPage, told)

    def _view(self, told: Any) -> JobView:
        return self._parse(JobView, told)

    def _started(self, told: Any) -> Detached:
        return self._parse(Detached, told)

    def _checkpoint(self, told: Any) -> AnyCheckpoint:
        return self._parse_by(parse_checkpoint, told)

    def _parse(self, kind: type[_Value], answer: Any) -> _Value:
        return parse(self._server, kind, answer)

    def _parse_by(self, read: Callable[[Any], _Value], answer: Any) -> _Value:
        return parse_by(self._server, read, answer)


def _details(told: Mapping[str, Any]) -> JobDetails:
    """Return a job without its checkpoints, of which a server tells elsewhere."""
    own = {key: value for key, value in told.items() if key not in _OF_THE_SERVER}
    return JobDetails.from_json({**own, _KEPT: []})


def _restore(source: str | None, at: str | None, drop: Collection[str]) -> dict[str, Any]:
    return {"from": source, "at": at, "drop_state": list(drop)}


def _own_folder(what: str, option: str) -> HeadgateError:
    return HeadgateError(
        "SERVER_FOLDER",
        f"cannot {what} in another folder: a server keeps savepoints in the job's folder",
        hint=f"omit the folder of {option}",
    )
