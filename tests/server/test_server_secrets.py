"""What the server keeps to itself, and what it writes down."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from server_bench import (
    AS_OPERATOR,
    OPERATE,
    VIEW,
    TestClient,
    client,
    settings,
    store_job,
)

from headgate.jobs.job_folder import JobFolder
from headgate.server.context import SERVER
from headgate.server.security.audit_log import AuditLog


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("guarded")
    store_job(root)
    return root


@pytest.fixture(scope="module")
def guarded(place: Path) -> Iterator[TestClient]:
    """Give a client without a token of a server that needs one."""
    with client(settings(place, tokens=(OPERATE, VIEW))) as made:
        yield made


# Secrets.


@pytest.fixture
def leaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Give a client of a server whose job has secrets in its settings and its logs."""
    monkeypatch.setenv("STORE_PASSWORD", "correct-horse-battery")
    config = tmp_path / "client.properties"
    config.write_text("sasl.password=staple-in-a-file\nlinger.ms=5\n")
    on = f"kafka://broker:9092?sasl.password=${{env:STORE_PASSWORD}}&config={quote(str(config))}"
    home = JobFolder(tmp_path / ".headgate", "shop")
    failure = {
        "code": "QUERY_FAILED",
        "message": "cannot log in with correct-horse-battery",
        "root_cause": 'jaas: password="hunter2hunter2" for staple-in-a-file',
        "attempt": 1,
        "at": "2026-11-15T12:00:00+00:00",
        "where": "driver",
    }
    home.write_status({"state": "FAILED", "reason": failure["message"], "last_failure": failure})
    told = {"on": {"value": on, "from": "flag"}}
    home.write_job("first", flow="flow.py", options={"on": on, "settings": told})
    home.log_file.parent.mkdir(parents=True)
    home.log_file.write_text(
        "login correct-horse-battery\n"
        "ssl.key.password = staple-in-a-file\n"
        "kafka://ann:swordfish-9@broker:9092\n"
        'sasl.jaas.config=… password="hunter2hunter2";\n'
        f"Authorization: Bearer {OPERATE.secret}\n"
    )
    told_of = {key: value for key, value in failure.items() if key != "at"}
    home.add_event(datetime(2026, 11, 15, 12, tzinfo=UTC), "FAILURE", **told_of)
    with client(settings(tmp_path, tokens=(OPERATE,)), **AS_OPERATOR) as made:
        yield made


SECRETS = ("correct-horse-battery", "staple-in-a-file", "swordfish-9", "hunter2hunter2")


@pytest.mark.parametrize(
    "path",
    ["", "/config", "/logs", "/logs?log=events", "/events", "/exceptions", "/checkpoint-settings"],
)
def test_no_secret_is_shown(leaky: TestClient, path: str) -> None:
    text = leaky.get(f"/v1/jobs/shop{path}").text
    for secret in (*SECRETS, OPERATE.secret):
        assert secret not in text
    assert "***" in text or path in ("/checkpoint-settings", "/config")
    assert "${env:STORE_PASSWORD}" in leaky.get("/v1/jobs/shop/config").text


def test_no_secret_is_in_the_list_of_jobs_or_in_an_error(leaky: TestClient) -> None:
    listed = leaky.get("/v1/jobs").text
    assert "cannot log in with ***" in listed
    answer = leaky.get("/v1/jobs/shop/checkpoints/correct-horse-battery")
    assert answer.status_code == 404
    assert "correct-horse-battery" not in answer.text


# The audit log.


def test_the_audit_log_tells_who_did_what_and_what_came_of_it(guarded: TestClient) -> None:
    guarded.put("/v1/jobs/shop/checkpoints/chk-19/pin", headers=AS_OPERATOR)
    guarded.post("/v1/jobs/shop/stop", headers=AS_OPERATOR)
    pin, stop = guarded.get("/v1/audit?limit=2", headers=AS_OPERATOR).json()["lines"]
    assert (pin["what"], pin["job"], pin["outcome"]) == ("pin", "shop", "DONE")
    assert pin["details"] == {"checkpoint": "chk-19"}
    assert pin["operation"].startswith("op-")
    assert (stop["what"], stop["outcome"]) == ("stop", "JOB_NOT_RUNNING")
    assert (stop["who"], stop["role"]) == (OPERATE.who, "operate")
    assert stop["address"] == "testclient"


def test_the_audit_log_is_private_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.server.security.audit_log._LARGEST", 2_000)
    log = AuditLog(tmp_path / "server" / "audit.jsonl")
    for number in range(50):
        log.add(SERVER, f"thing-{number}", outcome="DONE")
    files = sorted((tmp_path / "server").glob("audit.jsonl*"))
    assert sum(each.stat().st_size for each in files) < 5_000
    assert (tmp_path / "server" / "audit.jsonl").stat().st_mode & 0o077 == 0
    assert [line.what for line in log.tail(3)] == ["thing-47", "thing-48", "thing-49"]
    with (tmp_path / "server" / "audit.jsonl").open("a") as file:
        file.write('{"half')
    assert log.tail(1)[0].what == "thing-49"
    assert all(line.format == 1 for line in log.tail(100))


def test_a_line_of_the_audit_log_is_short_and_hides_secrets_in_names_too(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    secret = "s" * 80
    searched: list[int] = []

    def hide(text: str) -> str:
        searched.append(len(text))
        return text.replace(secret, "***")

    log = AuditLog(file, hide=hide)
    told = {"settings": {secret: 1, "k" * 100: "v" * 2_000, "half": "x" * 950 + secret}}
    log.add(SERVER, "submit", outcome="DONE", details=told)
    log.add(SERVER, "submit", outcome="DONE", details={"text": "x" * (1 << 20)})
    log.add(SERVER, "submit", outcome="DONE", details={"all": ["x" * 900] * 20})
    first, second, third = log.tail(3)
    half = "x" * 950 + "***"
    assert first.details == {"settings": {"***": 1, "k" * 64: "v" * 1_000, "half": half}}
    assert second.details == {"text": "x" * 1_000}
    assert (third.what, third.details) == ("submit", {"cut": True})
    assert max(searched) <= 8 << 10
    assert max(len(line) for line in file.read_bytes().split(b"\n")) <= 8 << 10
