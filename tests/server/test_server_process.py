"""The server as a process: how it is refused, how it ends, and attacks that need a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from eventually import eventually
from fake_supervisor import FakeSupervisor
from server_bench import AS_OPERATOR, OPERATE, VIEW

from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.server.beside import serve_beside
from headgate.server.security.sessions import SESSION_COOKIE
from headgate.server.serving import hold_home, listen
from headgate.server.settings import ServerSettings

LONGEST = 60.0


class Served:
    """A server as a process of its own."""

    def __init__(self, folder: Path, *options: str, token: str = "") -> None:
        self.folder = folder
        environment = {key: value for key, value in os.environ.items() if key != "HEADGATE_TOKEN"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headgate", "serve", "--port", "0", "--json", *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | ({"HEADGATE_TOKEN": token} if token else {}),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        self.told: dict[str, Any] = json.loads(line)
        self.address = str(self.told["address"])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=LONGEST)
        return self.process.returncode, said


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server with its console that needs a token."""
    made = Served(tmp_path_factory.mktemp("process"), token=f"{OPERATE.secret}\nview:{VIEW.secret}")
    yield made
    made.process.kill()
    made.process.communicate()


def refusal(folder: Path, *options: str, token: str = "") -> tuple[int, str]:
    environment = {key: value for key, value in os.environ.items() if key != "HEADGATE_TOKEN"}
    ended = subprocess.run(
        [sys.executable, "-m", "headgate", "serve", "--json", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
        env=environment | ({"HEADGATE_TOKEN": token} if token else {}),
    )
    return ended.returncode, json.loads(ended.stderr)["code"]


def test_a_start_that_cannot_be_is_refused_with_its_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert refusal(tmp_path, "--port", port) == (3, "PORT_TAKEN")
    assert refusal(tmp_path, "--port", "0", "--flows", "nowhere") == (2, "FLOWS_NOT_FOUND")
    assert refusal(tmp_path, "--port", "0", "--host", "0.0.0.0") == (2, "TOKEN_NEEDED")
    assert refusal(tmp_path, "--port", "0", token="short") == (2, "TOKEN_TOO_SHORT")


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_an_address_that_is_not_the_machines_is_refused(host: str) -> None:
    with pytest.raises(HeadgateError, match="BAD_ADDRESS"):
        listen(host, 0)


def test_one_server_has_a_home_and_another_is_told_where_it_is(tmp_path: Path) -> None:
    first = ServerSettings(home=tmp_path, port=1234)
    with hold_home(first), pytest.raises(HeadgateError) as refused, hold_home(first):
        pass
    assert refused.value.code == "SERVER_RUNNING"
    assert "http://127.0.0.1:1234" in refused.value.message
    with hold_home(first):
        pass


def test_a_server_that_is_told_to_end_ends_in_order_and_jobs_go_on(tmp_path: Path) -> None:
    served = Served(tmp_path)
    with FakeSupervisor(JobFolder(tmp_path / ".headgate", "shop")):
        (job,) = httpx.get(f"{served.address}/v1/jobs").json()["jobs"]
        assert (job["job"], job["state"]) == ("shop", "RUNNING")
        # The second one on this home hears of the first.
        assert refusal(tmp_path, "--port", "0") == (2, "SERVER_RUNNING")
        code, said = served.end(signal.SIGINT)
        assert has_supervisor(JobFolder(tmp_path / ".headgate", "shop"))
    assert code == 0, said


def test_nothing_of_the_console_is_served_without_a_session(guarded: Served) -> None:
    with httpx.Client(base_url=guarded.address) as web:
        for path in ("/", "/jobs/shop", "/_nicegui/x/static/nicegui.js", "/_nicegui_ws/socket.io/"):
            assert web.get(path).status_code == 401
            page = web.get(path, headers={"Accept": "text/html"})
            assert (page.status_code, page.headers["Location"][:11]) == (303, "/login?next")
        assert web.get("/login").status_code == 200


def _handshake(address: str, path: str, **headers: str) -> int:
    """Ask for a websocket, and return the status of the answer."""
    host, _, port = address.removeprefix("http://").partition(":")
    told = {
        "Host": f"{host}:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    with socket.create_connection((host, int(port)), timeout=LONGEST) as made:
        made.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        return int(made.recv(4096).split(b" ", 2)[1])


def test_a_websocket_opens_for_a_session_of_this_site_alone(guarded: Served) -> None:
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    here = {"Origin": guarded.address}
    with httpx.Client(base_url=guarded.address) as web:
        web.post("/login", data={"token": VIEW.secret}, headers=here)
        session = {"Cookie": f"{SESSION_COOKIE}={web.cookies[SESSION_COOKIE]}"}
        assert _handshake(guarded.address, path) == 403
        assert _handshake(guarded.address, path, **here) == 403
        assert _handshake(guarded.address, path, **here, Cookie=f"{SESSION_COOKIE}=guess") == 403
        assert _handshake(guarded.address, path, **session) == 403
        foreign = {"Origin": "https://evil.example"}
        assert _handshake(guarded.address, path, **session, **foreign) == 403
        assert _handshake(guarded.address, path, **session, **here, Host="evil.example") == 403
        assert _handshake(guarded.address, path, **session, **here) == 101
        web.post("/logout", headers=here)
        assert _handshake(guarded.address, path, **session, **here) == 403


def test_a_chunked_body_without_end_is_cut_off(guarded: Served) -> None:
    host, _, port = guarded.address.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {OPERATE.secret}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with socket.create_connection((host, int(port)), timeout=LONGEST) as made:
        made.sendall(head.encode())
        # The answer may be lost with what was still on its way.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(64):
                made.sendall(piece)
        with contextlib.suppress(ConnectionResetError):
            assert b" 413 " in made.recv(4096).partition(b"\r\n")[0]
    assert httpx.get(f"{guarded.address}/v1/jobs", headers=AS_OPERATOR).status_code == 200


def test_a_client_cannot_say_that_it_comes_from_elsewhere(guarded: Served) -> None:
    told = {**AS_OPERATOR, "X-Forwarded-For": "10.9.8.7", "X-Forwarded-Host": "evil.example"}
    with httpx.Client(base_url=guarded.address, headers=told) as web:
        assert web.post("/v1/jobs/shop/stop").status_code == 404
        line = web.get("/v1/audit?limit=1").json()["lines"][0]
    assert line["address"] == "127.0.0.1"


def test_no_job_inherits_the_token(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "look.py").write_text(
        "import os\nraise ValueError(os.environ.get('HEADGATE_TOKEN', 'no token'))\n"
    )
    served = Served(tmp_path, "--flows", "flows", token=OPERATE.secret)
    try:
        with httpx.Client(base_url=served.address, headers=AS_OPERATOR) as web:
            begun = web.post("/v1/jobs", json={"flow": "look.py"})
            place = begun.headers["Location"]
            eventually(lambda: web.get(place).json()["state"] != "RUNNING")
            assert "ValueError: no token" in web.get(place).json()["error"]["message"]
    finally:
        code, said = served.end()
    assert code == 0, said


def test_a_server_beside_a_job_shows_it_and_ends_with_the_block(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    JobFolder(tmp_path, "other").write_status({"state": "STOPPED"})
    with FakeSupervisor(home):
        with serve_beside(tmp_path, "shop", on="files:topics", port=None) as address:
            told = httpx.get(f"{address}/v1/jobs").json()["jobs"]
            assert [each["job"] for each in told] == ["shop"]

        def is_gone() -> bool:
            try:
                httpx.get(f"{address}/healthz")
            except httpx.TransportError:
                return True
            return False

        eventually(is_gone)
        assert home.find_json("status.json") is not None


def test_a_port_that_is_asked_for_beside_a_job_and_taken_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(HeadgateError, match="PORT_TAKEN"),
            serve_beside(tmp_path, "shop", on="files:topics", port=port),
        ):
            pass
