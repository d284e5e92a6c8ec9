"""A flow's plan: every row has an address to go to, and nothing needs Spark to say so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate import Flow
from headgate.connectors import Kafka
from headgate.engine.plan.flow_plan import FlowPlan, kernel_modules, source_name
from headgate.engine.plan.plan import plan_flow
from headgate.engine.plan.spark_types import to_spark_json
from headgate.flow.schemas.schema import schema_of

ORDER = "id BIGINT NOT NULL, user BIGINT, item BIGINT, at STRUCT<x: INT, y: INT>"


def plan(flow: Flow, **history: Any) -> FlowPlan:
    return plan_flow(flow.graph(), history=history, max_record=1000)


def store() -> Flow:
    flow = Flow("store")
    orders = flow.stream("orders", ORDER, event_time="id", out_of_orderness="5s")
    users = flow.table("users", "id BIGINT NOT NULL", key="id")
    items = flow.table("items", "id BIGINT NOT NULL, v BIGINT", key="id", version="v", uid="goods")
    with_user = orders.enrich("with-user", users, on="user", into="u")
    with_item = with_user.matched.enrich("with-item", items, on="item", into="i")
    with_item.matched.select("id", "at.x", "u.id AS uid").to("enriched")
    with_user.missing.to("missing-users")
    return flow


def test_destinations_are_outputs_then_dead_letters_then_what_nobody_takes() -> None:
    made = plan(store())
    assert [each.id for each in made.destinations] == [
        "enriched",
        "missing-users",
        "dead-letters",
        "with-item.missing",
    ]
    assert made.destinations[3].topic is None
    assert made.spec["deadLetters"] == 2
    assert made.operators == ("with-user", "with-item")


def test_the_spec_is_json_and_holds_what_the_kernel_needs() -> None:
    spec = plan(store()).spec
    assert json.loads(json.dumps(spec)) == spec
    assert spec["maxRecord"] == 1000
    orders, users, items = spec["sources"]
    assert (orders["id"], orders["kind"], orders["eventTime"]) == ("orders", "stream", "id")
    assert (users["kind"], users["key"], users["version"]) == ("table", ["id"], None)
    assert (items["id"], items["topic"], items["version"]) == ("goods", "items", "v")
    assert users["route"] == items["route"] == []


def test_rows_are_sent_from_operator_to_operator_by_address() -> None:
    spec = plan(store()).spec
    (to_user,) = spec["sources"][0]["route"]
    assert to_user == {
        "step": "operator",
        "name": "enrich 'with-user'",
        "address": 1,
        "on": [["user"]],
    }
    with_user, with_item = spec["operators"]
    assert [step["address"] for step in with_user["matched"]] == [2]
    assert with_user["missing"] == [
        {
            "step": "output",
            "id": "missing-users",
            "name": "output 'missing-users'",
            "address": 1,
            "columns": None,
            "key": None,
            "format": {"type": "json"},
            "lines": "none",
            "folder": None,
        }
    ]
    assert with_item["missing"] == [{"step": "count", "address": 3}]
    assert (with_item["table"], with_item["into"]) == ("goods", "i")


def test_a_select_that_only_picks_is_done_by_the_output() -> None:
    flow = Flow("picks")
    flow.stream("in", ORDER).select("at.y", "id", "at").to("out")
    (step,) = plan(flow).spec["sources"][0]["route"]
    assert step["step"] == "output"
    assert step["columns"] == [
        {"name": "y", "path": ["at", "y"]},
        {"name": "id", "path": ["id"]},
        {"name": "at", "path": ["at"]},
    ]


@pytest.mark.parametrize("column", ["id + 1 AS id", "tags.k", "lists.z"])
def test_a_select_that_computes_is_a_step_of_its_own(column: str) -> None:
    flow = Flow("computes")
    schema = "id BIGINT, tags MAP<STRING, INT>, lists ARRAY<STRUCT<z: INT>>"
    flow.stream("in", schema).select(column).to("out")
    (step,) = plan(flow).spec["sources"][0]["route"]
    assert (step["step"], step["keep"]) == ("compute", False)
    assert [then["step"] for then in step["then"]] == ["output"]


def test_a_select_that_more_than_outputs_take_is_computed_once() -> None:
    flow = Flow("shared")
    picked = flow.stream("in", ORDER).select("id")
    picked.to("all")
    picked.where("id > 1").to("some")
    (step,) = plan(flow).spec["sources"][0]["route"]
    assert step["step"] == "compute"
    assert [then["step"] for then in step["then"]] == ["output", "where"]


def test_every_taker_of_a_stream_is_in_its_route() -> None:
    flow = Flow("fan")
    stream = flow.stream("in", ORDER)
    stream.where("id > 1").with_columns(b="id").to("a")
    stream.to("b")
    where, output = plan(flow).spec["sources"][0]["route"]
    assert where["condition"] == "id > 1"
    assert where["then"][0]["keep"] is True
    assert output["step"] == "output"


def test_old_schemas_of_a_table_go_along_with_the_present_one() -> None:
    before, now = schema_of("id BIGINT NOT NULL"), schema_of("id BIGINT NOT NULL, name STRING")
    flow = Flow("grown")
    table = flow.table("users", now, key="id")
    flow.stream("in", "u BIGINT").enrich("e", table, on="u", into="x").matched.to("out")
    assert plan(flow).spec["operators"][0]["history"] == [to_spark_json(now)]
    grown = plan(flow, users=(before, now)).spec["operators"][0]["history"]
    assert grown == [to_spark_json(before), to_spark_json(now)]


def functions() -> Flow:
    flow = Flow("functions")
    stream = flow.stream("in", ORDER)
    one = stream.where("id > 1").transform("m:one")
    one.transform("m:two", schema="z INT").to("a")
    one.to("b")
    stream.transform("m:three").to("c")
    flow.stream("other", ORDER).to("d")
    return flow


def test_functions_take_rows_from_a_source_or_from_one_another() -> None:
    made = plan(functions())
    one = made.functions[0]
    assert [each.node.function for each in made.functions] == ["m:one", "m:two", "m:three"]
    assert [each.address for each in made.functions] == [1000, 1001, 1002]
    assert [each.upstream for each in made.functions] == [("in",), (one.node.id,), ("in",)]
    specs = made.spec["functions"]
    assert [each["schema"] is None for each in specs] == [False, False, False]
    assert [step["step"] for step in specs[0]["route"]] == ["function", "output"]


def test_a_function_behind_sql_learns_its_columns_from_spark() -> None:
    flow = Flow("late")
    flow.stream("in", ORDER).with_columns(b="id + 1").transform("m:one").to("out")
    assert plan(flow).spec["functions"][0]["schema"] is None


def test_a_source_is_scanned_once_and_once_more_for_each_function_behind_it() -> None:
    assert plan(functions()).scans() == {"in": 4, "other": 1}
    assert plan(store()).scans() == {"orders": 1, "users": 1, "goods": 1}


def test_rows_are_made_again_for_each_function_behind_the_node_they_leave() -> None:
    made = plan(functions())
    one = made.functions[0].node
    # The filter runs where its source is read, whichever of them is asked for.
    assert made.repeats() == {"in": 4, one.input.node: 4, one.id: 2}
    assert plan(store()).repeats() == {}


def test_names_of_sources_never_meet_in_spark() -> None:
    names = ["a-b", "a_b", "a.b", "ab", "a_2d_b", "a__b", "A-b", "1-a", "_", "-"]
    made = [source_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(name.replace("_", "").isalnum() or set(name) == {"_"} for name in made)
    assert all(char.isascii() for name in made for char in name)


def test_a_message_key_is_found_in_the_rows_that_columns_are_picked_from() -> None:
    flow = Flow("keys")
    rows = flow.stream("in", ORDER)
    rows.select("at.x AS left", "at AS place", "id").to("picked", key="place.y")
    rows.select("id + 1 AS next").to("computed", key="next")
    rows.to("whole", key="at.x")
    picked, computed, whole = plan(flow).spec["sources"][0]["route"]
    assert picked["key"] == ["at", "y"]
    assert computed["then"][0]["key"] == ["next"]
    assert whole["key"] == ["at", "x"]


def test_a_source_tells_its_place_only_where_it_was_asked_for() -> None:
    flow = Flow("places")
    flow.stream("in", ORDER, meta="record").select("id", "record.offset").to("out")
    flow.stream("other", ORDER).to("rest")
    asked, other = plan(flow).spec["sources"]
    assert (asked["meta"], other["meta"]) == ("record", None)
    assert [each["name"] for each in asked["schema"]["fields"]] == ["id", "user", "item", "at"]
    assert asked["route"][0]["columns"][1]["path"] == ["record", "offset"]


def test_the_parts_of_the_kernel_follow_from_the_topics() -> None:
    flow = Flow("mixed")
    flow.stream("in", ORDER).to(Kafka("out", servers="h:9092"))
    assert kernel_modules(flow.graph()) == ("kafka",)
    assert kernel_modules(store().graph()) == ()
