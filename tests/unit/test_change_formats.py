"""Formats of change data, and several outputs at once, as a flow declares them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate import Console, Flow, HeadgateError, Kafka
from headgate.flow.graph.graph import Graph
from headgate.flow.schemas.schema import Primitive
from headgate.flow.streams.stream import Stream
from headgate.formats import Debezium, Upsert

USER = "id BIGINT NOT NULL, name STRING, gone BOOLEAN"


def stream(flow: Flow | None = None) -> Stream:
    return (flow or Flow("f")).stream("in", USER)


def refused(code: str, build: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        build()
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def test_the_operation_is_a_column_of_a_stream_of_changes() -> None:
    flow = Flow("f")
    changes = flow.stream("users", USER, format=Debezium(op="op"))
    assert changes.schema.names == ("id", "name", "gone", "op")
    assert changes.schema.fields[-1].type == Primitive("string")
    assert not changes.schema.fields[-1].nullable
    changes.to("out")
    assert Graph.from_json(flow.graph().to_json()) == flow.graph()
    refused("DUPLICATE_COLUMN", lambda: Flow("g").stream("u", USER, format=Debezium(op="Name")))


def test_a_table_of_changes_has_neither_an_operation_nor_a_version() -> None:
    flow = Flow("f")
    form = Debezium(op="op")
    refused("BAD_FORMAT", lambda: flow.table("users", USER, key="id", format=form))
    refused(
        "BAD_VERSION",
        lambda: flow.table("users", USER, key="id", version="id", format="debezium"),
    )
    flow.table("users", USER, key="id", format="debezium")
    flow.broadcast("rules", USER, key="id", format="debezium")


def test_options_of_debezium_are_checked() -> None:
    refused("BAD_FORMAT", lambda: Debezium(timestamps="s"))
    refused("BAD_FORMAT", lambda: Debezium(decimals="text"))
    refused("BAD_NAME", lambda: Debezium(op="the op"))


def test_formats_are_refused_where_they_do_not_belong() -> None:
    refused("BAD_FORMAT", lambda: Flow("f").stream("in", USER, format="upsert"))
    refused("BAD_FORMAT", lambda: stream().to("out", key="id", format="debezium"))


@pytest.mark.parametrize(
    ("key", "form"),
    [
        (None, Upsert()),
        ("name.first", Upsert()),
        ("nobody", Upsert()),
        ("id", Upsert(deleted="nobody")),
        ("id", Upsert(deleted="name")),
        ("id", Upsert(deleted="id")),
        ("gone", Upsert(deleted="gone")),
    ],
)
def test_upserts_need_a_key_and_a_boolean_mark(key: str | None, form: Upsert) -> None:
    refused("BAD_OUTPUT", lambda: stream().to("out", key=key, format=form))


def test_upserts_are_kept_in_the_json_of_a_flow() -> None:
    flow = Flow("f")
    stream(flow).to("out", key="id", format=Upsert(deleted="gone"))
    (output,) = Graph.from_json(flow.graph().to_json()).outputs()
    assert (output.key, output.format) == ("id", Upsert(deleted="gone"))


def test_a_list_of_topics_is_one_output_each() -> None:
    flow = Flow("f")
    kafka = Kafka("out", servers="localhost:9092")
    stream(flow).to([kafka, "other", Console()], key="id", format="upsert")
    outputs = flow.graph().outputs()
    assert [output.topic.name for output in outputs] == ["out", "other", "console"]
    assert {output.key for output in outputs} == {"id"}
    assert {output.format for output in outputs} == {Upsert()}
    assert len({output.input for output in outputs}) == 1


def test_of_several_topics_all_are_added_or_none() -> None:
    flow = Flow("f")
    source = stream(flow)
    refused("DUPLICATE_OUTPUT", lambda: source.to(["a", "b", "a"]))
    refused("BAD_OUTPUT", lambda: source.to(["a", "b"], format="text"))
    refused("BAD_OUTPUT", lambda: source.to([]))
    source.to(["a", "b"])
    assert [output.id for output in flow.graph().outputs()] == ["a", "b"]
    refused("DUPLICATE_OUTPUT", lambda: source.to(["c", "b"]))
    assert [output.id for output in flow.graph().outputs()] == ["a", "b"]
