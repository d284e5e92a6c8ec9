"""State as rows: what an operator held after a batch, read from a checkpoint that stands still."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from headgate.engine.settings import HeldState

# The state variable that an enrich operator keeps its table in.
_TABLE = "table"


def held_rows(spark: SparkSession, held: HeldState) -> DataFrame:
    """Return an operator's state: `key` and `value`, in the kernel's own forms."""
    reader = (
        spark.read.format("statestore")
        .option("batchId", held.batch)
        .option("operatorId", held.operator)
        .option("stateVarName", _TABLE)
    )
    rows = reader.load(f"file:{held.checkpoint.absolute()}")
    return rows.selectExpr("key.`_1` AS key", "value.value AS value")
