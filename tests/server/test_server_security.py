"""Attempts to get in: without a token, in a browser's session, from another site."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from server_bench import (
    AS_OPERATOR,
    AS_VIEWER,
    HERE,
    OPERATE,
    VIEW,
    TestClient,
    client,
    code_of,
    settings,
    store_job,
)

from headgate.errors import HeadgateError
from headgate.jobs.state.client import StateDesk
from headgate.jobs.state.values import StateRows
from headgate.server.security.access import Role
from headgate.server.security.sessions import SESSION_COOKIE, Sessions
from headgate.server.security.tokens import Token, find_token, read_tokens
from headgate.server.settings import ServerSettings, check_settings

ACTIONS = [
    ("POST", "/v1/jobs", {"flow": "shop.py"}),
    *(("POST", f"/v1/jobs/shop/{verb}", {}) for verb in ("stop", "cancel", "pause", "resume")),
    *(("POST", f"/v1/jobs/shop/{verb}", {}) for verb in ("start", "restart", "savepoints")),
    ("POST", "/v1/jobs/shop/restore", {"from": "chk-19"}),
    ("PUT", "/v1/jobs/shop/checkpoints/chk-19/pin", None),
    ("DELETE", "/v1/jobs/shop/checkpoints/chk-19/pin", None),
    ("DELETE", "/v1/jobs/shop", None),
    ("POST", "/v1/jobs/shop/dead-letters/replay", {}),
]
READS = [
    *("/v1/jobs", "/v1/jobs/shop", "/v1/jobs/shop/logs", "/v1/jobs/shop/checkpoints"),
    *("/v1/flows", "/v1/topics", "/v1/operations", "/v1/openapi.json", "/metrics", "/v1/nothing"),
]


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


@pytest.fixture(scope="module")
def open_(place: Path) -> Iterator[TestClient]:
    """Give a client of a server on this machine that needs no token."""
    with client(settings(place)) as made:
        yield made


@pytest.fixture
def fresh(place: Path) -> Iterator[TestClient]:
    """Give a client of a server whose failures nobody else counts."""
    with client(settings(place, tokens=(OPERATE, VIEW))) as made:
        yield made


# Who.


@pytest.mark.parametrize("path", READS)
def test_nothing_is_read_without_a_token(guarded: TestClient, path: str) -> None:
    answer = guarded.get(path)
    assert code_of(answer) == (401, "NOT_SIGNED_IN")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "shop" not in answer.text


@pytest.mark.parametrize(("method", "path", "body"), ACTIONS)
def test_nothing_is_done_without_a_token(
    guarded: TestClient, method: str, path: str, body: Any
) -> None:
    assert code_of(guarded.request(method, path, json=body)) == (401, "NOT_SIGNED_IN")


@pytest.mark.parametrize(("method", "path", "body"), ACTIONS)
def test_whoever_may_look_may_do_nothing(
    guarded: TestClient, place: Path, method: str, path: str, body: Any
) -> None:
    answer = guarded.request(method, path, json=body, headers=AS_VIEWER)
    assert code_of(answer) == (403, "NOT_ALLOWED")
    assert guarded.get("/v1/jobs", headers=AS_VIEWER).status_code == 200
    last = guarded.get("/v1/audit?limit=1", headers=AS_OPERATOR).json()["lines"][0]
    assert (last["outcome"], last["role"], last["who"]) == ("NOT_ALLOWED", "view", VIEW.who)


def test_sql_on_the_state_of_one_job_is_for_whoever_may_look(
    guarded: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def query(_state: StateDesk, job: str, sql: str, **_options: Any) -> StateRows:
        asked.append((job, sql))
        now = datetime(2026, 11, 15, tzinfo=UTC)
        return StateRows(job=job, checkpoint="now", moment=now, columns=(), types=(), rows=())

    monkeypatch.setattr(StateDesk, "query", query)
    body = {"sql": "select 1"}
    path = "/v1/jobs/shop/state/sql"
    assert code_of(guarded.post(path, json=body)) == (401, "NOT_SIGNED_IN")
    assert guarded.post(path, json=body, headers=AS_VIEWER).status_code == 200
    absent = guarded.post("/v1/jobs/none/state/sql", json=body, headers=AS_VIEWER)
    assert code_of(absent) == (404, "JOB_NOT_FOUND")
    elsewhere = guarded.post(path, json={**body, "path": "/tmp"}, headers=AS_VIEWER)
    assert code_of(elsewhere) == (400, "BAD_REQUEST")
    assert asked == [("shop", "select 1")]


def test_the_audit_log_is_for_operators(guarded: TestClient) -> None:
    assert code_of(guarded.get("/v1/audit", headers=AS_VIEWER)) == (403, "NOT_ALLOWED")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer wrong-wrong-wrong-wrong",
        f"Bearer {OPERATE.secret}x",
        f"Bearer {OPERATE.secret[:-1]}",
        f"Basic {OPERATE.secret}",
        "Bearer",
        "Bearer  ",
        "Bearer \xff\xfe",
    ],
)
def test_a_token_that_is_none_is_refused_and_not_repeated(fresh: TestClient, header: str) -> None:
    answer = fresh.get("/v1/jobs", headers={"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert OPERATE.secret not in answer.text


def test_many_wrong_tokens_shut_the_door_to_wrong_ones_alone(fresh: TestClient) -> None:
    wrong = {"Authorization": "Bearer wrong-wrong-wrong-wrong"}
    answers = [fresh.get("/v1/jobs", headers=wrong) for _ in range(12)]
    assert [each.status_code for each in answers] == [401] * 10 + [429] * 2
    assert code_of(answers[-1]) == (429, "RATE_LIMITED")
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 10
    login = fresh.post("/login", data={"token": "wrong-wrong-wrong-wrong"})
    assert (login.status_code, SESSION_COOKIE in login.cookies) == (429, False)
    assert fresh.get("/v1/jobs", headers=AS_OPERATOR).status_code == 200
    login = fresh.post("/login", data={"token": OPERATE.secret})
    assert (login.status_code, SESSION_COOKIE in login.cookies) == (303, True)


def test_a_token_twice_in_one_request_is_refused(guarded: TestClient) -> None:
    pair = [("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {OPERATE.secret}")]
    assert guarded.get("/v1/jobs", headers=pair).status_code == 400


def test_probes_need_no_token_and_tell_nothing_of_jobs(guarded: TestClient) -> None:
    for path in ("/healthz", "/readyz"):
        answer = guarded.get(path)
        assert answer.json() == {"status": "ok", "problems": []}


def test_a_page_sends_a_browser_to_sign_in_and_back(guarded: TestClient) -> None:
    answer = guarded.get("/jobs/shop?tab=1", headers={"Accept": "text/html"})
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/login?next=%2Fjobs%2Fshop%3Ftab%3D1"
    assert guarded.get("/login").status_code == 200


def test_a_header_that_may_be_there_twice_is_no_fault(guarded: TestClient) -> None:
    pair = [("Accept", "image/png"), ("Accept", "text/html")]
    assert guarded.get("/jobs/shop", headers=pair).status_code == 303


# A browser's session.


def sign_in(web: TestClient, token: Token, **form: str) -> Any:
    return web.post("/login", data={"token": token.secret, **form}, headers={"Origin": HERE})


def test_a_browser_signs_in_acts_and_signs_out(fresh: TestClient) -> None:
    answer = sign_in(fresh, OPERATE, next="/jobs/shop")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/jobs/shop")
    cookie = answer.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert OPERATE.secret.lower() not in cookie
    assert fresh.get("/v1/jobs").status_code == 200
    path = "/v1/jobs/shop/checkpoints/chk-19/pin"
    assert fresh.put(path, headers={"Origin": HERE}).status_code == 200
    session = fresh.cookies[SESSION_COOKIE]
    assert fresh.post("/logout", headers={"Origin": HERE}).status_code == 303
    again = fresh.get("/v1/jobs", headers={"Cookie": f"{SESSION_COOKIE}={session}"})
    assert code_of(again) == (401, "NOT_SIGNED_IN")


def test_a_session_of_a_viewer_may_do_nothing(fresh: TestClient) -> None:
    sign_in(fresh, VIEW)
    answer = fresh.post("/v1/jobs/shop/start", headers={"Origin": HERE})
    assert code_of(answer) == (403, "NOT_ALLOWED")


def test_the_cookie_is_for_tls_alone_where_the_browser_speaks_it(place: Path) -> None:
    with client(settings(place, tokens=(OPERATE,), hosts=("jobs.example.org",))) as web:
        told = {"Origin": "https://jobs.example.org", "Host": "jobs.example.org"}
        answer = web.post("/login", data={"token": OPERATE.secret}, headers=told)
        assert "; secure" in answer.headers["Set-Cookie"].lower()


@pytest.mark.parametrize(
    "onward", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_leads_to_no_other_site(fresh: TestClient, onward: str) -> None:
    assert sign_in(fresh, OPERATE, next=onward).headers["Location"] == "/"


def test_a_form_with_too_many_fields_signs_nobody_in(fresh: TestClient) -> None:
    answer = sign_in(fresh, OPERATE, **{f"more{number}": "x" for number in range(8)})
    assert (answer.status_code, answer.headers["Location"][:15]) == (303, "/login?failed=1")
    assert SESSION_COOKIE not in fresh.cookies


def test_a_session_nobody_began_is_none(guarded: TestClient) -> None:
    for value in ("", "x", "a" * 5000, '"', "../../etc"):
        cookie = {"Cookie": f"{SESSION_COOKIE}={value}"}
        assert guarded.get("/v1/jobs", headers=cookie).status_code == 401


def test_a_session_ends_after_half_a_day() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    begun = sessions.begin(OPERATE)
    now[0] = 12 * 3600 - 1
    assert sessions.find(begun) is OPERATE
    now[0] += 2
    assert sessions.find(begun) is None


# From where.


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8270", "127.0.0.1.evil.example", "localhost.evil", "0x7f.1"],
)
def test_a_name_that_is_not_the_servers_is_not_answered(open_: TestClient, host: str) -> None:
    for path in ("/v1/jobs", "/", "/healthz", "/login"):
        answer = open_.get(path, headers={"Host": host})
        assert code_of(answer) == (421, "WRONG_HOST")


@pytest.mark.parametrize("host", ["", "a b", "[::1", "127.0.0.1:port", "127.0.0.1:8270:1", "/"])
def test_a_host_that_is_none_is_not_answered(open_: TestClient, host: str) -> None:
    assert open_.get("/v1/jobs", headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost:8270", "127.0.0.1", "[::1]:8270", "LOCALHOST"])
def test_names_of_this_machine_are_answered(open_: TestClient, host: str) -> None:
    assert open_.get("/v1/jobs", headers={"Host": host}).status_code == 200


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Origin": "http://127.0.0.1:9999"},
    {"Origin": "http://localhost:8270.evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": HERE},
]


@pytest.mark.parametrize("told", FOREIGN)
@pytest.mark.parametrize(("method", "path", "body"), [ACTIONS[0], ACTIONS[5], ACTIONS[9]])
def test_a_page_of_another_site_does_nothing_on_an_open_server(
    open_: TestClient, told: dict[str, str], method: str, path: str, body: Any
) -> None:
    answer = open_.request(method, path, json=body, headers=told)
    assert code_of(answer) == (403, "CROSS_SITE")


@pytest.mark.parametrize("told", [*FOREIGN, {}])
def test_a_page_of_another_site_does_nothing_with_a_browsers_cookie(
    fresh: TestClient, told: dict[str, str]
) -> None:
    sign_in(fresh, OPERATE)
    answer = fresh.put("/v1/jobs/shop/checkpoints/chk-19/pin", headers=told)
    assert code_of(answer) == (403, "CROSS_SITE")


@pytest.mark.parametrize("told", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
def test_a_page_of_another_site_opens_no_live_connection_by_any_method(
    open_: TestClient, told: dict[str, str], method: str
) -> None:
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert open_.request(method, path, headers=told).status_code == 403


def test_a_page_of_this_site_may_poll_its_live_connection(fresh: TestClient) -> None:
    sign_in(fresh, OPERATE)
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    # There is no console here: whoever passes the gate finds nothing.
    for told in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": HERE}, {}):
        assert fresh.get(path, headers=told).status_code == 404
    assert fresh.post(path).status_code == 403


def test_another_site_signs_nobody_in(fresh: TestClient) -> None:
    answer = fresh.post(
        "/login", data={"token": OPERATE.secret}, headers={"Origin": "https://evil.example"}
    )
    assert code_of(answer) == (403, "CROSS_SITE")
    assert SESSION_COOKIE not in fresh.cookies


def test_a_token_of_the_requests_own_needs_no_origin(guarded: TestClient) -> None:
    told = {**AS_OPERATOR, "Origin": "https://elsewhere.example"}
    path = "/v1/jobs/shop/checkpoints/chk-19/pin"
    assert guarded.put(path, headers=told).status_code == 200


def test_no_answer_may_be_read_by_another_site_or_framed(open_: TestClient) -> None:
    told = open_.get("/v1/jobs", headers={"Origin": "https://evil.example"}).headers
    assert "access-control-allow-origin" not in told
    assert told["x-frame-options"] == "DENY"
    assert told["x-content-type-options"] == "nosniff"
    assert told["cross-origin-resource-policy"] == "same-origin"
    assert "default-src 'none'" in told["content-security-policy"]
    assert told["cache-control"] == "no-store"
    page = open_.get("/login").headers["content-security-policy"]
    assert "default-src 'self'" in page
    assert "frame-ancestors 'none'" in page
    assert "http" not in page


# Tokens.


def test_tokens_come_from_a_file_or_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(
        f"# who\nview:{VIEW.secret}\n\n operate:{OPERATE.secret} \nplain-plain-plain-1\n"
    )
    file.chmod(0o600)
    assert read_tokens(file) == (VIEW, OPERATE, Token("plain-plain-plain-1", Role.OPERATE))
    assert read_tokens(None, {"HEADGATE_TOKEN": f"view:{VIEW.secret}"}) == (VIEW,)
    assert read_tokens(None, {}) == ()


@pytest.mark.parametrize(
    ("text", "mode", "code"),
    [
        ("x" * 15, 0o600, "TOKEN_TOO_SHORT"),
        (f"view:{'x' * 15}", 0o600, "TOKEN_TOO_SHORT"),
        ("x" * 20, 0o640, "TOKEN_FILE_UNSAFE"),
        ("x" * 20, 0o604, "TOKEN_FILE_UNSAFE"),
        ("# none\n", 0o600, "TOKEN_NOT_FOUND"),
    ],
)
def test_a_token_file_that_is_not_safe_is_refused(
    tmp_path: Path, text: str, mode: int, code: str
) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(HeadgateError) as refused:
        read_tokens(file)
    assert refused.value.code == code
    assert "x" * 15 not in str(refused.value)


def test_a_tokens_name_and_text_do_not_tell_it() -> None:
    assert OPERATE.secret not in repr(OPERATE)
    assert OPERATE.secret not in OPERATE.who
    assert find_token((VIEW, OPERATE), OPERATE.secret) is OPERATE
    assert find_token((VIEW, OPERATE), OPERATE.secret.upper()) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_another_address_than_loopback_needs_a_token(host: str) -> None:
    with pytest.raises(HeadgateError) as refused:
        check_settings(ServerSettings(host=host))
    assert refused.value.code == "TOKEN_NEEDED"
    check_settings(ServerSettings(host=host, tokens=(OPERATE,)))


def test_where_it_listens_on_every_address_no_name_is_let_through_but_those_that_were_named() -> (
    None
):
    served = ServerSettings(host="0.0.0.0", tokens=(OPERATE,), hosts=("jobs.example.org",))
    known = ["jobs.example.org", "JOBS.example.org", "localhost", "10.0.0.7", "::1"]
    assert all(served.allows_host(each) for each in known)
    assert not served.allows_host("evil.example")
    assert not ServerSettings(host="127.0.0.1").allows_host("10.0.0.7")


def test_the_servers_files_are_for_its_owner_alone(guarded: TestClient, place: Path) -> None:
    guarded.put("/v1/jobs/shop/checkpoints/chk-19/pin", headers=AS_OPERATOR)
    folder = place / ".headgate" / "server"
    assert folder.stat().st_mode & 0o077 == 0
    told = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    assert told
    assert os.environ.get("HEADGATE_TOKEN") is None
