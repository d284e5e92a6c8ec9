"""Whether an open batch has written to Pulsar is known by the last number of its producers."""

from __future__ import annotations

from pathlib import Path

import pytest
from left_job import ENDS, LeftJob, check_leaving
from pulsar_broker import PulsarBroker

from headgate.connectors import Pulsar


@pytest.mark.parametrize("dies", ENDS)
def test_a_changed_flow_leaves_a_batch_by_what_its_producers_sent_to_pulsar(
    tmp_path: Path, pulsar: PulsarBroker, dies: bool
) -> None:
    topic = pulsar.make_topic(partitions=2, deduplicated=True)
    job = LeftJob(tmp_path, Pulsar(topic, service=pulsar.service, admin=pulsar.admin), dies=dies)
    check_leaving(job, lambda: pulsar.values(topic))
