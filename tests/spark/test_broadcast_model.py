"""Broadcasts do what their reference does, batch by batch in memory."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest
from bench import bag
from broadcast_flow import BASE, END, HOUR, Model, broadcasts, changes, orders
from broadcast_reference import Rules, labels
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_flow import MemoryFlow, as_bytes
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate import Flow
from headgate._kernel.bridge import kernel
from headgate._kernel.memory_query import MemoryRecord

RULE = "id BIGINT NOT NULL, when STRING NOT NULL, label STRING NOT NULL"
ORDER = "n BIGINT NOT NULL, price DOUBLE NOT NULL, country STRING"
# What a condition means; those that are not here cannot be compiled.
CONDITIONS = {
    "price > 50": lambda event: event["price"] > 50,
    "country = 'PE' AND price <= 80": lambda e: e["country"] == "PE" and e["price"] <= 80,
    "country IS NULL": lambda event: event["country"] is None,
    "n BETWEEN 3 AND 30 OR nullif(country, 'PE') IS NULL": lambda e: (
        3 <= e["n"] <= 30 or e["country"] in (None, "PE")
    ),
    "startswith(lower(country), 'c')": lambda e: (e["country"] or "").lower().startswith("c"),
    "false": lambda _: False,
}
BAD = [
    "amount > 3",
    "price >",
    "price + 1",
    "rand() > 0.5",
    "sum(price) > 1",
    "no_such(price) > 1",
    "reflect('java.lang.System', 'exit', 1) = ''",
    "try_reflect('java.util.UUID', 'randomUUID') = ''",
    "",
    "n IN (SELECT 1)",
    "current_timestamp() > '2020-01-01'",
    "explode(array(1)) > 1",
]
WHEN = st.sampled_from([*CONDITIONS, *BAD])
RULE_CHANGE = st.one_of(
    st.builds(
        lambda key, when, n: {"id": key, "when": when, "label": f"{key}-{n}"},
        st.integers(0, 12),
        WHEN,
        st.integers(0, 99),
    ),
    st.builds(lambda key: {"id": key, "$deleted": True}, st.integers(0, 12)),
)
EVENT = st.builds(
    lambda price, country: {"price": price, "country": country},
    st.sampled_from([10.0, 60.0, 90.0]),
    st.sampled_from(["PE", "CL", None]),
)
BATCHES = st.lists(
    st.tuples(st.lists(RULE_CHANGE, max_size=6), st.lists(EVENT, max_size=6), st.booleans()),
    max_size=6,
)


def labelled(schema: str = ORDER) -> Flow:
    flow = Flow("labelled")
    rules = flow.broadcast("rules", RULE, key="id")
    flow.stream("orders", schema).label("apply", rules).out.to("out")
    return flow


def records(source: str, values: list[Any], first: int) -> list[MemoryRecord]:
    return [
        MemoryRecord(source, as_bytes(value), sequence=first + i, offset=first + i, partition=i % 3)
        for i, value in enumerate(values)
    ]


@settings(max_examples=40, deadline=None)
@given(batches=BATCHES, seed=st.integers(0, 2**31))
def test_rules_label_events_as_the_reference_does(
    spark: SparkSession, batches: list[Any], seed: int
) -> None:
    flow, rules = MemoryFlow(spark, labelled()), Rules()
    place = 0
    for changed, events, is_restarted in batches:
        events = [{"n": place + i, **event} for i, event in enumerate(events)]
        made = flow.batch(
            [*records("orders", events, place), *records("rules", changed, place)], seed=seed
        )
        place += max(len(changed), len(events))
        rules.apply(changed)
        expected = [{**event, "labels": labels(rules, event, CONDITIONS)} for event in events]
        assert sorted(made.get("out", []), key=lambda row: row["n"]) == expected
        bad = [change["when"] for change in changed if change.get("when") in BAD]
        letters = made.get("dead-letters", [])
        assert {letter["code"] for letter in letters} <= {"BAD_RULE"}
        assert Counter(letter["expression"] for letter in letters) == Counter(bad)
        if is_restarted:
            flow.restart()


@pytest.mark.parametrize("number", range(6))
def test_processes_see_the_rules_of_their_batch_as_the_reference_does(
    spark: SparkSession, seed: int, number: int
) -> None:
    draw = random.Random(f"{seed}-{number}")
    flow, model = MemoryFlow(spark, broadcasts()), Model()
    first = watermark = 0
    for _ in range(6):
        rules = changes(draw, draw.randint(0, 5))
        events = orders(draw, first, draw.randint(0, 5))
        # Timers of earlier rounds fire, and none that this round sets.
        watermark = max(watermark, BASE + HOUR + (first - 1 - draw.randint(0, 15)) * 1000)
        records = [
            MemoryRecord(source, as_bytes(value), sequence=first + i, offset=first + i)
            for source, values in (("orders", map(asdict, events)), ("rules", rules))
            for i, value in enumerate(values)
        ]
        first += 10
        before = {output: len(rows) for output, rows in model.out.items()}
        model.round(rules, events)
        model.fire(watermark)
        made = flow.batch(records, seed=draw.randint(0, 99), watermark=watermark)
        for output, rows in model.out.items():
            assert bag(made.get(output, [])) == bag(rows[before[output] :]), output
        if draw.random() < 0.5:
            flow.restart()
    # A batch without records fires the timers that are left.
    model.out["counted"].clear()
    model.fire(END)
    assert bag(flow.batch([], watermark=END).get("counted", [])) == bag(model.out["counted"])


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("amount > 3", "amount"),
        ("price + 1", "not a condition"),
        ("rand() > 0.5", "another result each time"),
        ("reflect('a.b', 'c') = ''", "reflect"),
        ("sum(price) > 1", "each row on its own"),
    ],
)
def test_a_rule_that_cannot_be_compiled_is_a_dead_letter_with_the_reason(
    spark: SparkSession, when: str, reason: str
) -> None:
    flow = MemoryFlow(spark, labelled())
    made = flow.feed("rules", {"id": 1, "when": when, "label": "a"})
    (letter,) = made["dead-letters"]
    assert letter["code"] == "BAD_RULE"
    assert reason in letter["reason"]
    assert (letter["source"], letter["record_topic"]) == ("label 'apply'", "rules")
    assert flow.feed("orders", {"n": 1, "price": 1.0})["out"][0]["labels"] == []


def test_an_event_on_which_a_rule_fails_is_a_dead_letter(spark: SparkSession) -> None:
    flow = MemoryFlow(spark, labelled())
    flow.feed(
        "rules",
        {"id": 1, "when": "price > 1", "label": "a"},
        {"id": 2, "when": "CAST(country AS INT) > 1", "label": "b"},
    )
    made = flow.feed(
        "orders", {"n": 1, "price": 5.0, "country": "PE"}, {"n": 2, "price": 5.0, "country": "7"}
    )
    assert [(row["n"], row["labels"]) for row in made["out"]] == [(2, ["a", "b"])]
    (letter,) = made["dead-letters"]
    assert letter["code"] == "EXPRESSION_FAILED"
    assert letter["expression"] == "CAST(country AS INT) > 1"


@pytest.mark.parametrize("many", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_many_rules_are_in_order_of_their_keys(spark: SparkSession, many: int) -> None:
    flow = MemoryFlow(spark, labelled())
    whens = [f"n = {i % 3} AND price < {i + 1}" for i in range(many)]
    flow.feed("rules", *({"id": i, "when": when, "label": str(i)} for i, when in enumerate(whens)))
    (row,) = flow.feed("orders", {"n": 2, "price": 7.5})["out"]
    assert row["labels"] == [str(i) for i in range(7, many) if i % 3 == 2]


# Some change what Spark makes of the columns beside them, or are ambiguous beside others.
SPOILING = [
    "keep",
    "keep > 3",
    "NOT keep",
    "count(*) > 0",
    "row_number() OVER (ORDER BY n) = 1",
    "price > (SELECT max(price))",
    "inline(array(struct(1, 2)))",
    "1 = 1 AND 'a' > 3",
    "1 / 0 > 1",
]


def test_rules_that_come_together_are_what_each_is_by_itself(
    spark: SparkSession, seed: int
) -> None:
    draw = random.Random(seed)
    good = {f"n > {i}": (lambda event, i=i: event["n"] > i) for i in range(60)} | CONDITIONS
    # Three hundred are more than are analyzed at once.
    whens = [draw.choice([*good] * 6 + BAD + SPOILING) for _ in range(300)]
    rules = [{"id": i, "when": when, "label": str(i)} for i, when in enumerate(whens)]
    flows = [MemoryFlow(spark, labelled(f"{ORDER}, {name} INT")) for name in ("x1", "x2")]
    letters = [flows[0].feed("rules", *rules)["dead-letters"], []]
    for rule in {rule["when"]: rule for rule in rules}.values():
        letters[1] += flows[1].feed("rules", rule).get("dead-letters", [])
    reasons = [
        {each["expression"]: each["reason"].replace("x2", "x1") for each in found}
        for found in letters
    ]
    assert reasons[0] == reasons[1]
    assert {*reasons[0]} == {when for when in whens if when not in good}
    event = {"n": 31, "price": 60.0, "country": "PE"}
    (row,) = flows[0].feed("orders", event)["out"]
    assert row["labels"] == [
        str(i) for i, when in enumerate(whens) if when in good and good[when](event)
    ]


def test_a_text_is_compiled_once_for_all_tasks(spark: SparkSession) -> None:
    flow = labelled("n INT, once INT")
    schema = StructType.fromDDL("n INT, once INT")
    for _ in range(2):
        memory = MemoryFlow(spark, flow)
        memory.feed("rules", *({"id": i, "when": "once > 3", "label": "a"} for i in range(5)))
        assert memory.feed("orders", {"once": 4})["out"][0]["labels"] == ["a"] * 5
    jvm_schema = spark._jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())  # type: ignore[union-attr]
    compiler = kernel(spark).plan.RuleCompiler.of(jvm_schema)
    assert compiler.compiled() == 1
    compiler.compile(["once > 3", "once > 4", "once > 3"])
    assert compiler.compiled() == 2


@pytest.mark.parametrize("tasks", [1, 2, 7, 64, 200])
def test_each_task_has_one_control_bucket_below_all_others(spark: SparkSession, tasks: int) -> None:
    buckets = list(kernel(spark).broadcast.ControlBuckets.of(tasks).all())
    place = kernel(spark).rows.Bucket.partition
    assert [place(bucket, tasks) for bucket in buckets] == list(range(tasks))
    assert max(buckets) == -1


def test_labels_follow_structs_and_other_types(spark: SparkSession) -> None:
    flow = Flow("typed")
    rules = flow.broadcast("rules", "a STRING, b INT, cond STRING, score DOUBLE", key=["b", "a"])
    users = flow.table("users", "id BIGINT, age INT", key="id")
    found = flow.stream("in", "user BIGINT").enrich("e", users, on="user", into="who").matched
    scored = found.label("score", rules, when="cond", label="score", into="scores").out
    scored.where("size(scores) > 0").to("out")
    memory = MemoryFlow(spark, flow)
    memory.feed("users", {"id": 1, "age": 30})
    memory.feed(
        "rules",
        {"a": "x", "b": 10, "cond": "who.age > 20", "score": 0.5},
        {"a": "z", "b": 9, "cond": "who.age = 30", "score": None},
        {"a": "y", "b": 9, "cond": "who.age < 99", "score": 2},
    )
    assert memory.feed("in", {"user": 1})["out"] == [
        {"user": 1, "who": {"id": 1, "age": 30}, "scores": [2.0, None, 0.5]}
    ]
