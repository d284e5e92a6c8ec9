"""Idempotency keys: a repeated submit returns the first answer, and another one is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from server_bench import FLOW, TestClient, client, code_of, follow, settings

from headgate._codec import decode
from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.server import submissions
from headgate.server.operations import Operation, OperationState
from headgate.server.submissions import Submissions

BODY = {"flow": "shop.py", "settings": {"retain": 3}}


class Starts:
    """The starts that a server makes, each of which waits for the test."""

    def __init__(self) -> None:
        self.flows: list[str] = []
        self.may_go = threading.Event()
        self.may_go.set()

    def submit(self, _home: FolderHome, flow: str, _options: Any, **_: Any) -> dict[str, Any]:
        self.flows.append(flow)
        assert self.may_go.wait(180)
        return {"job": "shop", "pid": 7}


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Starts]:
    made = Starts()
    monkeypatch.setattr(
        FolderHome, "submit", lambda *args, **options: made.submit(*args, **options)
    )
    yield made
    made.may_go.set()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "shop.py").write_text(FLOW)
    return tmp_path


def submit(web: TestClient, body: dict[str, Any] = BODY, *, key: str = "d9c1a0de-0001") -> Any:
    return web.post("/v1/jobs", json=body, headers={"Idempotency-Key": key})


def find_ended(web: TestClient) -> list[str] | None:
    """Return the outcomes in the audit log, once one of them is the end of a submit."""
    outcomes = [line["outcome"] for line in web.get("/v1/audit").json()["lines"]]
    return outcomes if "DONE" in outcomes else None


def test_a_repeated_submit_returns_the_first_answer_and_starts_nothing(
    root: Path, starts: Starts
) -> None:
    with client(settings(root)) as web:
        starts.may_go.clear()
        first = submit(web)
        again = submit(web)
        assert again.status_code == 202
        assert again.json()["id"] == first.json()["id"]
        assert again.headers["Location"] == first.headers["Location"]
        starts.may_go.set()
        assert follow(web, first)["result"] == {"job": "shop", "pid": 7}
        ended = submit(web).json()
        assert (ended["id"], ended["state"]) == (first.json()["id"], "DONE")
        outcomes = eventually(lambda: find_ended(web))
        assert sorted(outcomes) == ["DONE", "REPEATED", "REPEATED", "STARTED"]
        assert len(starts.flows) == 1
        assert submit(web, key="another").json()["id"] != first.json()["id"]
        # Without a key every request is a submit.
        assert web.post("/v1/jobs", json=BODY).json()["id"] != first.json()["id"]
        eventually(lambda: len(starts.flows) == 3)


def test_a_key_with_another_body_is_refused(root: Path, starts: Starts) -> None:
    with client(settings(root)) as web:
        follow(web, submit(web))
        assert code_of(submit(web, {**BODY, "fresh": True})) == (409, "IDEMPOTENCY_KEY_REUSED")
        for bad in ("a b", "x" * 129):
            assert code_of(submit(web, key=bad)) == (400, "BAD_REQUEST")
        assert len(starts.flows) == 1


def test_a_refused_submit_does_not_use_its_key_up(root: Path, starts: Starts) -> None:
    with client(settings(root)) as web:
        assert code_of(submit(web, {"flow": "none.py"})) == (404, "FLOW_NOT_FOUND")
        assert follow(web, submit(web))["state"] == "DONE"


def test_a_key_is_known_after_a_restart_and_so_is_its_operation(root: Path, starts: Starts) -> None:
    with client(settings(root)) as web:
        first = submit(web)
        follow(web, first)
        eventually(lambda: find_ended(web))
        starts.may_go.clear()
        # The server is killed while it starts this one.
        lost = submit(web, key="lost").json()
        file = root / ".headgate" / "server" / "submissions.json"
        on_disk = file.read_text()
        starts.may_go.set()
        eventually(lambda: file.read_text() != on_disk)
    file.write_text(on_disk)
    with client(settings(root)) as web:
        assert web.get(first.headers["Location"]).json()["result"] == {"job": "shop", "pid": 7}
        again = submit(web)
        assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
        assert code_of(submit(web, {**BODY, "fresh": True})) == (409, "IDEMPOTENCY_KEY_REUSED")
        unknown = submit(web, key="lost").json()
        assert (unknown["id"], unknown["state"]) == (lost["id"], "FAILED")
        assert unknown["error"]["code"] == "OPERATION_INTERRUPTED"
        assert unknown["error"]["hint"] == "GET /v1/jobs"
    assert len(starts.flows) == 2


def test_only_the_last_keys_are_kept_and_only_their_owner_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "_REMEMBERED", 3)
    file = tmp_path / "server" / "submissions.json"
    kept = Submissions(file)
    for number in range(5):
        with kept.hold("me", f"key-{number}", {"flow": "a"}) as keyed:
            assert keyed.answer is None
            keyed.begin(operation(number))
    assert [each.id for each in Submissions(file).operations()] == ["op-2", "op-3", "op-4"]
    assert file.stat().st_mode & 0o077 == 0
    assert "key-4" not in file.read_text()
    with kept.hold("someone else", "key-4", {"flow": "a"}) as keyed:
        assert keyed.answer is None


def test_two_requests_with_a_key_at_once_are_one_submit(root: Path, starts: Starts) -> None:
    with client(settings(root)) as web:
        answers: list[str] = []
        threads = [
            threading.Thread(target=lambda: answers.append(submit(web).json()["id"]))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert (len(answers), len(set(answers))) == (4, 1)
        eventually(lambda: len(starts.flows) == 1)


@pytest.mark.parametrize("text", ["{", json.dumps({"format": 9, "submissions": []})])
def test_a_file_that_cannot_be_read_stops_only_requests_with_a_key(
    root: Path, starts: Starts, text: str
) -> None:
    file = root / ".headgate" / "server" / "submissions.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with client(settings(root)) as web:
        assert code_of(submit(web)) == (503, "SUBMISSIONS_UNREADABLE")
        assert follow(web, web.post("/v1/jobs", json=BODY))["state"] == "DONE"
    assert file.read_text() == text


def test_nothing_starts_if_its_key_cannot_be_written(
    root: Path, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise HeadgateError("NO_ACCESS", "cannot write", hint="")

    monkeypatch.setattr(submissions, "_write", refuse)
    with client(settings(root)) as web:
        assert submit(web).json()["code"] == "NO_ACCESS"
        (only,) = web.get("/v1/operations").json()["operations"]
        assert only["state"] == "FAILED"
    assert starts.flows == []


def operation(number: int) -> Operation:
    moment = "2026-11-18T12:00:00+00:00"
    return decode(
        Operation,
        {
            "id": f"op-{number}",
            "kind": "submit",
            "job": "shop",
            "by": "me",
            "state": OperationState.DONE.value,
            "started_at": moment,
            "ended_at": moment,
            "result": {"job": "shop"},
        },
    )
