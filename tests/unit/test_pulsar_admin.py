"""The admin API of Pulsar: what is sent, what comes back, and what becomes of failures."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headgate import HeadgateError, Pulsar
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.pulsar.access.admin import Admin
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.runs.counting import MOST_LOOKS
from headgate.connectors.pulsar.runs.positions import Subscription, count_between


@dataclass
class FakeBroker:
    """Answers as it is told, by path, and remembers what it was asked; status 0 is no answer."""

    url: str = ""
    answers: dict[str, tuple[int, bytes, dict[str, str]]] = field(default_factory=dict)
    asked: list[tuple[str, str, str, str | None]] = field(default_factory=list)
    connections: int = 0

    def answer(self, path: str, status: int, body: object = None, **headers: str) -> None:
        text = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        self.answers[f"/admin/v2/{path}"] = (status, text, headers)

    def admin(self, **options: object) -> Admin:
        return Admin(PulsarLog.of("pulsar://h", self.url, options), doing="try it")


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    fake = FakeBroker()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one write: the second of two would wait 40 ms for an acknowledgement.
        wbufsize = -1

        def setup(self) -> None:
            super().setup()
            fake.connections += 1

        def log_message(self, *_: object) -> None:
            pass

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            login = self.headers.get("Authorization")
            fake.asked.append((self.command, self.path, body, login))
            status, text, headers = fake.answers.get(self.path.partition("?")[0], (404, b"", {}))
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            self.close_connection = "Connection" in headers or "Gone" in headers

        do_GET = do_PUT = do_POST = do_DELETE = _serve

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield fake
    server.shutdown()
    thread.join()
    server.server_close()


def test_httpx_is_not_loaded_before_it_is_needed() -> None:
    script = "import sys, headgate.connectors.pulsar.access.admin; print('httpx' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert told.stdout == b"False\n"


def test_values_are_sent_and_come_back_as_json_over_one_connection(broker: FakeBroker) -> None:
    broker.answer("a", 200, {"partitions": 4})
    broker.answer("b", 204)
    with broker.admin() as admin:
        assert admin.get("a", query={"applied": "true"}) == {"partitions": 4}
        assert admin.put("b", 4) is None
        assert admin.send("POST", "b", {"x": [1]}).content is None
        assert admin.send("DELETE", "b").content is None
        assert admin.find("not-there") is None
    assert [(verb, path, body) for verb, path, body, _ in broker.asked] == [
        ("GET", "/admin/v2/a?applied=true", ""),
        ("PUT", "/admin/v2/b", "4"),
        ("POST", "/admin/v2/b", '{"x":[1]}'),
        ("DELETE", "/admin/v2/b", ""),
        ("GET", "/admin/v2/not-there", ""),
    ]
    assert broker.connections == 1


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(broker: FakeBroker) -> None:
    broker.answer("a", 200, 1)
    admin = broker.admin()
    assert admin.get("a") == 1
    broker.answer("told", 200, 2, Connection="close")
    assert admin.get("told") == 2
    assert admin.get("a") == 1
    broker.answer("untold", 200, 3, Gone="soon")
    assert admin.get("untold") == 3
    assert admin.get("a") == 1
    assert broker.connections == 3
    admin.close()


def test_a_request_that_a_new_connection_lost_is_not_sent_again(broker: FakeBroker) -> None:
    broker.answer("a", 200, 1)
    broker.answer("lost", 0)
    with broker.admin() as admin:
        assert admin.get("a") == 1
        with pytest.raises(HeadgateError) as caught:
            admin.send("POST", "lost")
    assert caught.value.code == "BROKER_UNREACHABLE"
    # Once on the connection that was kept, and once on a new one.
    assert [path for _, path, *_ in broker.asked] == [
        f"/admin/v2/{x}" for x in ("a", "lost", "lost")
    ]
    with pytest.raises(HeadgateError), broker.admin() as admin:
        admin.send("POST", "lost")
    assert len(broker.asked) == 4


def test_a_closed_admin_opens_connections_anew(broker: FakeBroker) -> None:
    broker.answer("a", 200, 1)
    admin = broker.admin()
    for _ in range(2):
        assert admin.get("a") == 1
        admin.close()
    assert broker.connections == 2


def test_a_token_and_a_password_travel_in_the_header(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T", "secret")
    broker.answer("a", 200, 1)
    broker.admin(token="${env:T}").get("a")
    user = '{"userId":"me","password":"${env:T}"}'
    broker.admin(authPluginClassName="x.AuthenticationBasic", authParams=user).get("a")
    assert [login for *_, login in broker.asked] == ["Bearer secret", "Basic bWU6c2VjcmV0"]


def test_a_request_goes_on_to_the_broker_that_serves_the_topic(broker: FakeBroker) -> None:
    broker.answer("a", 307, None, Location=f"{broker.url}/admin/v2/there?authoritative=true")
    broker.answer("there", 200, 5)
    assert broker.admin().get("a") == 5
    broker.answer("loop", 307, None, Location=f"{broker.url}/admin/v2/loop")
    with pytest.raises(HeadgateError) as caught:
        broker.admin().get("loop")
    assert caught.value.code == "BROKER_FAILED"


def test_a_login_goes_along_to_the_broker_that_serves_the_topic(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T", "secret")
    other = broker.url.replace("127.0.0.1", "localhost")
    broker.answer("a", 307, None, Location=f"{other}/admin/v2/there")
    broker.answer("there", 200, 5)
    assert broker.admin(token="${env:T}").put("a", [1]) == 5
    assert broker.asked == [
        ("PUT", f"/admin/v2/{path}", "[1]", "Bearer secret") for path in ("a", "there")
    ]


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (401, b"<html>Unauthorized</html>", "BROKER_REFUSED", False),
        (403, {"reason": "Don't have permission"}, "BROKER_REFUSED", False),
        (404, {"reason": "Topic not found"}, "BROKER_FAILED", False),
        (409, {"reason": "This topic already exists"}, "BROKER_FAILED", False),
        (500, {"reason": "\n --- An unexpected error ---\n\nstack"}, "BROKER_FAILED", True),
        (503, None, "BROKER_FAILED", True),
    ],
)
def test_a_failure_is_told_in_one_line(
    broker: FakeBroker, status: int, body: object, code: str, retryable: bool
) -> None:
    broker.answer("a", status, body)
    with pytest.raises(HeadgateError) as caught:
        broker.admin().get("a")
    error = caught.value
    assert (error.code, error.retryable, error.exit_code) == (code, retryable, 3)
    assert str(status) in error.message
    assert "\n" not in error.message
    assert "<" not in error.message


def test_a_code_that_is_accepted_is_no_failure(broker: FakeBroker) -> None:
    broker.answer("a", 409, {"reason": "This topic already exists"})
    assert broker.admin().send("PUT", "a", 1, accepts={409}).status == 409


def test_a_broker_that_repeats_the_token_does_not_make_us_repeat_it(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T", "hunter2")
    broker.answer("a", 401, {"reason": "bad token hunter2"})
    with pytest.raises(HeadgateError) as caught:
        broker.admin(token="${env:T}").get("a")
    assert "hunter2" not in str(caught.value)


def test_an_admin_api_that_is_not_there_is_told_with_the_next_step() -> None:
    with pytest.raises(HeadgateError) as caught:
        Admin(PulsarLog.of("pulsar://h", "http://127.0.0.1:1"), doing="try it").get("clusters")
    assert caught.value.code == "BROKER_UNREACHABLE"
    assert "admin=" in caught.value.hint


def test_a_plain_answer_where_tls_was_wanted_is_told(broker: FakeBroker) -> None:
    url = broker.url.replace("http:", "https:")
    with pytest.raises(HeadgateError) as caught:
        Admin(PulsarLog.of("pulsar+ssl://h", url), doing="try it").get("clusters")
    assert caught.value.code in ("BROKER_REFUSED", "BROKER_UNREACHABLE")


def test_a_subscription_is_noted_at_the_beginning_of_a_ledger_before_it_is_moved(
    broker: FakeBroker,
) -> None:
    topic = "persistent/public/default/orders"
    for verb in ("properties", "resetcursor"):
        broker.answer(f"{topic}/subscription/job/{verb}", 204)
    subscription = Subscription(PulsarLog.of("pulsar://h", broker.url, {}), "job")
    for place in ("5:0", "5:3", "5:9", "8:0"):
        standpoint = {"partitioned": False, "next": [place]}
        topics = {"persistent://public/default/orders": standpoint}
        subscription.move(json.dumps({"format": 1, "topics": topics}))
    subscription.close()
    told = [(path.rpartition("/")[2], json.loads(body)) for _, path, body, _ in broker.asked]
    assert [body["headgate.next"] if verb == "properties" else verb for verb, body in told] == [
        *("5:0", "resetcursor"),
        *("5:3", "resetcursor"),
        "resetcursor",
        *("8:0", "resetcursor"),
    ]


PART = "persistent://public/default/a"
PATH = "persistent/public/default/a"
MESSAGES = {"X-Pulsar-num-batch-message": "200"}


def entries(broker: FakeBroker, *ledgers: tuple[int, int]) -> None:
    """Have the broker tell of ledgers with so many entries."""
    number, count = ledgers[-1]
    stats = {
        "ledgers": [{"ledgerId": ledger, "entries": held} for ledger, held in ledgers],
        "currentLedgerEntries": count,
        "lastConfirmedEntry": f"{number}:{count - 1}",
        "totalSize": 1,
    }
    broker.answer(f"{PATH}/internalStats", 200, stats)


def count(broker: FakeBroker, first: str, end: str) -> RecordCount | None:
    """Return what lies between two entries of a topic."""
    start, last = (
        json.dumps({"format": 1, "topics": {PART: {"partitioned": False, "next": [entry]}}})
        for entry in (first, end)
    )
    topic = Pulsar("a", service="pulsar://h", admin=broker.url)
    return count_between(topic, start, last)


def test_messages_are_counted_and_not_the_entries_that_hold_them(broker: FakeBroker) -> None:
    entries(broker, (5, 3), (6, 0), (7, 4))
    broker.answer(f"{PATH}/ledger/5/entry/1", 200, b"x", **MESSAGES)
    broker.answer(f"{PATH}/ledger/5/entry/2", 200, b"x")
    broker.answer(f"{PATH}/ledger/7/entry/0", 200, b"x", **{"X-Pulsar-marker-type": "1"})
    chunks = {"X-Pulsar-num-chunks-from-msg": "2"}
    broker.answer(f"{PATH}/ledger/7/entry/1", 200, b"x", **{"X-Pulsar-chunk-id": "0", **chunks})
    broker.answer(f"{PATH}/ledger/7/entry/2", 200, b"x", **{"X-Pulsar-chunk-id": "1", **chunks})
    assert count(broker, "5:1", "7:3") == RecordCount(202)


def test_many_entries_are_counted_by_some_that_are_evenly_spread(broker: FakeBroker) -> None:
    entries(broker, (5, 10_000))
    for entry in range(10_000):
        broker.answer(f"{PATH}/ledger/5/entry/{entry}", 200, b"x", **MESSAGES)
    assert count(broker, "5:0", "5:9000") == RecordCount(1_800_000, is_estimate=True)
    looked = [path for _, path, *_ in broker.asked if "/entry/" in path]
    assert len(looked) == MOST_LOOKS
    assert looked[-1].endswith("/8955")


def test_messages_that_were_deleted_or_cannot_be_asked_for_are_unknown(broker: FakeBroker) -> None:
    assert count(broker, "5:0", "5:2") is None
    entries(broker, (5, 2))
    assert count(broker, "5:0", "5:2") is None
    assert count(broker, "4:0", "5:2") is None
    broker.answer(f"{PATH}/internalStats", 0)
    assert count(broker, "5:0", "5:2") is None
