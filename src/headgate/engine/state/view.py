"""State as rows: an operator's state after a batch, read from an unchanging checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from headgate._locations import url_of
from headgate.engine.session.session import open_session
from headgate.engine.session.stores import stores_of
from headgate.engine.settings import RULES, HeldState, SparkSettings


def held_rows(spark: SparkSession, held: HeldState) -> DataFrame:
    """Return an operator's state: `key` and `value`, in the kernel's format.

    Of an operator with several variables, a key begins with the number of its variable.
    """
    if not held.others:
        return _rows_of(spark, held, held.variable)
    parts = [
        _rows_of(spark, held, variable).selectExpr(f"concat(X'{number:02x}', key) AS key", "value")
        for number, variable in enumerate((held.variable, *held.others))
    ]
    return reduce(DataFrame.unionAll, parts)


def readable_rows(spark: SparkSession, held: HeldState) -> DataFrame:
    """Return what people read of an operator's state, `key` and `value`: its first variable."""
    return _rows_of(spark, held, held.variable)


def _rows_of(spark: SparkSession, held: HeldState, variable: str) -> DataFrame:
    reader = (
        spark.read.format("statestore")
        .option("batchId", held.batch)
        .option("operatorId", held.operator)
        .option("stateVarName", variable)
    )
    rows = reader.load(url_of(held.checkpoint))
    # Spark's own key is the number of a bucket of keys. Below 0 are those of the copies of a
    # broadcast: each task has one, and that of bucket -1 exists for any number of tasks.
    if variable == RULES:
        rows = rows.where("key._1 = -1")
    return rows.selectExpr("user_map_key.value AS key", "user_map_value.value AS value")


def count_rows(settings: SparkSettings, held: Mapping[str, HeldState]) -> dict[str, int]:
    """Return the number of rows of each operator, by uid; reads every row."""
    places = (state.checkpoint for state in held.values())
    spark = open_session(settings, modules=stores_of(places))
    try:
        return {uid: held_rows(spark, state).count() for uid, state in held.items()}
    finally:
        spark.stop()
