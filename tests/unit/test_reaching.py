"""Whether anybody answers where a flow's topics are, before a job is begun."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from headgate import Files, Flow, Graph, HeadgateError, Pulsar
from headgate.connectors.registry import check_brokers


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def graph(source: Pulsar) -> Graph:
    flow = Flow("store", dead_letters=Files("dead-letters", dir="d"))
    flow.stream(source, "id BIGINT").to(Files("out", dir="o"))
    return flow.graph()


def test_a_service_where_nobody_listens_is_told_within_seconds() -> None:
    began = time.monotonic()
    with pytest.raises(HeadgateError) as caught:
        check_brokers(graph(Pulsar("orders", service="pulsar://127.0.0.1:1")))
    assert caught.value.code == "BROKER_UNREACHABLE"
    assert "run job 'store'" in caught.value.message
    assert time.monotonic() - began < 15


def test_an_admin_api_where_nobody_listens_is_told_too(listening: str) -> None:
    topic = Pulsar("orders", service=f"pulsar://{listening}", admin="http://127.0.0.1:1")
    with pytest.raises(HeadgateError) as caught:
        check_brokers(graph(topic))
    assert caught.value.code == "BROKER_UNREACHABLE"
    assert "http://127.0.0.1:1" in caught.value.message


def test_what_pythons_client_alone_objects_to_is_left_to_the_job(listening: str) -> None:
    options = {"useKeyStoreTls": "true"}
    check_brokers(graph(Pulsar("orders", service=f"pulsar://{listening}", options=options)))
