"""How a server is asked: what is tried again, and what each failure is called."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import partial

import pytest
from told_server import Told, telling

from headgate.client.connection import Connection, find_error, is_loopback
from headgate.errors import Domain, HeadgateError


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.setattr("headgate.client.connection._PAUSES_S", (0.01, 0.01))
    with telling() as server:
        yield server


def refusal(connection: Connection, *, method: str = "GET") -> HeadgateError:
    ask = connection.get if method == "GET" else partial(connection.send, method)
    with pytest.raises(HeadgateError) as raised:
        ask("jobs")
    return raised.value


def test_names_are_parts_of_the_path_whatever_is_in_them(told: Told) -> None:
    Connection(told.url).get("jobs", "../a b?c", lines=5, all=True, after=None)
    (asked,) = told.asked
    assert asked[:2] == ("GET", "/v1/jobs/..%2Fa%20b%3Fc?lines=5&all=true")


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_a_url_may_end_in_the_ways_people_write_it(told: Told, end: str) -> None:
    connection = Connection(told.url + end, "secret-of-this-test")
    connection.send("POST", "jobs", body={"flow": "a.py"})
    assert connection.url == told.url
    (asked,) = told.asked
    assert asked[:3] == ("POST", "/v1/jobs", "Bearer secret-of-this-test")
    assert json.loads(asked[3]) == {"flow": "a.py"}


def test_a_question_that_got_lost_is_asked_again_and_a_wish_is_not(told: Told) -> None:
    told.answers = [(0, ""), (503, "away"), (200, "[1]")]
    assert Connection(told.url).get("jobs") == [1]
    assert len(told.asked) == 3
    told.answers, told.asked = [(0, "")], []
    error = refusal(Connection(told.url), method="POST")
    assert (error.code, len(told.asked)) == ("SERVER_UNREACHABLE", 1)
    assert "may have been done" in error.message
    assert refusal(Connection(told.url)).code == "SERVER_UNREACHABLE"
    assert len(told.asked) == 4


def test_a_wish_with_a_key_that_got_lost_is_repeated_with_the_same_key(told: Told) -> None:
    told.answers = [(0, ""), (503, "away"), (202, '{"id": 1}')]
    connection = Connection(told.url)
    assert connection.send_once("POST", "jobs", key="k1", body={"flow": "a.py"}) == {"id": 1}
    assert [asked.key for asked in told.asked] == ["k1"] * 3
    assert len({asked.body for asked in told.asked}) == 1


def test_a_client_that_asks_too_often_waits_and_asks_again(told: Told) -> None:
    limited = json.dumps({"code": "RATE_LIMITED", "message": "too often", "hint": ""})
    told.answers = [(429, limited), (200, "[]")]
    assert Connection(told.url).get("jobs") == []
    told.answers = [(429, limited)]
    assert refusal(Connection(told.url)).code == "RATE_LIMITED"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = refusal(Connection(f"http://127.0.0.1:{port}"), method="POST")
    assert (error.code, error.exit_code) == ("SERVER_UNREACHABLE", 3)
    assert "may have been done" not in error.message
    assert f"curl http://127.0.0.1:{port}/healthz" in error.hint


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, "<html>a page</html>"),
        (200, '"text"'),
        (404, "not here"),
        (404, '{"detail": "Not Found"}'),
        (302, ""),
        (500, "oops"),
    ],
)
def test_an_answer_that_is_none_of_ours_is_said_to_be(told: Told, status: int, text: str) -> None:
    told.answers = [(status, text)]
    error = refusal(Connection(told.url, "secret-of-this-test"))
    assert (error.code, error.exit_code) == ("SERVER_UNKNOWN", 3)
    assert "is this a headgate server?" in error.message
    # Nobody else was told the token.
    assert len(told.asked) == 1


@pytest.mark.parametrize(("token", "code"), [(None, "TOKEN_MISSING"), ("no", "TOKEN_WRONG")])
def test_a_token_that_is_missing_is_not_one_that_is_wrong(
    told: Told, token: str | None, code: str
) -> None:
    told.answers = [(401, '{"code": "NOT_SIGNED_IN", "message": "m", "hint": "h"}')]
    error = refusal(Connection(told.url, token))
    assert (error.code, error.exit_code) == (code, 2)
    assert "HEADGATE_TOKEN" in error.hint


@pytest.mark.parametrize(
    ("status", "told", "domain"),
    [
        (400, {}, Domain.USER),
        (404, {}, Domain.USER),
        (409, {"domain": "external"}, Domain.EXTERNAL),
        (503, {}, Domain.EXTERNAL),
        (500, {}, Domain.INTERNAL),
        (500, {"domain": "nobody's"}, Domain.INTERNAL),
    ],
)
def test_an_error_is_the_one_that_the_server_met(
    status: int, told: dict[str, str], domain: Domain
) -> None:
    error = find_error({"code": "A_CODE", "message": "m", "hint": "h", **told}, status)
    assert error is not None
    assert (error.as_dict(), error.domain) == (
        {"code": "A_CODE", "message": "m", "hint": "h"},
        domain,
    )


@pytest.mark.parametrize(
    "url", ["localhost:8270", "ftp://a", "http://", "", "http://u:hidden@a", "http://a?b=c"]
)
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(HeadgateError) as raised:
        Connection(url)
    assert raised.value.code == "BAD_SERVER"
    assert "hidden" not in raised.value.message


@pytest.mark.parametrize(
    ("url", "tells"),
    [
        ("http://127.0.0.1:1", False),
        ("http://localhost:1", False),
        ("http://[::1]:1", False),
        ("https://example.org", False),
        ("http://example.org", True),
        ("http://10.0.0.1:1", True),
    ],
)
def test_a_token_over_plain_http_is_known_to_be_readable(url: str, tells: bool) -> None:
    assert Connection(url, "secret-of-this-test").exposes_token is tells
    assert not Connection(url).exposes_token
    assert is_loopback("127.1.2.3")
