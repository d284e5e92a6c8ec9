"""Functions on DataFrames: a user's own stateless work, with every row exactly once behind it."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused

from headgate import Flow
from headgate.errors import Domain

_numbers = itertools.count()

FUNCTIONS = """
from pyspark.sql import functions as F

def double(df):
    return df.withColumn("n", F.col("n") * 2).filter("n >= 4")

def shout(df):
    return df.withColumn("name", F.upper("name"))

def widen(df):
    return df.withColumn("half", F.col("n") / 2).drop("name")

def twice(df):
    return df.withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2))))

def hide(df):
    return df.withColumn("name", F.when(F.col("n") > 1, F.col("name")))

def lose(df):
    return df.select("n", "name")

def retype(df):
    return df.withColumn("n", F.col("n").cast("string"))

def nothing(df):
    df.count

def foreign(df):
    return df.sparkSession.range(3)

def stumble(df):
    return df.withColumn("n", F.nothing_of_this_name("n"))

def pandas_plus(df):
    return df.withColumn("n", F.pandas_udf(lambda numbers: numbers + 1, "bigint")("n"))

def missing(df):
    import a_package_that_is_not_installed
"""
# Functions that Spark's Python workers import by the name of their module.
WORKED = """
import {rules}
from pyspark.sql import functions as F

@F.udf("bigint")
def halved(n):
    return {rules}.halve(n)

def halve(df):
    return df.withColumn("n", halved("n"))
"""
RULES = """
def halve(n):
    if n == 7:
        raise ValueError("7 is odd")
    return n // 2
"""
SCHEMA = "n BIGINT NOT NULL, name STRING NOT NULL"
ROWS: list[dict[str, Any]] = [{"n": n, "name": f"name {n}"} for n in range(6)]


@pytest.fixture
def module(bench: Bench) -> str:
    """Give a module of functions beside the flow, under a name that no other test has."""
    name = f"user_functions_{next(_numbers)}"
    (bench.root / f"{name}.py").write_text(FUNCTIONS)
    bench.put("in", ROWS)
    return name


def test_a_function_changes_and_drops_rows_before_an_enrichment(bench: Bench, module: str) -> None:
    flow = Flow("before")
    table = flow.table("t", "id BIGINT NOT NULL", key="id")
    doubled = flow.stream("in", SCHEMA).transform(f"{module}:double")
    enriched = doubled.enrich("e", table, on="n", into="row")
    enriched.matched.select("n", "name").to("out")
    enriched.missing.select("n").to("missing")
    bench.put("in", ["no record"])
    bench.put("t", [{"id": 4}, {"id": 8}])
    done = bench.run(flow)
    assert bench.bag("out") == bag([{"n": 4, "name": "name 2"}, {"n": 8, "name": "name 4"}])
    assert bench.bag("missing") == bag([{"n": 6}, {"n": 10}])
    assert len(bench.read("dead-letters")) == 1
    assert done.totals.inputs == {"in": 7, "t": 2}


FACTOR = 3


def times(rows: Any) -> Any:
    """Triple a column, by SQL and by a function of Spark's workers."""
    from pyspark.sql import functions as F  # noqa: N812

    doubled = F.udf(lambda n: n * (FACTOR - 1), "bigint")
    return rows.withColumn("n", F.col("n") + doubled("n"))


def test_a_function_is_passed_and_stored_with_the_flow(bench: Bench, module: str) -> None:
    flow = Flow("passed")
    limit = 3
    big = (
        flow.stream("in", SCHEMA)
        .transform(times)
        .transform(lambda rows: rows.filter(f"n > {limit}"))
    )
    big.select("n").to("out")
    # The file has the functions; this module is not imported from it.
    bench.run(bench.flow_file(flow))
    assert bench.bag("out") == bag([{"n": 6}, {"n": 9}, {"n": 12}, {"n": 15}])


def test_a_function_sees_where_a_record_was_and_may_hand_it_on(bench: Bench, module: str) -> None:
    flow = Flow("placed")
    doubled = flow.stream("in", SCHEMA, meta="of").transform(f"{module}:double")
    doubled.where("of.topic = 'in'").select("n", "of.key AS key", "of.headers AS headers").to("out")
    bench.run(flow)
    made: list[object] = [{"n": n, "key": None, "headers": {}} for n in (4, 6, 8, 10)]
    assert bench.bag("out") == bag(made)


def test_functions_in_a_row_and_beside_each_other_see_every_row_once(
    bench: Bench, module: str
) -> None:
    flow = Flow("branches")
    stream = flow.stream("in", SCHEMA)
    stream.to("plain")
    doubled = stream.transform(f"{module}:double")
    doubled.to("doubled")
    doubled.transform(f"{module}:shout").to("doubled-and-loud")
    stream.where("n < 2").transform(f"{module}:shout").to("loud")
    stream.transform(f"{module}:widen", schema="n BIGINT, half DOUBLE").to("wide")
    stream.transform(f"{module}:twice", schema="n BIGINT, copy INT").to("copies")
    done = bench.run(flow)
    twofold = [{"n": 2 * row["n"], "name": row["name"]} for row in ROWS if row["n"] >= 2]
    assert bench.bag("plain") == bag(ROWS)
    assert bench.bag("doubled") == bag(twofold)
    assert bench.bag("doubled-and-loud") == bag(
        [row | {"name": row["name"].upper()} for row in twofold]
    )
    assert bench.bag("loud") == bag([{"n": n, "name": f"NAME {n}"} for n in range(2)])
    assert bench.bag("wide") == bag([{"n": n, "half": n / 2} for n in range(6)])
    assert bench.bag("copies") == bag([{"n": n, "copy": c} for n in range(6) for c in (1, 2)])
    assert done.totals.inputs == {"in": 6}


