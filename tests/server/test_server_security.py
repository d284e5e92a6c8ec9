"""Attempts to get in: without a token, from another site, out of the folders, by size, by rate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from server_bench import (
    AS_OPERATOR,
    AS_VIEWER,
    HERE,
    OPERATE,
    UNHURRIED,
    VIEW,
    TestClient,
    client,
    settings,
    store_job,
)

from headgate.errors import HeadgateError
from headgate.jobs.home import JobHome
from headgate.server.access import (
    SESSION_COOKIE,
    Role,
    Sessions,
    Token,
    find_token,
    read_tokens,
)
from headgate.server.audit import AuditLog
from headgate.server.context import SERVER, ServerContext
from headgate.server.flows import find_flow_file
from headgate.server.limits import Buckets, Limits, Rate
from headgate.server.settings import ServerSettings, check_settings

ACTIONS = [
    ("POST", "/v1/jobs", {"flow": "shop.py"}),
    *(("POST", f"/v1/jobs/shop/{verb}", {}) for verb in ("stop", "cancel", "pause", "resume")),
    *(("POST", f"/v1/jobs/shop/{verb}", {}) for verb in ("start", "restart", "savepoints")),
    ("POST", "/v1/jobs/shop/restore", {"from": "chk-19"}),
    ("PUT", "/v1/jobs/shop/checkpoints/chk-19/pin", None),
    ("DELETE", "/v1/jobs/shop/checkpoints/chk-19/pin", None),
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


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


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
    last = guarded.get("/v1/audit?lines=1", headers=AS_OPERATOR).json()["lines"][0]
    assert (last["outcome"], last["role"], last["who"]) == ("NOT_ALLOWED", "view", VIEW.who)


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


# Out of the folders.

OUT = [
    *(
        "..",
        "../shop",
        "..%2fshop",
        "%2e%2e",
        "%2e%2e%2fjobs",
        ".",
        "/etc/passwd",
        "%2fetc%2fpasswd",
    ),
    *("shop%00", "shop/../shop", "shop%2f..%2fshop", "SHOP", "~", "shop\\..", "-", "a" * 300),
    *("%c0%ae%c0%ae", "..;", "shop ", "shop%0a"),
]
PLACES = [
    "/v1/jobs/{}",
    "/v1/jobs/{}/logs",
    "/v1/jobs/shop/checkpoints/{}",
    "/v1/jobs/shop/state/{}/rows",
    "/v1/jobs/shop/outputs/{}/records",
    "/v1/jobs/shop/dead-letters/{}",
    "/v1/topics/{}/records",
    "/v1/operations/{}",
]


async def get_as_it_is(web: TestClient, path: str) -> tuple[int, bytes]:
    """Ask for a path that no client would send, since clients take '..' out of it."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8270),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
        "state": {},
    }
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    await web.app(scope, receive, send)
    return said[0]["status"], b"".join(each.get("body", b"") for each in said[1:])


@pytest.mark.parametrize("place_", PLACES)
def test_no_name_in_a_path_leads_out_of_the_folders(open_: TestClient, place_: str) -> None:
    for name in OUT:
        status, body = asyncio.run(get_as_it_is(open_, place_.format(name)))
        assert status in (400, 404), (name, body)
        assert set(json.loads(body)) >= {"code", "message", "hint"}
        assert b"root:" not in body


@pytest.mark.parametrize("place_", ["at", "log"])
def test_no_name_in_a_query_leads_out_of_the_folders(open_: TestClient, place_: str) -> None:
    path = "/v1/jobs/shop/state" if place_ == "at" else "/v1/jobs/shop/logs"
    for name in ("../x", "/etc/passwd", "a/../b", "..", "x/chk-1/..", "chk-1/x"):
        assert open_.get(path, params={place_: name}).status_code == 400


@pytest.mark.parametrize(
    "flow",
    [
        *("../outside.py", "..", "deep/../../outside.py", "/etc/passwd", "{root}/outside.py"),
        *("./shop.py", "deep//shop.py", "link.py", "linked/outside.py", "linked", ".hidden.py"),
        *(
            "~/shop.py",
            "shop.py:",
            "shop.py:a-b",
            "shop.py:a:b",
            "shop\0.py",
            "shop.txt",
            "\\shop.py",
        ),
        *("%2e%2e/outside.py", "file:///etc/passwd", " ", "missing.py"),
    ],
)
def test_only_flows_of_the_folder_are_taken(open_: TestClient, place: Path, flow: str) -> None:
    outside = place / "elsewhere"
    outside.mkdir(exist_ok=True)
    for file in (place / "outside.py", outside / "outside.py", outside / "flow.py"):
        file.write_text("raise AssertionError('it ran')\n")
    for link, to in (("link.py", place / "outside.py"), ("linked", outside)):
        if not (place / "flows" / link).is_symlink():
            (place / "flows" / link).symlink_to(to)
    (place / "flows" / ".hidden.py").write_text("")
    (place / "flows" / "shop.txt").write_text("")
    answer = open_.post("/v1/jobs", json={"flow": flow.replace("{root}", str(place))})
    assert answer.status_code in (400, 404), answer.text
    assert answer.json()["code"] in ("BAD_NAME", "FLOW_NOT_FOUND", "BAD_REQUEST")
    assert "linked/flow.py" not in open_.get("/v1/flows").text


