"""The ends of a query: what sources and the sink are told of each topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate import Flow
from headgate.connectors import Console, Files, Kafka, Pulsar
from headgate.engine.plan.ends import count_tasks, sink_options, source_options
from headgate.engine.plan.flow_plan import FlowPlan, kernel_modules
from headgate.engine.plan.plan import plan_flow
from headgate.engine.settings import (
    AttemptSettings,
    Delivery,
    Fenced,
    OnDataLoss,
    SparkSettings,
)
from headgate.errors import HeadgateError
from headgate.flow.operators.nodes import Source
from headgate.flow.topics import Topic

ROW = "id BIGINT NOT NULL"


def settings(**more: Any) -> AttemptSettings:
    return AttemptSettings(
        job="store",
        lineage="L1",
        checkpoint=Path("checkpoint"),
        spark=SparkSettings(parallelism=3, log_file=Path("spark.log")),
        **more,
    )


def plan(*outputs: Topic, source: str | Topic = "in") -> FlowPlan:
    flow = Flow("store", dead_letters=Files("dead-letters", dir="d/dead"))
    rows = flow.stream(source, ROW)
    for output in outputs:
        rows.to(output)
    return plan_flow(flow.graph(), history={}, max_record=1000)


def source(topic: Topic) -> Source:
    node = plan(Console(), source=topic).graph.nodes[0]
    assert isinstance(node, Source)
    return node


def test_topics_of_one_cluster_share_a_transaction() -> None:
    made = plan(
        Kafka("a", servers="one:9092"),
        Kafka("b", servers="two:9092"),
        Kafka("c", servers="one:9092"),
        Console(),
    )
    told = sink_options(made, settings(delivery=Delivery.AT_LEAST_ONCE))
    outputs = json.loads(told["outputs"])
    assert [each["kind"] for each in outputs] == ["kafka", "kafka", "kafka", "console", "files"]
    assert [each.get("cluster") for each in outputs] == [0, 1, 0, None, None]
    clusters = json.loads(told["clusters"])
    assert [each["client"]["servers"] for each in clusters] == ["one:9092", "two:9092"]
    assert {each["delivery"] for each in clusters} == {"at-least-once"}


def test_clusters_of_both_brokers_stand_in_one_list() -> None:
    made = plan(
        Pulsar("a", service="pulsar://p"),
        Kafka("b", servers="k"),
        Pulsar("c", service="pulsar://p", namespace="shop/eu"),
        Pulsar("d", service="pulsar://p", admin="http://elsewhere:8080"),
    )
    told = sink_options(made, settings(unfinished_since_ms=5))
    outputs = json.loads(told["outputs"])
    assert [each.get("cluster") for each in outputs] == [0, 1, 0, 2, None]
    assert [each["kind"] for each in outputs] == ["pulsar", "kafka", "pulsar", "pulsar", "files"]
    assert outputs[2]["topic"] == "persistent://shop/eu/c"
    clients = [each["client"] for each in json.loads(told["clusters"])]
    assert [each.get("service") for each in clients] == ["pulsar://p:6650", None, "pulsar://p:6650"]
    assert told["unfinished.since"] == "5"
    assert kernel_modules(made.graph) == ("kafka", "pulsar")


def test_a_source_on_pulsar_is_told_its_whole_name_and_where_to_begin() -> None:
    topic = Pulsar("in", service="pulsar://p", start="latest")
    inner, told = source_options(source(topic), settings())
    assert inner.endswith("PulsarSource")
    assert (told["topics"], told["start"]) == ("persistent://public/default/in", "latest")
    _, told = source_options(source(topic), settings(starts={"in": "messages:0=5:1"}))
    assert told["start"] == "messages:0=5:1"


def test_the_sink_is_told_who_writes_and_who_must_not_any_more() -> None:
    told = sink_options(plan(Console()), settings(fenced=(Fenced("L0", 4),)))
    assert (told["job"], told["lineage"], told["sources"]) == ("store", "L1", '["in"]')
    assert json.loads(told["fence"]) == [
        {"lineage": "L0", "tasks": 4, "is_over": False, "last": -1}
    ]


def test_without_an_operator_every_source_has_tasks_of_its_own_that_write() -> None:
    assert count_tasks(plan(Console()), 3) == 3
    flow = Flow("two")
    flow.stream("a", ROW).to("x")
    flow.stream("b", ROW).to("y")
    assert count_tasks(plan_flow(flow.graph(), history={}, max_record=1), 3) == 6
    flow = Flow("joined")
    table = flow.table("t", ROW, key="id")
    flow.stream("a", ROW).enrich("e", table, on="id", into="row").matched.to("x")
    assert count_tasks(plan_flow(flow.graph(), history={}, max_record=1), 3) == 3


def test_a_source_is_told_where_to_begin_and_what_to_do_about_losses() -> None:
    topic = Kafka("in", servers="h:9092", start="latest")
    inner, told = source_options(source(topic), settings(on_data_loss=OnDataLoss.CONTINUE))
    assert inner.endswith("KafkaSource")
    assert (told["topics"], told["start"], told["on.data.loss"]) == ("in", "latest", "continue")
    _, told = source_options(source(topic), settings(starts={"in": "offsets:0=5"}))
    assert told["start"] == "offsets:0=5"


def test_embedded_topics_begin_at_an_end_or_where_they_were() -> None:
    node = source(Files("in", dir="d"))
    for start in ("earliest", "latest", '{"format":1}'):
        assert source_options(node, settings(starts={"in": start}))[1]["start"] == start
    with pytest.raises(HeadgateError) as caught:
        source_options(node, settings(starts={"in": "offsets:0=5"}))
    assert caught.value.code == "BAD_START"


def test_a_topic_that_no_log_was_chosen_for_is_refused() -> None:
    with pytest.raises(HeadgateError) as caught:
        source_options(source(plan(Console(), source="in").graph.streams()[0].topic), settings())
    assert caught.value.code == "TOPIC_UNBOUND"
