"""Spark's own stream-stream join on Kafka, as a user would write it; in a process of its own.

Reads all that is in the topics batch by batch, stops, and writes Spark's progress reports as JSON
lines.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from windows_spark import await_all, open_session, read_rows, start

TOPIC = "joined-spark"
_ORDER = "id BIGINT, customer STRING, amount DOUBLE, at BIGINT"
_PAYMENT = "id BIGINT, orderId BIGINT, amount DOUBLE, at BIGINT"
_MATCH = """
    id = orderId
    AND paidAt >= orderedAt - INTERVAL 15 MINUTES AND paidAt <= orderedAt + INTERVAL 15 MINUTES
"""


def main() -> None:
    """Join the orders with their payments."""
    wanted = _parse()
    more = {"spark.sql.streaming.join.stateFormatVersion": str(wanted.format)}
    spark = open_session(wanted.partitions, more)
    query = start(_joined(spark, wanted), wanted, topic=TOPIC, mode="append")
    await_all(query, wanted.events)
    # Batches without records emit the rows that found no match.
    query.processAllAvailable()
    reports = [json.loads(report.json) for report in query.recentProgress]
    query.stop()
    wanted.reports.write_text("".join(f"{json.dumps(report)}\n" for report in reports))
    spark.stop()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--max-offsets", type=int, required=True, help="of each topic")
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--format", type=int, required=True, help="of the join's state")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--reports", type=Path, required=True)
    return parser.parse_args()


def _joined(spark: SparkSession, wanted: argparse.Namespace) -> DataFrame:
    orders = (
        read_rows(spark, wanted.servers, wanted.max_offsets, "orders", _ORDER)
        .select(
            "row.id", "row.customer", "row.amount", f.timestamp_millis("row.at").alias("orderedAt")
        )
        .withWatermark("orderedAt", "1 minute")
    )
    payments = (
        read_rows(spark, wanted.servers, wanted.max_offsets, "payments", _PAYMENT)
        .select(
            f.col("row.id").alias("paymentId"),
            "row.orderId",
            f.timestamp_millis("row.at").alias("paidAt"),
        )
        .withWatermark("paidAt", "1 minute")
    )
    joined = orders.join(payments, f.expr(_MATCH), "leftOuter")
    after = f.unix_millis("paidAt") - f.unix_millis("orderedAt")
    row = f.struct("id", "customer", "amount", "paymentId", after.alias("afterMs"))
    return joined.select(f.col("id").cast("string").alias("key"), f.to_json(row).alias("value"))


if __name__ == "__main__":
    main()
