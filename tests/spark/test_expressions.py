"""SQL in a flow gives what the same work in Python gives, and what cannot be SQL is refused."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from bench import bag, refused
from memory_flow import MemoryFlow
from pyspark.sql import SparkSession

from headgate import Flow, Stream

SCHEMA = (
    "id BIGINT NOT NULL, price DOUBLE, name STRING, tags ARRAY<STRING>,"
    " at STRUCT<x: INT, deep: STRUCT<y: STRING>>, counts MAP<STRING, INT>"
)
SEED = 20261115


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Return rows with nulls at every depth; the same for the same seed."""
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    return [
        {
            "id": number,
            "price": draw.choice([None, 0.5, 2.0, 10.0, -1.25]),
            "name": draw.choice([None, "", "Zürich", "a b", "A"]),
            "tags": draw.choice([None, [], ["x"], ["x", None, "y"]]),
            "at": draw.choice(
                [None, {"x": None, "deep": None}, {"x": 3, "deep": {"y": draw.choice("pq")}}]
            ),
            "counts": draw.choice([None, {}, {"a": 1}, {"a": None, "b": 2}]),
        }
        for number in range(count)
    ]


def run(spark: SparkSession, build: Callable[[Stream], Stream]) -> list[dict[str, Any]]:
    """Run the rows through what `build` adds, on their way to one output."""
    flow = Flow("sql")
    build(flow.stream("in", SCHEMA)).to("out")
    return MemoryFlow(spark, flow).feed("in", *rows())["out"]


def test_where_keeps_the_rows_for_which_the_condition_is_true(spark: SparkSession) -> None:
    made = run(spark, lambda stream: stream.where("price > 1 AND id % 2 = 0"))
    wanted = [row for row in rows() if (row["price"] or 0) > 1 and row["id"] % 2 == 0]
    assert made == wanted


def test_where_drops_the_rows_for_which_the_condition_is_null(spark: SparkSession) -> None:
    kept = run(spark, lambda stream: stream.where("price > 1"))
    left = run(spark, lambda stream: stream.where("NOT (price > 1)"))
    unknown = [row for row in rows() if row["price"] is None]
    assert unknown
    assert bag(kept + left + unknown) == bag(rows())


def test_with_columns_adds_at_the_end_and_replaces_in_place(spark: SparkSession) -> None:
    made = run(
        spark, lambda stream: stream.with_columns(price="price * 2", twice="price * 4", id="id + 1")
    )
    assert [list(row) for row in made] == [[*rows()[0], "twice"]] * len(rows())
    for before, after in zip(rows(), made, strict=True):
        price = before["price"]
        wanted = {
            "id": before["id"] + 1,
            "price": None if price is None else price * 2,
            "twice": None if price is None else price * 4,
        }
        assert after == before | wanted


def test_with_columns_replaces_a_column_whatever_the_case_of_its_name(
    spark: SparkSession,
) -> None:
    made = run(spark, lambda stream: stream.with_columns(PRICE="1").with_columns(b="price + 1"))
    assert list(made[0]) == ["id", "PRICE", "name", "tags", "at", "counts", "b"]
    assert {(row["PRICE"], row["b"]) for row in made} == {(1, 2)}


def test_columns_added_together_do_not_see_each_other(spark: SparkSession) -> None:
    made = run(spark, lambda s: s.with_columns(id="id * 10", copy="id").select("id", "copy"))
    assert made == [{"id": row["id"] * 10, "copy": row["id"]} for row in rows()]


def test_select_picks_nested_fields_null_where_the_way_is_null(spark: SparkSession) -> None:
    made = run(spark, lambda stream: stream.select("at.deep.y", "at.x", "id", "at.deep"))

    def inside(value: Any, name: str) -> Any:
        return None if value is None else value[name]

    assert made == [
        {
            "y": inside(inside(row["at"], "deep"), "y"),
            "x": inside(row["at"], "x"),
            "id": row["id"],
            "deep": inside(row["at"], "deep"),
        }
        for row in rows()
    ]