def test_a_job_with_functions_goes_on_where_it_was(bench: Bench, module: str) -> None:
    flow = Flow("resumed")
    stream = flow.stream("in", SCHEMA)
    stream.to("plain")
    stream.transform(f"{module}:shout").to("loud")
    bench.run(flow)
    more = [{"n": 7, "name": "late"}]
    bench.put("in", more)
    done = bench.run(flow)
    assert done.totals.inputs == {"in": 1}
    assert bench.bag("plain") == bag(ROWS + more)
    assert bench.bag("loud") == bag(
        [row | {"name": str(row["name"]).upper()} for row in ROWS + more]
    )


def test_sql_behind_a_function_sees_the_nulls_it_made(bench: Bench, module: str) -> None:
    flow = Flow("nulls")
    hidden = flow.stream("in", SCHEMA).transform(f"{module}:hide")
    hidden.where("name IS NULL").to("none")
    hidden.select("n", "coalesce(name, '-') AS name").to("some")
    bench.run(flow)
    assert bench.bag("none") == bag([{"n": n, "name": None} for n in (0, 1)])
    assert bench.bag("some") == bag(
        [{"n": n, "name": "-" if n < 2 else f"name {n}"} for n in range(6)]
    )


def test_workers_import_what_is_beside_the_flow_and_report_the_line_that_fails(
    bench: Bench, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = f"{module}_rules"
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    # Of two modules with one name, the one beside the flow is used.
    (elsewhere / f"{rules}.py").write_text("def halve(n):\n    return -1\n")
    monkeypatch.chdir(elsewhere)
    (bench.root / f"{rules}.py").write_text(RULES)
    (bench.root / f"{module}_worked.py").write_text(WORKED.format(rules=rules))
    flow = Flow("worked")
    flow.stream("in", SCHEMA).transform(f"{module}_worked:halve").to("out")
    bench.run(flow)
    assert bench.bag("out") == bag([row | {"n": row["n"] // 2} for row in ROWS])

    bench.put("in", [{"n": 7, "name": "odd"}])
    with refused("FUNCTION_FAILED") as caught:
        bench.run(flow)
    place = f"{bench.root / rules}.py, line 4"
    assert f"ValueError: 7 is odd ({place}, in halve: raise" in caught.value.message
    assert caught.value.hint == f"fix {place}"
    assert (caught.value.domain, caught.value.retryable) == (Domain.USER, True)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("stumble", "FUNCTION_FAILED"),
        ("pandas_plus", "PACKAGE_MISSING"),
        ("missing", "PACKAGE_MISSING"),
        ("lose", "TRANSFORM_LOST_ORIGIN"),
        ("retype", "TRANSFORM_SCHEMA"),
        ("widen", "TRANSFORM_SCHEMA"),
        ("nothing", "TRANSFORM_BAD_RESULT"),
        ("foreign", "TRANSFORM_BAD_RESULT"),
        ("not_there", "FUNCTION_NOT_FOUND"),
    ],
)
def test_a_function_that_breaks_its_promise_is_refused_before_the_start(
    bench: Bench, module: str, function: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    flow = Flow("refused")
    flow.stream("in", SCHEMA).transform(f"{module}:{function}").to("out")
    with refused(code) as caught:
        bench.run(flow)
    if code == "TRANSFORM_SCHEMA":
        assert f".transform('{module}:{function}'" in caught.value.hint
    if code in ("FUNCTION_FAILED", "PACKAGE_MISSING"):
        assert f"({bench.root / module}.py, line " in caught.value.message
        assert (caught.value.domain, caught.value.retryable) == (Domain.USER, False)
    if function == "pandas_plus":
        assert caught.value.hint.startswith("pip install 'pandas>=")
    assert not (bench.topics / "out").exists()


def test_a_module_that_is_not_there_is_named(bench: Bench) -> None:
    flow = Flow("refused")
    flow.stream("in", SCHEMA).transform("no_such_module:run").to("out")
    with refused("FUNCTION_NOT_FOUND") as caught:
        bench.run(flow)
    assert "no_such_module:run" in caught.value.message


def test_a_job_runs_after_one_that_was_refused(bench: Bench, module: str) -> None:
    broken = Flow("refused")
    broken.stream("in", SCHEMA).transform(f"{module}:lose").to("out")
    with refused("TRANSFORM_LOST_ORIGIN"):
        bench.run(broken, parallelism=1)
    flow = Flow("next")
    flow.stream("in", SCHEMA).to("out")
    bench.run(flow, parallelism=3)
    assert bench.bag("out") == bag(ROWS)
    parts = {file.parent.name for file in Path(bench.topics / "out").rglob("*.jsonl")}
    assert parts <= {"part-0", "part-1", "part-2"}
