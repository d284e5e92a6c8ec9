"""What a local Kafka broker is told, and what it is asked."""

from __future__ import annotations

import socket
import struct
import threading
from datetime import timedelta

from headgate.brokers.kafka import is_serving
from headgate.brokers.kafka_settings import Ports, Security, server_properties

PORTS = Ports(clients=9092, controller=9093, inside=9094)


def told(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_an_open_broker_listens_on_the_loopback_alone() -> None:
    settings = told(server_properties(PORTS, data="kafka", settings={}))
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert settings["auto.create.topics.enable"] == "false"
    factors = [value for name, value in settings.items() if name.endswith("replication.factor")]
    assert set(factors) == {"1"}


def test_the_users_own_settings_win() -> None:
    own = {"auto.create.topics.enable": "true", "num.io.threads": "2"}
    settings = told(server_properties(PORTS, data="kafka", settings=own))
    assert own.items() <= settings.items()


def test_a_secured_broker_has_no_open_listener_for_clients() -> None:
    security = Security("me", 'a"b\\c', "store")
    settings = told(server_properties(PORTS, data="kafka", settings={}, security=security))
    assert settings["listeners"].startswith("SASL_SSL://127.0.0.1:9092,INSIDE://127.0.0.1:9094,")
    assert settings["inter.broker.listener.name"] == "INSIDE"
    # Escaped once for the login module, and once more for the file.
    plain = settings["listener.name.sasl_ssl.plain.sasl.jaas.config"]
    assert plain.endswith(r'user_me="a\\"b\\\\c";')


def _answering(answer: bytes) -> tuple[int, threading.Thread]:
    """Return the port of a server that gives one answer, in pieces, and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as link:
            link.recv(1024)
            for byte in range(0, len(answer), 5):
                link.sendall(answer[byte : byte + 5])

    thread = threading.Thread(target=serve)
    thread.start()
    return server.getsockname()[1], thread


def test_a_broker_serves_once_it_names_itself() -> None:
    within = timedelta(seconds=5)
    one = struct.pack(">iii", 1, 0, 1) + b"a broker"
    none = struct.pack(">iii", 1, 0, 0)
    for body, serves in ((one, True), (none, False), (b"", False)):
        port, thread = _answering(struct.pack(">i", len(body)) + body)
        assert is_serving("127.0.0.1", port, within=within) is serves
        thread.join(5)
    port, thread = _answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert not is_serving("127.0.0.1", port, within=within)
    thread.join(5)
    assert not is_serving("127.0.0.1", port, within=within)
