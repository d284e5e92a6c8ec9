"""Spark's own windows on Kafka, as a user would write them; run in a process of its own.

Reads all that is in the topic batch by batch, stops, and writes Spark's progress reports as JSON
lines. Its connector wants an older client of Kafka's than the kernel's, so the two never share a
class path.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from headgate._artifacts import Artifact, resolve

TOPIC = "counts-spark"
# One by one: the first asks for a version of the second that cannot be had everywhere.
CONNECTOR = (
    Artifact(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
        494_879,
    ),
    Artifact(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
        64_975,
    ),
    Artifact(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
        9_220_052,
    ),
    Artifact(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
        156_457,
    ),
)
# What the kernel's jobs have too.
_MEMORY = "2048m"
_STATE = "spark.sql.streaming.stateStore"
_VISIT = "event_id STRING, visit_id STRING, event_time BIGINT, page STRING"
_LOOK_EVERY = 0.2


def main() -> None:
    """Count the visits."""
    wanted = _parse()
    spark = open_session(wanted.partitions, {})
    query = start(_counts(spark, wanted), wanted, topic=TOPIC)
    await_all(query, wanted.events)
    reports = [json.loads(report.json) for report in query.recentProgress]
    query.stop()
    wanted.reports.write_text("".join(f"{json.dumps(report)}\n" for report in reports))
    spark.stop()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--max-offsets", type=int, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--reports", type=Path, required=True)
    return parser.parse_args()


def open_session(partitions: int, more: Mapping[str, str]) -> SparkSession:
    """Open a session with the memory, the collector and the tasks of the kernel's jobs."""
    settings = {
        "spark.master": f"local[{partitions}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": _MEMORY,
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.jars": ",".join(map(str, resolve(CONNECTOR))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        f"{_STATE}.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
        **more,
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read_visits(
    spark: SparkSession, servers: str, max_offsets: int, *, topic: str = "visits"
) -> DataFrame:
    """Return the visits of the topic, each as the struct `visit`."""
    return read_rows(spark, servers, max_offsets, topic, _VISIT).withColumnRenamed("row", "visit")


def read_rows(
    spark: SparkSession, servers: str, max_offsets: int, topic: str, schema: str
) -> DataFrame:
    """Return the rows of a topic of JSON, each as the struct `row`."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", max_offsets)
        .load()
    )
    return records.select(f.from_json(f.col("value").cast("string"), schema).alias("row"))


def _counts(spark: SparkSession, wanted: argparse.Namespace) -> DataFrame:
    counts = (
        read_visits(spark, wanted.servers, wanted.max_offsets)
        .select("visit.visit_id", f.timestamp_millis("visit.event_time").alias("at"))
        .withWatermark("at", "5 minutes")
        .groupBy(f.window("at", "15 minutes"), "visit_id")
        .count()
    )
    row = f.struct("visit_id", "window.start", "window.end", f.col("count").alias("visits"))
    return counts.select(f.col("visit_id").alias("key"), f.to_json(row).alias("value"))


def start(
    rows: DataFrame, wanted: argparse.Namespace, *, topic: str, mode: str = "update"
) -> StreamingQuery:
    """Write rows, `key` and `value`, to a topic as fast as possible."""
    return (
        rows.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", wanted.servers)
        .option("topic", topic)
        .option("checkpointLocation", str(wanted.checkpoint))
        .outputMode(mode)
        .trigger(processingTime="0 seconds")
        .start()
    )


def await_all(query: StreamingQuery, events: int) -> None:
    """Wait until a query has read so many events."""
    while sum(report.numInputRows for report in query.recentProgress) < events:
        if not query.isActive:
            raise RuntimeError(f"Spark's own query ended: {query.exception()}")
        time.sleep(_LOOK_EVERY)


if __name__ == "__main__":
    main()
