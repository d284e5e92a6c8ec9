"""Attempts to get in: out of the folders, by size, by rate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from eventually import eventually
from fake_clock import FakeClock
from server_bench import (
    AS_OPERATOR,
    AS_VIEWER,
    OPERATE,
    UNHURRIED,
    VIEW,
    TestClient,
    client,
    code_of,
    settings,
    store_job,
)

from headgate.errors import HeadgateError
from headgate.server.actions.flow_folder import find_flow_file
from headgate.server.context import ServerContext
from headgate.server.security.limits import Buckets, Limits, Rate


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("guarded")
    store_job(root)
    return root


@pytest.fixture(scope="module")
def open_(place: Path) -> Iterator[TestClient]:
    """Give a client of a server on this machine that needs no token."""
    with client(settings(place)) as made:
        yield made


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
        *(
            "on",
            "home",
            "checkpoints",
            "driver-memory",
            "executor-memory",
            "state-memory",
            "worker-memory",
            "metaspace",
            "direct-memory",
        ),
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
        lines = web.get("/v1/audit?limit=3", headers=AS_OPERATOR).json()["lines"]
    assert [each["outcome"] for each in lines] == ["NOT_ALLOWED", "NOT_ALLOWED", "RATE_LIMITED"]


def test_a_refusal_is_news_once_a_minute_for_each_asker() -> None:
    clock = FakeClock()
    buckets = Buckets(Rate(1, 1.0), clock.monotonic)
    assert [buckets.is_news(each) for each in ("a", "a", "b")] == [True, False, True]
    clock.advance(seconds=60)
    assert buckets.is_news("a")


def test_a_bucket_fills_again_and_each_asker_has_one() -> None:
    clock = FakeClock()
    buckets = Buckets(Rate(2, 0.5), clock.monotonic)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 2]
    assert buckets.take("b") == 0
    clock.advance(seconds=2)
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
        eventually(lambda: context._slow_waiters == 8, every=0.01)
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
