"""What a local Pulsar broker is unpacked from and told, and what it is asked."""

from __future__ import annotations

import base64
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.brokers import pulsar_distribution
from headgate.brokers.pulsar import find_bookie
from headgate.brokers.pulsar_distribution import (
    DISTRIBUTION,
    count_missing,
    distribution_folder,
    get_distribution,
    unpack,
)
from headgate.brokers.pulsar_health import is_serving
from headgate.brokers.pulsar_settings import (
    LEDGERS,
    Ports,
    Security,
    sign_token,
    standalone_conf,
)

PORTS = Ports(clients=6650, admin=8080, bookie=20000)
SECURITY = Security(Path("/broker"), role="me", keystore_password="store")


def told(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def pack(file: Path, names: dict[str, bytes], links: dict[str, str] | None = None) -> None:
    with tarfile.open(file, "w:gz") as archive:
        for name, content in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)


def test_only_jars_and_licences_are_unpacked_and_nothing_leaves_the_folder(tmp_path: Path) -> None:
    archive, folder = tmp_path / "a.tar.gz", tmp_path / "inside"
    folder.mkdir()
    good = {"p/lib/a.jar": b"a", "p/LICENSE": b"l", "p/bin/pulsar": b"#!", "p/lib/x/y.jar": b"y"}
    bad = {"../evil.jar": b"1", "/lib/evil.jar": b"2", "p/../../evil.jar": b"3"}
    pack(archive, {**good, **bad}, links={"p/lib/link.jar": str(tmp_path / "target")})
    unpack(archive, folder)
    found = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    # A root counts as the one folder that all lies in.
    assert found == {"a.tar.gz", "inside/lib/a.jar", "inside/LICENSE", "inside/lib/evil.jar"}


def test_the_distribution_is_unpacked_once_and_the_archive_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path))
    assert count_missing() == DISTRIBUTION.size
    archive = tmp_path / "fetched.tar.gz"
    pack(archive, {"p/lib/a.jar": b"a"})
    monkeypatch.setattr(pulsar_distribution, "resolve", lambda _, **__: (archive,))
    heard: list[str] = []
    folder = get_distribution(progress=heard.append)
    assert folder == distribution_folder()
    assert (folder / "lib" / "a.jar").read_bytes() == b"a"
    assert get_distribution(progress=heard.append) == folder
    assert (len(heard), count_missing(), archive.exists()) == (1, 0, False)
    # Nothing half-made lies around.
    assert [each.name for each in tmp_path.glob("[!.]*")] == [folder.name]


def test_a_folder_that_was_never_finished_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path))
    (distribution_folder() / "lib").mkdir(parents=True)
    archive = tmp_path / "fetched.tar.gz"
    pack(archive, {"p/lib/a.jar": b"a"})
    monkeypatch.setattr(pulsar_distribution, "resolve", lambda _, **__: (archive,))
    assert (get_distribution(progress=print) / "lib" / "a.jar").is_file()


def test_an_open_broker_listens_on_the_loopback_and_makes_no_topics() -> None:
    settings = told(standalone_conf(PORTS, settings={}))
    assert (settings["brokerServicePort"], settings["webServicePort"]) == ("6650", "8080")
    assert settings["bindAddress"] == settings["advertisedAddress"] == "127.0.0.1"
    assert settings["listeningInterface"].startswith("lo")
    assert settings["allowAutoTopicCreation"] == "false"
    # Or a topic that nobody reads is gone after a minute.
    assert settings["brokerDeleteInactiveTopicsEnabled"] == "false"
    assert "authenticationEnabled" not in settings


def test_the_users_own_settings_win() -> None:
    own = {"allowAutoTopicCreation": "true", "maxMessageSize": "1000"}
    assert own.items() <= told(standalone_conf(PORTS, settings=own)).items()


def test_a_secured_broker_has_no_open_port() -> None:
    settings = told(standalone_conf(PORTS, settings={}, security=SECURITY))
    assert (settings["brokerServicePort"], settings["webServicePort"]) == ("", "")
    assert (settings["brokerServicePortTls"], settings["webServicePortTls"]) == ("6650", "8080")
    assert settings["authenticationEnabled"] == settings["authorizationEnabled"] == "true"
    assert settings["superUserRoles"] == "me"
    assert settings["tokenSecretKey"] == "file:///broker/secure/token.key"
    assert settings["tlsKeyStore"] == "secure/broker.p12"


def test_a_token_says_who_its_bearer_is() -> None:
    head, body, signature = sign_token(b"k" * 32, "me").split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "HS256"}
    assert json.loads(base64.urlsafe_b64decode(body + "==")) == {"sub": "me"}
    assert signature != sign_token(b"l" * 32, "me").rpartition(".")[2]


def test_the_port_of_the_storage_is_the_one_it_is_known_by(tmp_path: Path) -> None:
    assert find_bookie(tmp_path) is None
    cookie = tmp_path / LEDGERS / "current" / "VERSION"
    cookie.parent.mkdir(parents=True)
    cookie.write_text('4\nbookieHost: "127.0.0.1:20123"\njournalDir: "pulsar/ledgers"\n')
    assert find_bookie(tmp_path) == 20123


@pytest.fixture
def administration() -> Iterator[tuple[str, dict[str, int]]]:
    """Give the address of a server, and what it answers by path; 500 where nothing is said."""
    answers: dict[str, int] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answers.get(self.path, 500))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base has it so
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", answers
        server.shutdown()


def test_a_broker_serves_once_it_is_ready_and_has_its_namespace(
    administration: tuple[str, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy of the environment is for the world, not for this machine.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    address, answers = administration
    within = timedelta(seconds=5)
    assert not is_serving(address, within=within)
    answers["/admin/v2/brokers/ready"] = 200
    assert not is_serving(address, within=within)
    answers["/admin/v2/namespaces/public/default"] = 200
    assert is_serving(address, within=within)
    assert not is_serving("http://127.0.0.1:1", within=within)
