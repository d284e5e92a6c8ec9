"""The reprocessing story on a real Kafka: count visits, die, go back, count the later ones again.

What is final is compared with plain Python over the same input; only committed records are read.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_broker import KafkaBroker
from visits_job import JOB, VisitsJob
from visits_reference import (
    assert_counts_never_go_down,
    assert_lateness,
    count_by_cell,
    finals,
    watermark,
)

KILLS = 2


@pytest.fixture
def job(tmp_path: Path, own_kafka: KafkaBroker) -> Iterator[VisitsJob]:
    made = VisitsJob(tmp_path, own_kafka)
    yield made
    made.kill_supervisor()


@pytest.mark.long
def test_a_restored_job_counts_exactly_the_later_visits_again(job: VisitsJob, seed: int) -> None:
    # Without a checkpoint the job begins at the earliest record.
    for number in range(2):
        job.produce(number)
    job.start()
    job.settle()
    old, old_late = job.events(), job.late()
    checkpoint = job.headgate("checkpoints", JOB)[-1]["id"]

    # Later visits come while the job is killed again and again.
    moments = random.Random(seed)
    for number in range(2, 2 + KILLS):
        job.produce(number)
        time.sleep(moments.uniform(0.0, 2.0))
        job.kill_child()
    job.settle()
    events, first, late = job.events(), job.counts(), job.late()
    assert_lateness(late, old, events)
    assert_counts_never_go_down(first)
    counted = count_by_cell(events, late=late)
    over = {cell: count for cell, count in counted.items() if cell[1] <= watermark(events)}
    assert finals(first) == over

    # Checkpoints outlive the cancelled job; a restored run reads what came after the one it takes.
    assert job.end("cancel")["state"] == "CANCELED"
    plan = job.headgate("restore", JOB, "--from", checkpoint, "--dry-run")
    assert plan["records_again"] == {"visits": len(events) - len(old)}
    job.start("--from", checkpoint)
    job.settle()
    assert job.end("stop", "--drain")["state"] == "STOPPED"
    assert job.status()["inputs"] == {"visits": len(events) - len(old)}

    # It has one final row for every window that was open at the checkpoint, and for no other.
    second = [each for each in job.counts() if each not in set(first)]
    again_late = old_late + (job.late() - late)
    assert_lateness(again_late, old, events)
    assert_counts_never_go_down(second)
    counted = count_by_cell(events, late=again_late)
    assert finals(second) == {
        cell: count for cell, count in counted.items() if cell[1] > watermark(old)
    }
