"""What tasks tell the driver of the topics they read."""

from __future__ import annotations

import json
import uuid

from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel


def test_records_that_tasks_found_deleted_are_reported_once(spark: SparkSession) -> None:
    """A task that runs again, or another one, may find the same."""
    run = uuid.uuid4().hex
    source = kernel(spark).source
    findings = source.TaskFindings.registered(spark._jsparkSession.sparkContext(), run, "orders")
    kind = source.Finding.Kind.valueOf("DATA_LOST")
    for messages in (["offsets 1 to 2"], [], ["offsets 1 to 2", "offsets 7 to 9"]):
        of_task = findings.copyAndReset()
        assert of_task.isZero()
        for message in messages:
            of_task.add(source.Finding(kind, "in", message))
        findings.merge(of_task)
    feed = kernel(spark).EventFeed.of(run)
    told = [["DATA_LOST", "orders", message] for message in ("offsets 1 to 2", "offsets 7 to 9")]
    assert json.loads(feed.drain()) == told
    assert json.loads(feed.drain()) == []
    kernel(spark).EventFeed.forget(run)
