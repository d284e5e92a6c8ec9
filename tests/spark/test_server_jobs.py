"""Session mode: the server and a supervisor are killed -9 while two jobs run; nothing is lost.

A client that was generated from the server's description submits, watches, restores and deletes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench import Bench, bag
from eventually import eventually
from generated_client import GeneratedClient

JOBS = ("first", "second")
USERS = [{"id": n, "name": f"user {n}"} for n in range(20)]
_FLOW = """\
from headgate import Flow

flow = Flow("{job}")
users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
events = flow.stream("{job}-in", "n BIGINT, user BIGINT")
found = events.enrich("with-user", users, on="user", into="found")
found.matched.select("n", "found.name AS name").to("{job}-out")
found.missing.to("{job}-missing")
"""
# One core for each job is plenty, and a small driver starts sooner.
_SETTINGS = """\
[job]
batch-every = "200ms"
checkpoint-every = "1s"
parallelism = 1
profile = "shop"

[profiles.shop]
driver-memory = "512MiB"
master = "local[1]"
"""


class Session:
    """A server on a home with a flows folder, which can be killed and started anew."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._process: subprocess.Popen[str] | None = None
        self._client = httpx.Client(timeout=60)
        self.address = ""
        self._given = dict.fromkeys(JOBS, 0)
        self._files = count()
        flows = bench.root / "flows"
        flows.mkdir()
        (flows / "headgate.toml").write_text(_SETTINGS)
        for job in JOBS:
            (flows / f"{job}.py").write_text(_FLOW.format(job=job))
            self.feed(job)
        bench.put("users", USERS)

    def start(self) -> None:
        """Start the server."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "headgate", "serve", "--port", "0", "--json"),
                *("--home", str(self._bench.home), "--flows", "flows"),
                *("--on", f"files:{self._bench.topics}"),
            ],
            cwd=self._bench.root,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = str(json.loads(self._process.stdout.readline())["address"])
        self._client.base_url = self.address

    def kill(self) -> None:
        """Kill the server -9."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def close(self) -> None:
        """End the server and, whatever became of the test, the supervisors it started."""
        self.kill()
        for status in self._bench.home.glob("jobs/*/status.json"):
            told = json.loads(status.read_text())
            for pid in (told.get("child"), told.get("pid")):
                if pid and told["state"] not in ("STOPPED", "CANCELED", "FAILED", "FINISHED"):
                    _kill(int(pid))

    def feed(self, job: str, records: int = 40) -> None:
        """Publish more events of a job; every twenty-first has no user."""
        begin = self._given[job]
        self._given[job] += records
        events = [event(n) for n in range(begin, begin + records)]
        self._bench.put(f"{job}-in", events, path=f"{next(self._files):06d}.jsonl")

    def show(self, job: str) -> dict[str, Any]:
        """Return what the server says of a job."""
        return dict(self._client.get(f"/v1/jobs/{job}").json())

    def ask(self, path: str, **body: Any) -> str:
        """Ask for something, and return where its operation is."""
        answer = self._client.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.headers["Location"])

    def follow(self, place: str) -> dict[str, Any]:
        """Return an operation once it is over."""

        def ended() -> dict[str, Any] | None:
            told = dict(self._client.get(place).json())
            return None if told["state"] == "RUNNING" else told

        return eventually(ended, what=lambda: self._client.get(place).text)

    def wait_for_all_rows(self, job: str) -> None:
        """Wait until a job has written as many rows as it was given events."""

        def written() -> int:
            return sum(len(self._bench.read(f"{job}-{each}")) for each in ("out", "missing"))

        eventually(lambda: written() >= self._given[job], what=lambda: f"{written()} rows of {job}")

    def check_outputs(self, job: str) -> None:
        """Compare both outputs with what plain Python makes of the same events."""
        events = [event(n) for n in range(self._given[job])]
        known = {each["id"]: each["name"] for each in USERS}
        matched = [
            {"n": each["n"], "name": known[each["user"]]}
            for each in events
            if each["user"] in known
        ]
        missing = [each for each in events if each["user"] not in known]
        assert self._bench.bag(f"{job}-out") == bag(matched)
        assert self._bench.bag(f"{job}-missing") == bag(missing)


def event(n: int) -> dict[str, int]:
    """Return the n-th event."""
    return {"n": n, "user": n % (len(USERS) + 1)}


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(Bench(tmp_path))
    made.start()
    yield made
    made.close()


@pytest.mark.long
def test_jobs_outlive_the_server_and_are_taken_up_again_with_nothing_lost_or_doubled(
    session: Session, tmp_path: Path
) -> None:
    generated = GeneratedClient(session.address, tmp_path / "client")
    asked = {job: generated.submit_twice(f"{job}.py") for job in JOBS}
    for job, place in asked.items():
        begun = session.follow(place)
        assert (begun["state"], begun["job"]) == ("DONE", job), begun
    for job in JOBS:
        session.wait_for_all_rows(job)
    generated.watch("first")
    before = {job: session.show(job) for job in JOBS}

    # The server goes while records flow; the jobs do not notice.
    for job in JOBS:
        session.feed(job)
    session.kill()
    for job in JOBS:
        session.feed(job)
        session.wait_for_all_rows(job)

    # A new one finds them as they are.
    session.start()
    for job in JOBS:
        told = session.show(job)
        assert (told["state"], told["kept_up"]) == ("RUNNING", True)
        assert told["pid"] == before[job]["pid"], "it was started again, and it had not died"

    # A supervisor goes, and its job is taken up again.
    session.feed("second")
    os.kill(before["second"]["pid"], signal.SIGKILL)
    session.feed("second")

    def find_taken_up() -> dict[str, Any] | None:
        told = session.show("second")
        is_new = told["pid"] != before["second"]["pid"]
        return told if is_new and told["state"] == "RUNNING" else None

    taken = eventually(find_taken_up, what=lambda: session.show("second"))
    assert taken["alive"]
    for job in JOBS:
        session.feed(job)
        session.wait_for_all_rows(job)

    asked = {job: session.ask(f"/v1/jobs/{job}/stop") for job in JOBS}
    for job, place in asked.items():
        stopped = session.follow(place)
        assert stopped["result"]["state"] == "STOPPED", stopped
        assert session.show(job)["kept_up"] is False
        session.check_outputs(job)
    generated.connect(session.address)
    generated.restore("first")
    generated.delete("first")
