"""REST on what jobs hold and write: state, outputs, dead letters, topics."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from headgate.jobs import service
from headgate.server import actions, models
from headgate.server.models import At, Job, Key, Uid
from headgate.server.routes import Server, Who, accepted, make_router, reply


def state_routes() -> APIRouter:
    """Return the routes on state."""
    router = make_router("state")

    @router.get("/jobs/{job}/state", response_model=dict[str, Any])
    def list_state(server: Server, job: Job, at: At = None) -> Response:
        """List the operators that hold state: kind, variables, keys, rows, bytes."""
        return reply(server, service.list_state(server.settings.home, job, at=at).to_json())

    @router.get("/jobs/{job}/state/{uid}/value", response_model=dict[str, Any])
    def look_up(server: Server, job: Job, uid: Uid, key: Key, at: At = None) -> Response:
        """Show the value of one key: now, or at a checkpoint."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.look_up(job, uid, key, at=at)
        return reply(server, found.to_json(), guess=False)

    @router.get("/jobs/{job}/state/{uid}/history", response_model=dict[str, Any])
    def show_history(server: Server, job: Job, uid: Uid, key: Key) -> Response:
        """Show the value of one key at every retained checkpoint, and what changed."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.history(job, uid, key)
        return reply(server, found.to_json(), guess=False)

    @router.get("/jobs/{job}/state/{uid}/rows", response_model=dict[str, Any])
    def first_rows(
        server: Server,
        job: Job,
        uid: Uid,
        at: At = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        """Show the first rows of an operator's state."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.first_rows(job, uid, at=at, limit=limit)
        return reply(server, found.to_json(), guess=False)

    @router.post("/jobs/{job}/state/sql", response_model=dict[str, Any])
    def query_state(server: Server, job: Job, body: models.StateQuery) -> Response:
        """Ask an operator's state in SQL; the table is called `state`."""
        service.look_at(server.settings.home, job)
        with server.slow_read():
            found = server.state.query(job, body.sql, uid=body.uid, at=body.at, limit=body.limit)
        return reply(server, found.to_json(), guess=False)

    return router


def output_routes() -> APIRouter:
    """Return the routes on outputs and dead letters."""
    router = make_router("outputs")

    @router.get("/jobs/{job}/outputs", response_model=models.Outputs)
    def list_outputs(server: Server, job: Job) -> Response:
        """List the outputs of a job: side outputs first, dead letters last."""
        with server.slow_read():
            found = service.list_outputs(server.settings.home, job)
        return reply(server, {"outputs": [each.to_json() for each in found]})

    @router.get("/jobs/{job}/outputs/{output}/records", response_model=models.OutputRecords)
    def tail_output(
        server: Server, job: Job, output: models.OutputId, lines: models.Lines = 20
    ) -> Response:
        """Show the last records of an output."""
        with server.slow_read():
            found = service.tail_output(server.settings.home, job, output, lines=lines)
        told = {"output": output, "records": [each.to_json() for each in found]}
        return reply(server, told, guess=False)

    @router.get("/jobs/{job}/dead-letters", response_model=dict[str, Any])
    def list_dead_letters(
        server: Server,
        job: Job,
        reason: Annotated[str | None, Query(max_length=256)] = None,
        limit: Annotated[int, Query(ge=0, le=1000)] = 100,
    ) -> Response:
        """List the newest dead letters, and how many there are by topic and reason."""
        with server.slow_read():
            found = service.list_dead_letters(server.settings.home, job, reason=reason, limit=limit)
        return reply(server, found.to_json(), guess=False)

    @router.get("/jobs/{job}/dead-letters/{letter}", response_model=dict[str, Any])
    def show_dead_letter(server: Server, job: Job, letter: models.LetterId) -> Response:
        """Show one dead letter with its raw record."""
        with server.slow_read():
            found = service.get_dead_letter(server.settings.home, job, letter)
        return reply(server, found.to_json(), guess=False)

    @router.post(
        "/jobs/{job}/dead-letters/replay",
        response_model=models.OperationShown,
        status_code=202,
    )
    def replay_dead_letters(
        server: Server, who: Who, job: Job, body: models.Replay | None = None
    ) -> Response:
        """Send dead letters to their topics again, after what was wrong is mended."""
        asked = body or models.Replay()
        begun = actions.replay(server, who, job, **asked.model_dump())
        return accepted(server, begun)

    return router


def topic_routes() -> APIRouter:
    """Return the routes on the topics of the server's own log."""
    router = make_router("topics")

    @router.get("/topics", response_model=models.TopicList)
    def list_topics(server: Server) -> Response:
        """List the topics of the log that the server was started on."""
        with server.slow_read():
            found = service.list_topics(server.settings.on)
        return reply(server, {"topics": [each.to_json() for each in found]})

    @router.get("/topics/{topic}/records", response_model=models.TopicRecords)
    def tail_topic(server: Server, topic: models.TopicName, lines: models.Lines = 20) -> Response:
        """Show the last records of a topic."""
        with server.slow_read():
            found = service.tail_topic(server.settings.on, topic, last=lines)
        records = [each.decode("utf-8", "backslashreplace") for each in found]
        return reply(server, {"topic": topic, "records": records}, guess=False)

    return router
