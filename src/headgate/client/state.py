"""The state of a server's jobs, over REST; the server's reader of state answers."""

from __future__ import annotations

from headgate.client.connection import Connection
from headgate.client.home import State
from headgate.client.parsing import parse
from headgate.jobs.state.values import StateHistory, StateRows, StateValue


class ServerState(State):
    """Answers questions on the state of a server's jobs; the first one may take a while."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    def look_up(self, job: str, uid: str, key: str, *, at: str | None = None) -> StateValue:
        told = self._server.get("jobs", job, "state", uid, "value", patient=True, key=key, at=at)
        return parse(self._server, StateValue, told)

    def history(self, job: str, uid: str, key: str) -> StateHistory:
        told = self._server.get("jobs", job, "state", uid, "history", patient=True, key=key)
        return parse(self._server, StateHistory, told)

    def first_rows(
        self, job: str, uid: str, *, at: str | None = None, limit: int = 50
    ) -> StateRows:
        told = self._server.get("jobs", job, "state", uid, "rows", patient=True, at=at, limit=limit)
        return parse(self._server, StateRows, told)

    def query(
        self,
        job: str,
        sql: str,
        *,
        uid: str | None = None,
        at: str | None = None,
        limit: int = 1000,
    ) -> StateRows:
        body = {"sql": sql, "uid": uid, "at": at, "limit": limit}
        told = self._server.send("POST", "jobs", job, "state", "sql", body=body, patient=True)
        return parse(self._server, StateRows, told)