def test_select_computes_and_names(spark: SparkSession) -> None:
    made = run(
        spark,
        lambda stream: stream.select(
            "id",
            "upper(name) AS loud",
            "size(tags) AS n",
            "counts['a'] AS a",
            "transform(tags, t -> concat(t, '!')) AS cried",
            "coalesce(at.x, -1) AS `odd name`",
            "named_struct('k', id, 'l', array(price)) AS packed",
        ),
    )

    def of(row: dict[str, Any]) -> dict[str, Any]:
        tags, at = row["tags"], row["at"]
        return {
            "id": row["id"],
            "loud": None if row["name"] is None else row["name"].upper(),
            "n": None if tags is None else len(tags),
            "a": (row["counts"] or {}).get("a"),
            "cried": None if tags is None else [t and f"{t}!" for t in tags],
            "odd name": -1 if at is None or at["x"] is None else at["x"],
            "packed": {"k": row["id"], "l": [row["price"]]},
        }

    assert made == [of(row) for row in rows()]


@pytest.mark.parametrize(
    ("expression", "python"),
    [
        # Spark computes what these name twice in a step of its own, before the rest.
        ("nullif(length(concat(name, name)), 2)", lambda r: _nullif(r["name"])),
        (
            "length(concat(name, cast(id AS STRING))) BETWEEN 2 AND 3",
            lambda r: None if r["name"] is None else 2 <= len(r["name"] + str(r["id"])) <= 3,
        ),
        (
            "CASE length(concat(name, 'x')) WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END",
            lambda r: {0: "one", 1: "two"}.get(-1 if r["name"] is None else len(r["name"]), "many"),
        ),
        ("coalesce(try_cast(name AS INT), id)", lambda r: r["id"]),
        ("1", lambda _: 1),
        ("CAST(NULL AS STRING)", lambda _: None),
        ("true", lambda _: True),
        ("id", lambda r: r["id"]),
    ],
)
def test_an_expression_gives_what_python_gives(
    spark: SparkSession, expression: str, python: Callable[[dict[str, Any]], Any]
) -> None:
    made = run(spark, lambda stream: stream.select("id", f"{expression} AS it"))
    assert made == [{"id": row["id"], "it": python(row)} for row in rows()]
    kept = run(spark, lambda stream: stream.where(f"({expression}) IS NOT NULL"))
    assert kept == [row for row in rows() if python(row) is not None]


def _nullif(name: str | None) -> int | None:
    return None if name is None or len(name) == 1 else 2 * len(name)


def test_every_consumer_of_a_stream_gets_every_row(spark: SparkSession) -> None:
    flow = Flow("fan")
    stream = flow.stream("in", SCHEMA)
    cheap = stream.where("price < 5")
    cheap.to("cheap")
    cheap.select("id").to("cheap-ids")
    stream.where("price < 5").with_columns(flag="true").to("flagged")
    stream.to("all")
    made = MemoryFlow(spark, flow).feed("in", *rows())
    wanted = [row for row in rows() if row["price"] is not None and row["price"] < 5]
    assert made["all"] == rows()
    assert made["cheap"] == wanted
    assert made["cheap-ids"] == [{"id": row["id"]} for row in wanted]
    assert made["flagged"] == [row | {"flag": True} for row in wanted]


def test_sql_sees_the_row_that_was_attached(spark: SparkSession) -> None:
    flow = Flow("attached")
    table = flow.table("t", "id BIGINT NOT NULL, o STRUCT<z: INT>, w BIGINT NOT NULL", key="id")
    found = flow.stream("in", "k BIGINT, v BIGINT").enrich("e", table, on="k", into="row")
    found.matched.where("row.w > v").with_columns(sum="row.w + v + row.o.z").select(
        "sum", "row.o.z", "row"
    ).to("out")
    memory = MemoryFlow(spark, flow)
    memory.feed("t", {"id": 1, "o": {"z": 5}, "w": 10}, {"id": 2, "o": None, "w": 10})
    made = memory.feed("in", {"k": 1, "v": 1}, {"k": 2, "v": 2}, {"k": 1, "v": 11})
    assert bag(made["out"]) == bag(
        [
            {"sum": 16, "z": 5, "row": {"id": 1, "o": {"z": 5}, "w": 10}},
            {"sum": None, "z": None, "row": {"id": 2, "o": None, "w": 10}},
        ]
    )


