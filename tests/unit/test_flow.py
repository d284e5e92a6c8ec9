"""What a user writes: what it makes, and what is refused and how."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headgate import Console, Files, Flow, HeadgateError, Stream, Table
from headgate.flow.operators.nodes import (
    Column,
    Enrich,
    Load,
    Output,
    Port,
    Select,
    Source,
    SourceKind,
    Transform,
    Where,
    WithColumns,
)
from headgate.flow.schemas.schema import Field, Primitive, Schema, Struct, Unknown, schema_of
from headgate.flow.topics import LogicalTopic

ORDER = (
    "id BIGINT NOT NULL, userId BIGINT NOT NULL, itemId STRING, price DOUBLE, createdAt BIGINT, "
    "at TIMESTAMP, ref STRUCT<user: BIGINT, tag: STRING>"
)
USER = "id BIGINT NOT NULL, name STRING, seq BIGINT, at TIMESTAMP, score DOUBLE"


@dataclass
class Item:
    id: str
    name: str


class Shop(NamedTuple):
    """A flow that has been begun, for a test to go on with."""

    flow: Flow
    orders: Stream
    users: Table


def a_flow() -> Shop:
    flow = Flow("shop")
    return Shop(flow, flow.stream("orders", ORDER), flow.table("users", USER, key="id"))


def refused(code: str, act: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        act()
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def test_a_flow_becomes_its_nodes_in_the_order_they_were_declared() -> None:
    flow, orders, users = a_flow()
    enriched = orders.where("price > 0").enrich("with-user", users, on="userId", into="user")
    enriched.matched.with_columns(total="price * 2").select("id", "user.name", "total").to("out")
    enriched.missing.to(Files("lost", dir="data/lost"))
    schema = schema_of(ORDER)
    orders_node = Source(
        "orders", SourceKind.STREAM, LogicalTopic("orders"), schema, None, None, (), None,
        Load.TOGETHER,
    )  # fmt: skip
    users_node = Source(
        "users", SourceKind.TABLE, LogicalTopic("users"), schema_of(USER), None, None, ("id",),
        None, Load.FIRST,
    )  # fmt: skip
    assert flow.graph().nodes == (
        orders_node,
        users_node,
        Where("orders.where-1", Port("orders", "out"), "price > 0"),
        Enrich("with-user", Port("orders.where-1", "out"), "users", ("userId",), "user"),
        WithColumns(
            "with-user.matched.with-columns-1",
            Port("with-user", "matched"),
            (Column("total", "price * 2"),),
        ),
        Select(
            "with-user.matched.select-1",
            Port("with-user.matched.with-columns-1", "out"),
            (Column("id", "id"), Column("name", "user.name"), Column("total", "total")),
        ),
        Output("out", Port("with-user.matched.select-1", "out"), LogicalTopic("out")),
        Output("lost", Port("with-user", "missing"), Files("lost", dir="data/lost")),
    )


def test_matched_has_the_tables_row_and_missing_is_as_it_came() -> None:
    _, orders, users = a_flow()
    enriched = orders.enrich("with-user", users, on="userId", into="user")
    row = Field("user", Struct(schema_of(USER).fields), nullable=False)
    assert enriched.matched.schema == Schema((*schema_of(ORDER).fields, row))
    assert enriched.missing.schema == schema_of(ORDER)
    assert users.schema == schema_of(USER)


def test_the_type_of_an_expression_is_unknown_and_of_a_path_known() -> None:
    _, orders, _ = a_flow()
    schema = orders.select("price * 2 AS total", "ref.tag AS tag", "id", "`price`").schema
    assert schema.fields == (
        Field("total", Unknown(), True),
        Field("tag", Primitive("string"), True),
        Field("id", Primitive("bigint"), False),
        Field("price", Primitive("double"), True),
    )


def test_a_replaced_column_has_a_type_yet_unknown() -> None:
    _, orders, _ = a_flow()
    changed = orders.with_columns("upper(itemId) AS itemId").schema
    assert changed.names == schema_of(ORDER).names
    assert changed.find("itemId") == Field("itemId", Unknown(), True)


def test_event_time_and_lateness_are_kept() -> None:
    flow = Flow("shop")
    flow.stream("a", ORDER, event_time="createdAt", out_of_orderness="5s").to("x")
    flow.stream("b", ORDER, event_time="at").to("y")
    first, second = flow.graph().streams()
    assert (first.event_time, first.out_of_orderness) == ("createdAt", timedelta(seconds=5))
    assert (second.event_time, second.out_of_orderness) == ("at", timedelta(0))


def test_a_table_keeps_its_key_version_and_load() -> None:
    flow = Flow("shop")
    table = flow.table("users", USER, key=["id", "name"], version="at", load="together", uid="u")
    orders = flow.stream("orders", ORDER)
    orders.enrich("e", table, on=["ref.user", "ref.tag"], into="user").matched.to("out")
    (node,) = flow.graph().tables()
    assert (node.id, node.key, node.version, node.load) == ("u", ("id", "name"), "at", "together")


def test_stateless_operators_are_numbered_by_where_their_rows_come_from() -> None:
    _, orders, users = a_flow()
    first = orders.where("price > 1").where("price > 2")
    second = orders.where("price > 3")
    matched = second.enrich("e", users, on="userId", into="user").matched.where("price > 4")
    assert [stream.port.node for stream in (first, second, matched)] == [
        "orders.where-2",
        "orders.where-3",
        "e.matched.where-1",
    ]


def test_one_output_may_have_several_readers() -> None:
    flow, orders, users = a_flow()
    orders.enrich("e", users, on="userId", into="user").matched.to("out")
    orders.to("copy")
    readers = flow.graph().consumers(Port("orders", "out"))
    assert [node.id for node in readers] == ["e", "copy"]


def test_a_transform_keeps_the_schema_unless_given_another() -> None:
    flow, orders, _ = a_flow()
    assert orders.transform("clean:run").schema == schema_of(ORDER)
    changed = orders.transform("my.package.clean:run", Item)
    assert changed.schema == schema_of(Item)
    assert flow._builder.nodes[changed.port.node] == Transform(
        "orders.transform-2", Port("orders", "out"), "my.package.clean:run", schema_of(Item)
    )


def test_unused_side_outputs_and_stateful_operators_are_listed() -> None:
    flow, orders, users = a_flow()
    first = orders.enrich("a", users, on="userId", into="user")
    second = first.matched.enrich("b", users, on="ref.user", into="other")
    second.matched.to("out")
    first.missing.to("lost")
    graph = flow.graph()
    assert graph.unused_outputs() == (Port("b", "missing"),)
    assert [node.id for node in graph.stateful()] == ["a", "b"]
    assert [node.id for node in graph.outputs()] == ["out", "lost"]


def test_what_a_graph_does_not_have_is_refused_by_name() -> None:
    flow, orders, users = a_flow()
    orders.enrich("with-user", users, on="userId", into="user").matched.to("out")
    graph = flow.graph()
    assert graph.node("with-user").operator == "enrich"
    assert "with-user" in refused("NODE_UNKNOWN", lambda: graph.node("with-usr")).hint
    port = Port("with-user", "matchd")
    assert "with-user.matched" in refused("PORT_UNKNOWN", lambda: graph.schema_of(port)).hint
    assert "user" in graph.schema_of(Port("with-user", "matched")).names


def test_two_operators_with_one_uid_are_refused_with_the_likely_slip() -> None:
    _, orders, users = a_flow()
    first = orders.enrich("with-user", users, on="userId", into="user")
    error = refused(
        "DUPLICATE_UID",
        lambda: first.matched.enrich("with-user", users, on="userId", into="other"),
    )
    assert error.message == (
        "cannot add enrich 'with-user' to flow 'shop': enrich 'with-user' already has that uid"
    )
    assert "copied" in error.hint


def test_a_topic_read_twice_needs_a_uid() -> None:
    flow, _, _ = a_flow()
    error = refused("DUPLICATE_UID", lambda: flow.stream("orders", ORDER))
    assert "uid='orders-2'" in error.hint
    flow.stream("orders", ORDER, uid="orders-2")


def test_an_output_may_share_the_name_of_an_operator() -> None:
    flow, orders, users = a_flow()
    enriched = orders.enrich("out", users, on="userId", into="user")
    enriched.matched.to("out")
    enriched.missing.to("out.output")
    error = refused("DUPLICATE_OUTPUT", lambda: orders.to("out"))
    assert ".to('out-2')" in error.hint
    graph = flow.graph()
    assert graph.node("out").operator == "enrich"
    assert {node.id: node.topic.name for node in graph.outputs()} == {
        "out.output": "out",
        "out.output.output": "out.output",
    }
    assert Flow.from_json(graph.to_json()).graph() == graph


def test_an_operator_gets_its_uid_whatever_was_declared_first() -> None:
    flow, orders, users = a_flow()
    orders.where("price > 1").to("out")
    enriched = orders.enrich("out", users, on="userId", into="user")
    enriched.matched.to("matched")
    refused("DUPLICATE_OUTPUT", lambda: enriched.missing.to("out"))
    graph = flow.graph()
    assert graph.node("out").operator == "enrich"
    assert [node.id for node in graph.outputs()] == ["out.output", "matched"]


def test_a_refused_operator_does_not_rename_an_output() -> None:
    flow, orders, users = a_flow()
    orders.to("out")
    refused("UNKNOWN_COLUMN", lambda: orders.enrich("out", users, on="nobody", into="user"))
    assert [node.id for node in flow._builder.nodes.values()][-1] == "out"


def test_an_output_to_a_topic_that_the_flow_reads_is_refused() -> None:
    _, orders, _ = a_flow()
    refused("DUPLICATE_UID", lambda: orders.to("orders"))


def test_two_outputs_to_one_topic_are_refused() -> None:
    _, orders, _ = a_flow()
    orders.to("out")
    error = refused("DUPLICATE_OUTPUT", lambda: orders.where("price > 1").to("out"))
    assert ".to('out-2')" in error.hint


def test_a_refused_operator_leaves_the_flow_as_it_was() -> None:
    flow, orders, _ = a_flow()
    before = dict(flow._builder.nodes)
    refused("UNKNOWN_COLUMN", lambda: orders.select("prize"))
    assert flow._builder.nodes == before


UNKNOWN: list[tuple[str, Callable[[Shop], object], str]] = [
    ("select", lambda shop: shop.orders.select("prize"), "did you mean 'price'?"),
    ("select", lambda shop: shop.orders.select("ref.usr"), "did you mean 'ref.user'?"),
    ("select", lambda shop: shop.orders.select("PRICE"), "did you mean 'price'?"),
    ("select", lambda shop: shop.orders.select("prize AS p"), "did you mean 'price'?"),
    ("select", lambda shop: shop.orders.select("user"), "did you mean 'userId'?"),
    ("where", lambda shop: shop.orders.where("isPaid"), "known: id, userId"),
    ("with-columns", lambda shop: shop.orders.with_columns(p="prize"), "did you mean 'price'?"),
    (
        "enrich",
        lambda shop: shop.orders.enrich("e", shop.users, on="usrId", into="u"),
        "did you mean 'userId'?",
    ),
]


@pytest.mark.parametrize(("operator", "act", "hint"), UNKNOWN)
def test_an_unknown_column_is_refused_by_operator_with_the_nearest(
    operator: str, act: Callable[[Shop], object], hint: str
) -> None:
    error = refused("UNKNOWN_COLUMN", lambda: act(a_flow()))
    assert error.message.startswith(f"cannot add {operator} '")
    assert hint in error.hint


@pytest.mark.parametrize("word", ["null AS x", "TRUE AS x", "current_timestamp AS x", "'a' AS x"])
def test_a_word_of_sql_is_not_taken_for_a_column(word: str) -> None:
    _, orders, _ = a_flow()
    assert orders.select(word).schema.names == ("x",)


@pytest.mark.parametrize(
    ("text", "name", "expression"),
    [
        ("id", "id", "id"),
        (" ref.tag ", "tag", "ref.tag"),
        ("price AS p", "p", "price"),
        ("cast(price AS int) as whole", "whole", "cast(price AS int)"),
        ("price\n  * 2  AS  `odd name`", "odd name", "price\n  * 2"),
        ("concat(itemId, ' AS b') AS c", "c", "concat(itemId, ' AS b')"),
    ],
)
def test_a_column_is_a_name_a_path_or_a_named_expression(
    text: str, name: str, expression: str
) -> None:
    flow, orders, _ = a_flow()
    node = flow._builder.nodes[orders.select(text).port.node]
    assert isinstance(node, Select)
    assert node.columns == (Column(name, expression),)


REFUSED: list[tuple[str, Callable[[Shop], object]]] = [
    ("COLUMN_UNNAMED", lambda shop: shop.orders.select("price * 2")),
    ("COLUMN_UNNAMED", lambda shop: shop.orders.select("*")),
    ("COLUMN_UNNAMED", lambda shop: shop.orders.select("cast(price AS int)")),
    ("NO_COLUMNS", lambda shop: shop.orders.select()),
    ("NO_COLUMNS", lambda shop: shop.orders.with_columns()),
    ("DUPLICATE_COLUMN", lambda shop: shop.orders.select("price", "userId AS Price")),
    ("BAD_EXPRESSION", lambda shop: shop.orders.where(" ")),
    ("BAD_EXPRESSION", lambda shop: shop.orders.with_columns(x="")),
    ("BAD_EXPRESSION", lambda shop: shop.orders.select(as_any(3))),
    (
        "KEY_MISMATCH",
        lambda shop: shop.orders.enrich("e", shop.users, on=["userId", "id"], into="u"),
    ),
    ("KEY_MISMATCH", lambda shop: shop.orders.enrich("e", shop.users, on=[], into="u")),
    ("KEY_MISMATCH", lambda shop: shop.orders.enrich("e", shop.users, on="itemId", into="u")),
    ("KEY_TYPE", lambda shop: shop.orders.enrich("e", shop.users, on="price", into="u")),
    ("KEY_TYPE", lambda shop: shop.orders.enrich("e", shop.users, on="ref", into="u")),
    (
        "DUPLICATE_COLUMN",
        lambda shop: shop.orders.enrich("e", shop.users, on="userId", into="Price"),
    ),
    ("BAD_NAME", lambda shop: shop.orders.enrich("e", shop.users, on="userId", into="a b")),
    ("BAD_NAME", lambda shop: shop.orders.enrich("with user", shop.users, on="userId", into="u")),
    ("BAD_NAME", lambda shop: shop.orders.enrich("", shop.users, on="userId", into="u")),
    ("TABLE_FOREIGN", lambda shop: shop.orders.enrich("e", a_flow().users, on="userId", into="u")),
    ("TABLE_FOREIGN", lambda shop: shop.orders.enrich("e", as_any("users"), on="userId", into="u")),
    ("BAD_NAME", lambda shop: shop.orders.to("a b")),
    ("BAD_NAME", lambda shop: shop.orders.to("..")),
    ("BAD_NAME", lambda shop: shop.orders.transform("no_colon")),
    ("BAD_NAME", lambda shop: shop.orders.transform(as_any(7))),
    ("KEY_NOT_IN_SCHEMA", lambda shop: shop.flow.table("t", USER, key="uid")),
    ("KEY_NOT_IN_SCHEMA", lambda shop: shop.flow.table("t", USER, key=[])),
    ("DUPLICATE_COLUMN", lambda shop: shop.flow.table("t", USER, key=["id", "id"])),
    ("KEY_TYPE", lambda shop: shop.flow.table("t", USER, key="score")),
    ("UNKNOWN_COLUMN", lambda shop: shop.flow.table("t", USER, key="id", version="sq")),
    ("BAD_VERSION", lambda shop: shop.flow.table("t", USER, key="id", version="name")),
    ("BAD_LOAD", lambda shop: shop.flow.table("t", USER, key="id", load="frist")),
    ("UNKNOWN_COLUMN", lambda shop: shop.flow.stream("s", ORDER, event_time="created")),
    ("BAD_EVENT_TIME", lambda shop: shop.flow.stream("s", ORDER, event_time="price")),
    ("EVENT_TIME_MISSING", lambda shop: shop.flow.stream("s", ORDER, out_of_orderness="5s")),
    (
        "BAD_DURATION",
        lambda shop: shop.flow.stream("s", ORDER, event_time="at", out_of_orderness="5"),
    ),
    (
        "BAD_DURATION",
        lambda shop: shop.flow.stream(
            "s", ORDER, event_time="at", out_of_orderness=timedelta(seconds=-1)
        ),
    ),
    ("BAD_NAME", lambda shop: shop.flow.stream("s", ORDER, uid="a.b")),
    ("TOPIC_WRONG_WAY", lambda shop: shop.flow.stream(Console(), ORDER)),
    ("BAD_NAME", lambda _: Flow("Shop")),
    ("BAD_NAME", lambda _: Flow("-shop")),
    ("BAD_NAME", lambda _: Flow("")),
    ("BAD_NAME", lambda _: Flow("shop\n")),
    ("BAD_NAME", lambda _: Files("a/b", dir="x")),
    ("BAD_NAME", lambda _: Files("a", dir="")),
    ("BAD_ROWS", lambda _: Console(rows=0)),
]


def as_any(value: Any) -> Any:
    return value


@pytest.mark.parametrize(("code", "act"), REFUSED)
def test_a_slip_is_refused_at_once_by_code_with_a_hint(
    code: str, act: Callable[[Shop], object]
) -> None:
    refused(code, lambda: act(a_flow()))


def test_a_key_of_another_integer_type_matches() -> None:
    flow, _, users = a_flow()
    small = flow.stream("small", "userId INT, d DECIMAL(5,1)")
    small.enrich("e", users, on="userId", into="user")


def test_a_key_of_a_type_yet_unknown_is_left_to_the_planner() -> None:
    _, orders, users = a_flow()
    cast = orders.with_columns(key="CAST(itemId AS BIGINT)")
    cast.enrich("e", users, on="key", into="user")


def test_a_mismatched_key_is_answered_with_a_cast_that_works() -> None:
    _, orders, users = a_flow()
    error = refused("KEY_MISMATCH", lambda: orders.enrich("e", users, on="itemId", into="u"))
    assert error.hint == "cast it first: with_columns(id='CAST(itemId AS BIGINT)'), then on='id'"


def test_a_bad_flow_name_is_answered_with_one_that_works() -> None:
    assert refused("BAD_NAME", lambda: Flow("Order Enrichment")).hint == "try 'order-enrichment'"


def test_a_transform_after_state_is_refused_however_far() -> None:
    _, orders, users = a_flow()
    enriched = orders.enrich("with-user", users, on="userId", into="user")
    error = refused(
        "TRANSFORM_AFTER_STATE", lambda: enriched.matched.where("price > 1").transform("m:f")
    )
    assert "enrich 'with-user'" in error.message
    refused("TRANSFORM_AFTER_STATE", lambda: enriched.missing.transform("m:f"))
    orders.transform("m:f").enrich("other", users, on="userId", into="user")


def write_missing_alone(shop: Shop) -> None:
    shop.orders.enrich("e", shop.users, on="userId", into="u").missing.to("m")


def leave_a_side_chain_open(shop: Shop) -> None:
    both = shop.orders.enrich("e", shop.users, on="userId", into="u")
    both.matched.to("m")
    both.missing.where("price > 1")


NOWHERE: list[tuple[str, Callable[[Shop], object]]] = [
    ("output 'out' of stream 'orders'", lambda _: None),
    ("output 'out' of where 'orders.where-1'", lambda shop: shop.orders.where("price > 1")),
    ("output 'matched' of enrich 'e'", write_missing_alone),
    ("output 'out' of where 'e.missing.where-1'", leave_a_side_chain_open),
]


@pytest.mark.parametrize(("told", "act"), NOWHERE)
def test_a_main_output_that_goes_nowhere_is_refused(
    told: str, act: Callable[[Shop], object]
) -> None:
    shop = a_flow()
    act(shop)
    error = refused("OUTPUT_NOWHERE", shop.flow.graph)
    assert f"{told} is not used" in error.message


def test_a_table_nobody_uses_is_refused() -> None:
    flow, orders, _ = a_flow()
    orders.to("out")
    assert "table 'users'" in refused("TABLE_UNUSED", flow.graph).message


def test_a_flow_without_a_stream_is_refused() -> None:
    refused("FLOW_EMPTY", Flow("shop").graph)
    flow = Flow("shop")
    flow.table("users", USER, key="id")
    refused("FLOW_EMPTY", flow.explain)


def test_writing_to_a_topic_that_is_read_is_refused() -> None:
    flow = Flow("shop")
    flow.stream("orders", ORDER, uid="in").to("orders")
    refused("OUTPUT_IS_SOURCE", flow.graph)
    flow = Flow("shop", dead_letters="orders")
    flow.stream("orders", ORDER).to("out")
    refused("OUTPUT_IS_SOURCE", flow.graph)


def test_writing_to_the_dead_letters_is_refused() -> None:
    flow = Flow("shop", dead_letters="rejected")
    flow.stream("orders", ORDER).to("rejected")
    refused("DUPLICATE_OUTPUT", flow.graph)


def test_a_folder_is_kept_as_text_however_it_is_given() -> None:
    assert Files("a", dir=Path("x/y")) == Files("a", dir="x/y")


def test_several_consoles_are_told_apart_by_name() -> None:
    flow = Flow("shop")
    orders = flow.stream("orders", ORDER)
    orders.to(Console())
    refused("DUPLICATE_OUTPUT", lambda: orders.to(Console(rows=5)))
    orders.to(Console(rows=5, name="console-2"))
    assert [node.id for node in flow.graph().outputs()] == ["console", "console-2"]


def test_declaring_a_flow_imports_neither_spark_nor_anything_else_heavy() -> None:
    script = "import sys, headgate; print({'pyspark', 'py4j', 'numpy', 'typer'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_a_stream_may_tell_where_its_records_were() -> None:
    flow = Flow("places")
    rows = flow.stream("in", "id BIGINT NOT NULL", meta="record")
    assert rows.schema.find("record.headers") is not None
    rows.select("id", "record.key", "record.headers['trace'] AS trace").to("out")
    assert Flow.from_json(flow.graph().to_json()).graph() == flow.graph()


def test_the_column_that_tells_the_place_must_be_a_new_one() -> None:
    with pytest.raises(HeadgateError) as caught:
        Flow("places").stream("in", "id BIGINT NOT NULL", meta="ID")
    assert caught.value.code == "DUPLICATE_COLUMN"


def test_a_message_key_is_a_column_of_the_rows_that_can_be_a_key() -> None:
    flow = Flow("keys")
    rows = flow.stream("in", "id BIGINT NOT NULL, price DOUBLE, at STRUCT<x: INT>")
    rows.to("out", key="at.x")
    assert Flow.from_json(flow.graph().to_json()).graph() == flow.graph()
    for column, code in {"no": "UNKNOWN_COLUMN", "at": "KEY_TYPE", "price": "KEY_TYPE"}.items():
        with pytest.raises(HeadgateError) as caught:
            rows.to(f"out-{column}", key=column)
        assert caught.value.code == code
    assert "keyed by at.x" in flow.explain()
