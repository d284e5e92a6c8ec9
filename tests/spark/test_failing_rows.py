"""A row on which the flow fails becomes a dead letter, wherever it fails, and stops nothing."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from bench import bag, refused
from memory_flow import MemoryFlow, as_bytes
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.bridge import kernel
from headgate._kernel.memory_query import MemoryRecord
from headgate.windows import last, tumbling

SCHEMA = "id BIGINT NOT NULL, text STRING, n INT, at BIGINT NOT NULL"
MAX_INT = 2**31 - 1
# The most bytes that a function makes of a smaller argument.
LIMIT = 16 * 1024 * 1024
FAILFAST = "map('mode', 'FAILFAST')"
PLACES = ("source", "enrich", "window")

Row = dict[str, Any]


def texts(*values: str) -> list[Row]:
    return [{"text": each, "n": 7} for each in values]


def numbers(*values: int) -> list[Row]:
    return [{"text": "ab", "n": each} for each in values]


# An expression, rows on which it fails, rows on which it does not, and what Python makes of those.
CASES: dict[str, tuple[str, list[Row], list[Row], Callable[[Row], Any]]] = {
    "format_string": (
        "format_string(text, n)",
        texts("%q", "%😀", "%d %d", "%999999999999d"),
        texts("%d!"),
        lambda r: f"{r['n']}!",
    ),
    "rlike": ("'abc' RLIKE text", texts("[", "*"), texts("b", "x"), lambda r: r["text"] == "b"),
    "split": ("split('a1b', text)", texts("("), texts("1"), lambda _: ["a", "b"]),
    "regexp_replace": (
        "regexp_replace('abc', 'b', text)",
        texts("$7", "\\"),
        texts("-"),
        lambda _: "a-c",
    ),
    "like": ("'abc' LIKE text", texts("abc\\"), texts("a%", "b"), lambda r: r["text"] == "a%"),
    "parse_json": ("to_json(parse_json(text))", texts("{", ""), texts("[1]"), lambda _: "[1]"),
    "from_json": (
        f"from_json(text, 'a INT', {FAILFAST}).a",
        texts('{"a": "x"}', "{"),
        texts('{"a": 1}'),
        lambda _: 1,
    ),
    "from_csv": (f"from_csv(text, 'a INT', {FAILFAST}).a", texts("x"), texts("1"), lambda _: 1),
    "from_xml": (
        f"from_xml(text, 'a INT', {FAILFAST}).a",
        texts("<r><a>x</a></r>", "<r>"),
        texts("<r><a>1</a></r>"),
        lambda _: 1,
    ),
    "xpath": (
        "xpath_string(text, 'a/b')",
        texts("<a>", "<"),
        texts("<a><b>c</b></a>"),
        lambda _: "c",
    ),
    "format_number": (
        "format_number(n, text)",
        texts("0.0.0", "'"),
        texts("0.00"),
        lambda _: "7.00",
    ),
    "format_number_digits": (
        "length(format_number(1.5D, n))",
        numbers(MAX_INT),
        numbers(2),
        lambda _: 4,
    ),
    "cast": ("CAST(text AS INT) + n", texts("x", "2147483647"), texts("1"), lambda _: 8),
    "space": (
        "length(space(n))",
        numbers(MAX_INT, LIMIT + 1),
        numbers(-1, LIMIT),
        lambda r: max(r["n"], 0),
    ),
    "repeat": (
        "length(repeat(text, n))",
        numbers(MAX_INT, LIMIT // 2 + 1),
        numbers(0, LIMIT // 2),
        lambda r: 2 * r["n"],
    ),
    "lpad": (
        "length(lpad(text, n, 'é'))",
        numbers(MAX_INT, LIMIT),
        numbers(1, 9),
        lambda r: r["n"],
    ),
    "rpad": ("length(rpad(text, n, 'xy'))", numbers(MAX_INT), numbers(1, 9), lambda r: r["n"]),
    "pad_bytes": (
        "length(lpad(CAST(text AS BINARY), n, X'00'))",
        numbers(MAX_INT),
        numbers(9),
        lambda r: r["n"],
    ),
    "array_repeat": (
        "size(array_repeat(id, n))",
        numbers(MAX_INT, LIMIT // 8 + 1),
        numbers(0, 9),
        lambda r: r["n"],
    ),
    "array_repeat_of_nulls": (
        "size(array_repeat(CAST(NULL AS STRING), n))",
        numbers(MAX_INT),
        numbers(9),
        lambda r: r["n"],
    ),
    "array_repeat_of_arrays": (
        "size(array_repeat(array(text, space(1000000)), n))",
        numbers(MAX_INT, 17),
        numbers(3),
        lambda r: r["n"],
    ),
    "array_insert": (
        "size(array_insert(array(1), n, 2))",
        numbers(MAX_INT, -MAX_INT),
        numbers(9),
        lambda r: r["n"],
    ),
    "sequence": ("size(sequence(1, n))", numbers(MAX_INT), numbers(9), lambda r: r["n"]),
    "sequence_by_step": (
        "size(sequence(-9000000000000000000, CAST(n AS BIGINT), 4000000000))",
        numbers(MAX_INT),
        [],
        lambda _: None,
    ),
    "sequence_of_dates": (
        "size(sequence(DATE'2000-01-01', date_add(DATE'2000-01-01', n), INTERVAL 1 MONTH))",
        numbers(200_000_000),
        numbers(400),
        lambda _: (date(2001, 2, 4).year - 2000) * 12 + 2,
    ),
    "sequence_of_times": (
        "size(sequence(TIMESTAMP'2000-01-01', TIMESTAMP'2000-01-02',"
        " make_dt_interval(0, 0, 0, n / 1e6)))",
        numbers(1, 0),
        numbers(10**9),
        lambda _: 87,
    ),
    "widths": (
        "length(format_string(concat('%', n, 'd'), 1))",
        numbers(MAX_INT),
        numbers(9),
        lambda r: r["n"],
    ),
}


def flow_of(expression: str) -> Flow:
    """Return a flow that computes an expression behind a source, an enrich and a window."""
    flow = Flow("failing")
    table = flow.table("t", "id BIGINT NOT NULL", key="id")
    stream = flow.stream("in", SCHEMA, event_time="at", out_of_orderness="0s")
    windowed = stream.key_by("id").window("w", tumbling("1s"))
    for place, rows in (
        ("source", stream),
        ("enrich", stream.enrich("e", table, on="id", into="row").matched),
        ("window", windowed.aggregate(text=last("text"), n=last("n")).updates),
    ):
        rows.select("id", f"{expression} AS it").to(place)
    return flow


def run(spark: SparkSession, expression: str, rows: list[Row]) -> dict[str, list[Any]]:
    memory = MemoryFlow(spark, flow_of(expression))
    memory.feed("t", *({"id": number} for number in range(len(rows))))
    made = memory.batch(
        MemoryRecord("in", as_bytes({"id": place, "at": 1000, **row}), sequence=place, offset=place)
        for place, row in enumerate(rows)
    )
    for name, more in memory.batch([], watermark=10_000).items():
        made[name] += more
    # A window whose row failed is closed like any other.
    assert memory.state(1).held == ()
    return made


@pytest.mark.parametrize("name", CASES)
def test_a_row_on_which_an_expression_fails_is_a_dead_letter_and_the_others_go_on(
    spark: SparkSession, name: str
) -> None:
    expression, bad, good, python = CASES[name]
    # Each row that fails stands twice, and between others: it fails each time and leaves nothing.
    rows = [row for each in bad for row in (*good, each, each)] + good
    made = run(spark, expression, rows)
    wanted = [{"id": i, "it": python(row)} for i, row in enumerate(rows) if row in good]
    letters = made["dead-letters"]
    for place in PLACES:
        assert bag(made[place]) == bag(wanted), place
    fails = [i for i, row in enumerate(rows) if row in bad]
    assert len(letters) == len(PLACES) * len(fails)
    for letter in letters:
        assert letter["code"] == "EXPRESSION_FAILED"
        assert letter["expression"] == expression
        assert letter["reason"]
        assert "\n" not in letter["reason"]
        assert json.loads(base64.b64decode(letter["raw"]))["id"] in fails
    # The row of a window is of many records.
    of_records = [each for each in letters if each["record_topic"] == "in"]
    assert sorted(each["offset"] for each in of_records) == sorted(2 * fails)
    assert len({each["source"] for each in letters}) == len(PLACES)


def letters_of(
    spark: SparkSession, build: Callable[[Any], Any], *rows: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the dead letters of rows on their way through what `build` adds."""
    flow = Flow("failing")
    build(flow.stream("in", SCHEMA)).to("out")
    ready = [{"id": place, "at": 0, **row} for place, row in enumerate(rows)]
    made = MemoryFlow(spark, flow).feed("in", *ready)
    return sorted(made["dead-letters"], key=lambda letter: letter["offset"])