def test_rows_that_nobody_takes_are_counted(spark: SparkSession) -> None:
    flow = Flow("unused")
    table = flow.table("t", "id BIGINT NOT NULL", key="id")
    flow.stream("in", "k BIGINT").enrich("e", table, on="k", into="row").matched.to("out")
    assert MemoryFlow(spark, flow).feed("in", {"k": 1}, {"k": None}) == {"e.missing": [None] * 2}


def _plan(spark: SparkSession, build: Callable[[Stream], Stream]) -> None:
    flow = Flow("refused")
    build(flow.stream("in", SCHEMA)).to("out")
    MemoryFlow(spark, flow)


@pytest.mark.parametrize(
    "expression",
    [
        "nowhere + 1",
        "at.nowhere + 1",
        "length(",
        "id id id",
        "no_such_function(id)",
        "rand()",
        "id + rand()",
        "uuid()",
        "current_timestamp()",
        "unix_timestamp()",
        "date_format(now(), 'yyyy')",
        "current_date",
        "TIMESTAMP 'now'",
        "id > 0 AND timestamp_ntz /* of the plan */ ' Today UTC'",
        "CAST('tomorrow' AS DATE)",
        "year(nvl(NULL, 'yesterday'))",
        "to_timestamp('now')",
        "sum(id)",
        "count(*)",
        "row_number() OVER (ORDER BY id)",
        "sum(id) OVER ()",
        "explode(tags)",
        "(SELECT 1)",
        "id IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "monotonically_increasing_id()",
        "id -- a comment",
    ],
)
def test_an_expression_that_is_no_work_on_one_row_is_refused_by_name(
    spark: SparkSession, expression: str
) -> None:
    with refused("BAD_EXPRESSION") as caught:
        _plan(spark, lambda stream: stream.select(f"{expression} AS it"))
    assert "cannot plan select 'in" in caught.value.message
    with refused("BAD_EXPRESSION") as caught:
        _plan(spark, lambda stream: stream.where(f"({expression}) IS NULL"))
    assert "cannot plan where 'in" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("condition", ["id + 1", "upper(name)", "NULL", "1"])
def test_a_condition_must_be_true_or_false(spark: SparkSession, condition: str) -> None:
    with refused("BAD_EXPRESSION") as caught:
        _plan(spark, lambda stream: stream.where(condition))
    assert "not a condition" in caught.value.message


@pytest.mark.parametrize("expression", ["NULL", "assert_true(id > 0)", "raise_error('no')"])
def test_a_column_without_a_type_is_refused_with_a_way_to_give_it_one(
    spark: SparkSession, expression: str
) -> None:
    for build in (
        lambda stream: stream.select("id", f"{expression} AS it"),
        lambda stream: stream.with_columns(it=expression).select("id"),
    ):
        with refused("BAD_EXPRESSION") as caught:
            _plan(spark, build)
        assert caught.value.message.startswith("cannot plan ")
        assert "column 'it' is VOID" in caught.value.message
        assert f"CAST({expression} AS STRING) AS `it`" in caught.value.hint


@pytest.mark.parametrize("expression", ["CAST(assert_true(id >= 0) AS STRING)", "nullif(1, 1)"])
def test_a_typed_column_that_is_always_null_is_planned(
    spark: SparkSession, expression: str
) -> None:
    made = run(spark, lambda stream: stream.select(f"{expression} AS `it`"))
    assert made == [{"it": None}] * len(rows())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("format_string('%d', name)", "'name' is STRING, which does not fit the format '%d'"),
        ("printf('%s %f', name, id)", "'id' is BIGINT, which does not fit the format '%s %f'"),
        ("upper(format_string('%d', price))", "'price' is DOUBLE"),
        ("format_string('%.2f', CAST(price AS DECIMAL(9, 2)))", "is DECIMAL(9,2)"),
        ("format_string('%s %s', name)", "Format specifier '%s'"),
        ("format_string('%q', name)", "'q'"),
    ],
)
def test_a_format_that_does_not_fit_its_arguments_is_refused(
    spark: SparkSession, call: str, told: str
) -> None:
    for build, operator in (
        (lambda stream: stream.with_columns(it=call), "with-columns"),
        (lambda stream: stream.where(f"length({call}) > 1"), "where"),
    ):
        with refused("BAD_EXPRESSION") as caught:
            _plan(spark, build)
        assert f"cannot plan {operator} 'in." in caught.value.message
        assert told in caught.value.message
        assert "format" in caught.value.hint


