"""What a supervisor and its child say to each other comes out as it went in."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate import Flow
from headgate._codec import decode, encode
from headgate.connectors import Kafka
from headgate.engine.attempt.progress import (
    BatchReport,
    Latency,
    PartitionTime,
    SourceProgress,
    StateProgress,
    StreamTimes,
)
from headgate.engine.settings import (
    AttemptSettings,
    Delivery,
    Fenced,
    OnDataLoss,
    SparkSettings,
)
from headgate.jobs.attempts.wire import (
    AttemptSpec,
    Batch,
    Loading,
    News,
    SourceEvent,
    decode_news,
    encode_news,
)

REPORT = BatchReport(
    batch=3,
    started=datetime(2026, 11, 15, 10, 0, tzinfo=UTC),
    duration=timedelta(seconds=1.5),
    sources={
        "orders": SourceProgress(5, None, 7, timedelta(seconds=2.5), '{"format":1}'),
        "files": SourceProgress(5, 100, None, None, "{}"),
    },
    outputs={"out": 5},
    state={"e": StateProgress(1, 2, timedelta(seconds=0.25), 4)},
    watermark=datetime(2026, 11, 15, 9, 55, tzinfo=UTC),
    phases={"addBatch": timedelta(seconds=1)},
    event_times={"orders": StreamTimes(None, "orders-0", {"orders-0": PartitionTime(None, False)})},
    ports={"orders": 5, "orders!": 1},
    written=4,
    latency=Latency(timedelta(seconds=0.1), timedelta(seconds=0.2), timedelta(seconds=3), 4),
)
BARE = replace(REPORT, ports={}, written=None, latency=None, watermark=None)


@pytest.mark.parametrize(
    "news",
    [Batch(REPORT), Batch(BARE), Loading(True), SourceEvent("TOPIC_GREW", "orders", "it grew")],
)
def test_news_come_out_as_they_went_in(news: News) -> None:
    assert decode_news(json.loads(json.dumps(encode_news(news)))) == news


def test_a_spec_comes_out_as_it_went_in() -> None:
    flow = Flow("store")
    rows = flow.stream(Kafka("orders", servers="h:9092", start="latest"), "id BIGINT", meta="m")
    rows.to(Kafka("out", servers="h:9092"), key="id")
    settings = AttemptSettings(
        job="store",
        lineage="L1",
        checkpoint=Path("checkpoint"),
        spark=SparkSettings(parallelism=3, log_file=Path("spark.log")),
        starts={"orders": "latest"},
        delivery=Delivery.AT_LEAST_ONCE,
        on_data_loss=OnDataLoss.CONTINUE,
        fenced=(Fenced("L0", 4, is_over=True),),
        watermark_ms=5,
        times={"orders": 7},
        partition_times={"orders": {"orders-0": 7}},
        unfinished_since_ms=9,
    )
    spec = AttemptSpec(flow.graph(), settings, Path("near"))
    assert decode(AttemptSpec, json.loads(json.dumps(encode(spec)))) == spec