def test_a_letter_names_the_one_expression_of_a_step_that_fails(spark: SparkSession) -> None:
    letters = letters_of(
        spark,
        lambda stream: stream.with_columns(
            a="upper(text)",
            # Spark computes what this names twice in a step of its own.
            b="nullif(CAST(text AS INT) + 1, 2)",
            c="split('a', concat('(?<', n, 'x>)'))",
            d="n + 1",
        ),
        {"text": "q", "n": 1},
        {"text": "5", "n": 1},
        {"text": "5", "n": None},
    )
    assert [(letter["offset"], letter["expression"]) for letter in letters] == [
        (0, "nullif(CAST(text AS INT) + 1, 2)"),
        (1, "split('a', concat('(?<', n, 'x>)'))"),
    ]
    letters = letters_of(
        spark,
        lambda stream: stream.where("'x' RLIKE concat('[', text)"),
        {"text": "x]"},
        {"text": "x"},
    )
    assert [(letter["offset"], letter["expression"]) for letter in letters] == [
        (1, "'x' RLIKE concat('[', text)")
    ]
    assert letters[0]["source"].startswith("where ")


def test_letters_of_records_and_of_rows_name_their_job(spark: SparkSession) -> None:
    flow = Flow("failing")
    flow.stream("in", SCHEMA).select("1 / n AS it").to("out")
    made = MemoryFlow(spark, flow).feed("in", b"{", {"id": 1, "at": 0, "n": 0})
    found = [(letter["job"], letter["code"]) for letter in made["dead-letters"]]
    assert found == [("failing", "BAD_JSON"), ("failing", "EXPRESSION_FAILED")]


