"""Whether an open batch has written to Kafka is known by the marks of its transactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_broker import KafkaBroker
from left_job import ENDS, LeftJob, check_leaving

from headgate.connectors import Kafka


@pytest.mark.parametrize("dies", ENDS)
def test_a_changed_flow_leaves_a_batch_by_what_its_transactions_committed_on_kafka(
    tmp_path: Path, kafka: KafkaBroker, dies: bool
) -> None:
    topic = kafka.make_topic(partitions=2)
    job = LeftJob(tmp_path, Kafka(topic, servers=kafka.address), dies=dies)
    check_leaving(job, lambda: kafka.values(topic))
