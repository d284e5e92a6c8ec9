"""Where sources begin, as it is said on the command line."""

from __future__ import annotations

import pytest

from headgate import Flow, Kafka, Pulsar
from headgate.connectors.logs import bind, parse_log
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.jobs.startup.start_positions import parse_starts


def graph() -> Graph:
    flow = Flow("store")
    users = flow.table("users", "id BIGINT NOT NULL", key="id")
    for name in ("orders", "returns"):
        rows = flow.stream(name, "id BIGINT NOT NULL, user BIGINT")
        rows.enrich(f"{name}-user", users, on="user", into="u").matched.to(f"{name}-out")
    return bind(flow.graph(), parse_log("kafka://h"))


def test_a_position_alone_is_for_every_stream_and_for_no_table() -> None:
    assert parse_starts(["latest"], graph()) == {"orders": "latest", "returns": "latest"}
    assert parse_starts([], graph()) == {}


def test_a_named_source_wins_wherever_it_stands() -> None:
    said = ["users=latest", "orders=offsets:0=15,1=20", "2026-11-15T10:05"]
    assert parse_starts(said, graph()) == {
        "orders": "offsets:0=15,1=20",
        "returns": "2026-11-15T10:05:00+00:00",
        "users": "latest",
    }


@pytest.mark.parametrize("text", ["order=latest", "soon", "orders=soon", ""])
def test_what_is_neither_a_position_nor_a_source_is_refused(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_starts([text], graph())
    assert caught.value.code == "BAD_START"
    assert "--start" in caught.value.hint


def mixed() -> Graph:
    flow = Flow("mixed")
    flow.stream(Pulsar("orders", service="pulsar://h"), "id BIGINT").to("a")
    flow.stream(Kafka("returns", servers="h"), "id BIGINT").to("b")
    return flow.graph()


def test_a_start_fits_the_kind_of_its_topic() -> None:
    said = ["orders=messages:1=3:4,0=1:2", "returns=offsets:0=5"]
    assert parse_starts(said, mixed()) == {
        "orders": "messages:0=1:2,1=3:4",
        "returns": "offsets:0=5",
    }
    assert set(parse_starts(["latest"], mixed()).values()) == {"latest"}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("orders=offsets:0=5", "orders=messages:0="),
        ("returns=messages:0=1:2", "returns=offsets:0="),
        ("messages:0=1:2", "returns=offsets:0="),
    ],
)
def test_a_start_of_another_broker_is_refused_with_one_that_fits(text: str, hint: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_starts([text], mixed())
    assert caught.value.code == "BAD_START"
    assert hint in caught.value.hint