def test_a_flow_inside_is_found_and_a_link_that_stays_inside_too(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "flow.py").write_text("")
    (tmp_path / "same.py").symlink_to(tmp_path / "orders" / "flow.py")
    real = str((tmp_path / "orders" / "flow.py").resolve())
    assert find_flow_file(tmp_path, "orders") == real
    assert find_flow_file(tmp_path, "orders/flow.py:other") == f"{real}:other"
    assert find_flow_file(tmp_path, "same.py") == real


@pytest.mark.parametrize(
    "name",
    [
        *("on", "home", "checkpoints", "driver-memory", "executor-memory", "state-memory"),
        *("master", "log-level", "flow", "spark.driver.extraJavaOptions", "", "Retain"),
    ],
)
def test_a_setting_that_is_the_servers_to_say_is_refused(open_: TestClient, name: str) -> None:
    answer = open_.post("/v1/jobs", json={"flow": "shop.py", "settings": {name: "/tmp/x"}})
    assert code_of(answer) == (400, "SETTING_NOT_ALLOWED")


@pytest.mark.parametrize(
    "told",
    [
        {"x" * 65: 1},
        {"retain": "x" * 1025},
        {f"s{number}": 1 for number in range(65)},
    ],
)
def test_settings_that_are_too_long_or_too_many_are_refused(
    open_: TestClient, told: dict[str, Any]
) -> None:
    answer = open_.post("/v1/jobs", json={"flow": "shop.py", "settings": told})
    assert code_of(answer) == (400, "BAD_REQUEST")
    described = open_.get("/v1/openapi.json").json()["components"]["schemas"]["Submit"]
    settings_ = described["properties"]["settings"]
    assert settings_["propertyNames"] == {"maxLength": 64}
    assert settings_["maxProperties"] == 64
    assert {"type": "string", "maxLength": 1024} in settings_["additionalProperties"]["anyOf"]


@pytest.mark.parametrize(
    "source", ["/tmp", "../x", "a/b", "..", "before/../..", "~", "x/chk-1/chk-2", "/chk-1", "kept"]
)
def test_a_restore_goes_to_no_folder_of_the_callers(
    open_: TestClient, place: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(place)
    (place / "kept").mkdir(exist_ok=True)
    for body in ({"from": source}, {"from": source, "dry_run": True}):
        assert open_.post("/v1/jobs/shop/restore", json=body).status_code == 400
    answer = open_.post("/v1/jobs", json={"flow": "shop.py", "restore_from": source})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/jobs/shop/stop", {"savepoint": "/tmp/x"}),
        ("/v1/jobs/shop/stop", {"to": "/tmp/x"}),
        ("/v1/jobs/shop/savepoints", {"to": "/tmp/x"}),
        ("/v1/jobs/shop/restore", {"checkpoints": "/tmp/x"}),
        ("/v1/jobs", {"flow": "shop.py", "home": "/tmp/x"}),
    ],
)
def test_a_request_names_no_folder_to_write_to(
    open_: TestClient, path: str, body: dict[str, Any]
) -> None:
    assert code_of(open_.post(path, json=body)) == (400, "BAD_REQUEST")


# How large, how often.


def test_a_body_that_is_too_large_is_not_read(open_: TestClient) -> None:
    answer = open_.post("/v1/jobs", content=b"x" * ((1 << 20) + 1))
    assert code_of(answer) == (413, "TOO_LARGE")