def test_a_letter_is_the_same_in_every_process(spark: SparkSession) -> None:
    letters = letters_of(
        spark,
        lambda stream: stream.with_columns(it="coalesce(raise_error(concat('no [B@', text)), 1)"),
        {"text": "1a2b3c4d"},
        {"text": "77"},
        {"text": "deadbeef.org"},
    )
    one, two, address = (letter["reason"] for letter in letters)
    assert one == two
    assert "[B@deadbeef.org" in address


def test_a_letter_is_small_however_long_the_value_is_that_its_reason_quotes(
    spark: SparkSession,
) -> None:
    (letter,) = letters_of(
        spark, lambda stream: stream.with_columns(it="CAST(text AS INT)"), {"text": "x" * 100_000}
    )
    assert len(letter["reason"]) <= 1001
    assert "CAST_INVALID_INPUT" in letter["reason"]


@pytest.mark.parametrize(
    "expression", ["space(2147483647)", "1 / 0", "sequence(1, 2000000000)", "format_string('%q')"]
)
def test_an_expression_that_fails_on_every_row_is_refused(
    spark: SparkSession, expression: str
) -> None:
    with refused("BAD_EXPRESSION") as caught:
        letters_of(spark, lambda stream: stream.select(f"{expression} AS it"))
    assert "fails on every row" in caught.value.message


def test_a_constant_that_fails_in_a_branch_fails_the_rows_that_take_it(
    spark: SparkSession,
) -> None:
    letters = letters_of(
        spark,
        lambda stream: stream.select("if(n > 0, space(2147483647), 'x') AS it"),
        {"n": 1},
        {"n": 0},
    )
    assert [letter["offset"] for letter in letters] == [0]


@pytest.mark.parametrize("type_name", ["MAP<INT, INT>", "VARIANT"])
def test_an_output_of_a_type_without_json_is_refused(spark: SparkSession, type_name: str) -> None:
    made = {"MAP<INT, INT>": "map(n, n)", "VARIANT": "parse_json(text)"}[type_name]
    with refused("BAD_OUTPUT") as caught:
        letters_of(spark, lambda stream: stream.select("id", f"{made} AS it"))
    assert type_name in caught.value.message
    # On its way to something else, it may be there.
    build = lambda stream: stream.with_columns(it=made).where("id < 1").select("id")  # noqa: E731
    assert letters_of(spark, build, {"n": 1, "text": "1"}) == []


@pytest.mark.parametrize(
    "name",
    [
        "java.lang.InterruptedException",
        "java.io.InterruptedIOException",
        "java.nio.channels.ClosedByInterruptException",
        "org.apache.spark.TaskKilledException",
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_end_of_a_task_is_not_taken_for_a_failing_row(
    spark: SparkSession, name: str, wrapped: bool
) -> None:
    jvm = spark._jvm
    assert jvm is not None
    made = functools.reduce(getattr, name.split("."), jvm)()
    raised = jvm.java.lang.RuntimeException("wrapped", made) if wrapped else made
    rows = kernel(spark)
    reason = rows.json.BadRecord.Reason.EXPRESSION_FAILED
    with pytest.raises(Py4JJavaError) as caught:
        rows.plan.RowFailure.of(reason, raised)
    assert caught.value.java_exception.getClass() == raised.getClass()
    plain = rows.plan.RowFailure.of(reason, jvm.java.lang.IllegalStateException("no"))
    assert plain.getMessage() == "IllegalStateException: no"