@pytest.mark.parametrize(
    ("call", "python"),
    [
        ("format_string('%05d|%s|%x', id, name, id)", lambda r: f"{r['id']:05}|{_text(r)}|"),
        ("format_string('%2$s %1$d %%', id, name)", lambda r: f"{_text(r)} {r['id']} %"),
        ("format_string('%.2f', CAST(id AS DOUBLE))", lambda r: f"{r['id']:.2f}"),
        ("format_string('%d', NULL)", lambda _: "null"),
        ("format_string('%s', tags)", lambda _: ""),
        ("format_string(concat('%', 's'), name)", lambda r: _text(r)),
    ],
)
def test_a_format_that_fits_its_arguments_is_planned(
    spark: SparkSession, call: str, python: Callable[[dict[str, Any]], str]
) -> None:
    made = run(spark, lambda stream: stream.select(f"{call} AS it"))
    assert len(made) == len(rows())
    for row, result in zip(rows(), made, strict=True):
        assert result["it"].startswith(python(row))


def _text(row: dict[str, Any]) -> str:
    return "null" if row["name"] is None else row["name"]


def test_a_key_made_by_sql_must_have_the_tables_type(spark: SparkSession) -> None:
    def plan(expression: str) -> MemoryFlow:
        flow = Flow("keys")
        table = flow.table("t", "id BIGINT NOT NULL", key="id")
        keyed = flow.stream("in", SCHEMA).with_columns(k=expression)
        keyed.enrich("e", table, on="k", into="row").matched.to("out")
        return MemoryFlow(spark, flow)

    with refused("KEY_MISMATCH") as caught:
        plan("CAST(id AS STRING)")
    assert "enrich 'e'" in caught.value.message
    assert "'k' is STRING" in caught.value.message
    memory = plan("CAST(id AS INT) + 1")
    memory.feed("t", {"id": 2})
    assert len(memory.feed("in", {"id": 1})["out"]) == 1


def test_a_row_for_which_sql_fails_is_a_dead_letter_and_the_others_go_on(
    spark: SparkSession,
) -> None:
    flow = Flow("failing")
    stream = flow.stream("in", "text STRING NOT NULL, by INT NOT NULL")
    numbers = stream.with_columns(number="CAST(text AS INT)")
    numbers.where("number / by > 1").select("number").to("out")
    made = MemoryFlow(spark, flow).feed(
        "in", {"text": "12", "by": 2}, {"text": "ten", "by": 1}, {"text": "9", "by": 0}
    )
    assert made["out"] == [{"number": 12}]
    letters = sorted(made["dead-letters"], key=lambda each: each["offset"])
    assert [(each["offset"], each["code"]) for each in letters] == [
        (1, "EXPRESSION_FAILED"),
        (2, "EXPRESSION_FAILED"),
    ]
    assert "with-columns" in letters[0]["source"]
    assert "CAST_INVALID_INPUT" in letters[0]["reason"]
    assert "DIVIDE_BY_ZERO" in letters[1]["reason"]
    row = json.loads(base64.b64decode(letters[1]["raw"]))
    assert row == {"text": "9", "by": 0, "number": 9}


def test_a_word_for_a_time_is_text_where_nothing_makes_a_time_of_it(spark: SparkSession) -> None:
    made = run(spark, lambda stream: stream.select("'now' AS text", "DATE '2026-01-02' AS day"))
    assert made == [{"text": "now", "day": "2026-01-02"}] * len(rows())