def test_a_body_in_pieces_is_counted(open_: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * (32 << 10)

    assert code_of(open_.post("/v1/jobs", content=pieces())) == (413, "TOO_LARGE")
    assert code_of(open_.post("/login", content=pieces())) == (413, "TOO_LARGE")


def test_a_body_that_is_no_json_is_told_as_such(open_: TestClient) -> None:
    for body in (b"{", b"\xff\xfe", b"[]", b"null", b'{"flow": 1}', b"[" * 100_000):
        answer = open_.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
        assert code_of(answer) == (400, "BAD_REQUEST")


def test_a_client_that_asks_too_often_is_told_to_wait(place: Path) -> None:
    limits = Limits(requests=Rate(5, 0.1), actions=UNHURRIED.actions)
    with client(settings(place, limits=limits)) as web:
        answers = [web.get("/v1/jobs") for _ in range(7)]
    assert [each.status_code for each in answers] == [200] * 5 + [429] * 2
    assert code_of(answers[-1]) == (429, "RATE_LIMITED")
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 10


def test_actions_without_the_role_are_counted_and_a_flood_is_written_down_once(
    place: Path,
) -> None:
    limits = Limits(requests=UNHURRIED.requests, actions=Rate(2, 0.01))
    served = settings(place, tokens=(OPERATE, VIEW), limits=limits)
    with client(served) as web:
        answers = [web.post("/v1/jobs/shop/pause", headers=AS_VIEWER) for _ in range(6)]
        assert [each.status_code for each in answers] == [403] * 2 + [429] * 4
        lines = web.get("/v1/audit?lines=3", headers=AS_OPERATOR).json()["lines"]
    assert [each["outcome"] for each in lines] == ["NOT_ALLOWED", "NOT_ALLOWED", "RATE_LIMITED"]


def test_a_refusal_is_news_once_a_minute_for_each_asker() -> None:
    now = [0.0]
    buckets = Buckets(Rate(1, 1.0), clock=lambda: now[0])
    assert [buckets.is_news(each) for each in ("a", "a", "b")] == [True, False, True]
    now[0] = 60.0
    assert buckets.is_news("a")


def test_a_bucket_fills_again_and_each_asker_has_one() -> None:
    now = [0.0]
    buckets = Buckets(Rate(2, 0.5), lambda: now[0])
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 2]
    assert buckets.take("b") == 0
    now[0] = 2.0
    assert [buckets.take("a"), buckets.take("a")] == [0, 2]


def test_only_a_few_wait_for_a_slow_read_and_the_others_are_told_at_once(tmp_path: Path) -> None:
    context = ServerContext(settings(tmp_path))
    got: list[int] = []

    def wait(number: int) -> None:
        with context.slow_read():
            got.append(number)

    waiters = [threading.Thread(target=wait, args=(number,)) for number in range(8)]
    with contextlib.ExitStack() as held:
        for _ in range(8):
            held.enter_context(context.slow_read())
        for each in waiters:
            each.start()
        deadline = time.monotonic() + 10
        while context._slow_waiters < 8 and time.monotonic() < deadline:
            time.sleep(0.01)
        begun = time.monotonic()
        with pytest.raises(HeadgateError) as refused, context.slow_read():
            pass
        assert refused.value.code == "SERVER_BUSY"
        assert time.monotonic() - begun < 1
    for each in waiters:
        each.join(10)
    assert sorted(got) == list(range(8))
    with context.slow_read():
        assert context._slow_waiters == 0


# Secrets.


@pytest.fixture
def leaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Give a client of a server whose job has secrets in its settings and its logs."""
    monkeypatch.setenv("STORE_PASSWORD", "correct-horse-battery")
    config = tmp_path / "client.properties"
    config.write_text("sasl.password=staple-in-a-file\nlinger.ms=5\n")
    on = f"kafka://broker:9092?sasl.password=${{env:STORE_PASSWORD}}&config={quote(str(config))}"
    home = JobHome(tmp_path / ".headgate", "shop")
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
    pin, stop = guarded.get("/v1/audit?lines=2", headers=AS_OPERATOR).json()["lines"]
    assert (pin["what"], pin["job"], pin["outcome"]) == ("pin", "shop", "DONE")
    assert pin["details"] == {"checkpoint": "chk-19"}
    assert pin["operation"].startswith("op-")
    assert (stop["what"], stop["outcome"]) == ("stop", "JOB_NOT_RUNNING")
    assert (stop["who"], stop["role"]) == (OPERATE.who, "operate")
    assert stop["address"] == "testclient"


def test_the_audit_log_is_private_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.server.audit._LARGEST", 2_000)
    log = AuditLog(tmp_path / "server" / "audit.jsonl")
    for number in range(50):
        log.add(SERVER, f"thing-{number}", outcome="DONE")
    files = sorted((tmp_path / "server").glob("audit.jsonl*"))
    assert sum(each.stat().st_size for each in files) < 5_000
    assert (tmp_path / "server" / "audit.jsonl").stat().st_mode & 0o077 == 0
    assert [each["what"] for each in log.tail(3)] == ["thing-47", "thing-48", "thing-49"]
    with (tmp_path / "server" / "audit.jsonl").open("a") as file:
        file.write('{"half')
    assert log.tail(1)[0]["what"] == "thing-49"
    assert all(each["format"] == 1 for each in log.tail(100))


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
    assert first["details"] == {"settings": {"***": 1, "k" * 64: "v" * 1_000, "half": half}}
    assert second["details"] == {"text": "x" * 1_000}
    assert (third["what"], third["details"]) == ("submit", {"cut": True})
    assert max(searched) <= 8 << 10
    assert max(len(line) for line in file.read_bytes().split(b"\n")) <= 8 << 10


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
