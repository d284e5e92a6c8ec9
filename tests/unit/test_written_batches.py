"""What a start makes of an open batch, and what the outputs say of it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate import Flow, HeadgateError
from headgate._codec import decode, encode
from headgate.connectors import Console, Kafka, Pulsar
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.contract.written import (
    NOTHING,
    Answer,
    Batches,
    Writers,
    Written,
    by_tasks,
    unknown,
)
from headgate.connectors.files import written as files
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.files.log import FilesLog
from headgate.connectors.logs import bind
from headgate.engine.session.driver_lock import await_drivers
from headgate.engine.settings import Delivery
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs import written_batches
from headgate.jobs.runs.lineage import Run, new_run, write_run
from headgate.jobs.startup.open_batch import BegunBatch, check_choice, describe_choice
from headgate.jobs.values import NO_CONSENT, Consent, OpenBatch, RunOptions

NOW = datetime(2026, 11, 15, tzinfo=UTC)
RUN = "20261115T120000-abcdef"
OTHER = "20261115T120000-fedcba"
ROWS = Written(Answer.YES, rows=3, tasks=2)


def batch(**outputs: Written) -> BegunBatch:
    records = {"orders": RecordCount(12), "users": RecordCount(0), "items": None}
    return BegunBatch(7, RUN, 6, {}, {}, records, outputs)


def test_a_batch_that_wrote_nothing_is_left_without_asking() -> None:
    left = batch(out=NOTHING, letters=NOTHING)
    check_choice(left, None, job="shop", flow_changed=True)
    check_choice(left, None, job="shop", flow_changed=False)
    assert describe_choice(left, None) == (
        "batch 7 (12 records of 'orders', an unknown number of records of 'items') was begun and "
        "wrote nothing: it is read again in a new run; no row is repeated or lost"
    )


def test_an_estimated_number_of_records_is_told_as_one() -> None:
    left = replace(batch(out=NOTHING), records={"orders": RecordCount(7_000, is_estimate=True)})
    assert describe_choice(left, None).startswith("batch 7 (about 7,000 records of 'orders')")
    assert encode(left)["records"] == {"orders": 7_000}


@pytest.mark.parametrize("flow_changed", [True, False])
@pytest.mark.parametrize(
    ("found", "told"),
    [
        (ROWS, "output 'out' holds 3 rows of it"),
        (replace(ROWS, rows=1), "output 'out' holds 1 row of it"),
        (by_tasks(2), "2 tasks committed rows of it to the log of output 'out'"),
        (unknown("nobody answers"), "output 'out' may hold rows of it (nobody answers)"),
    ],
)
def test_a_batch_that_wrote_or_may_have_is_left_as_the_user_says_or_not_at_all(
    found: Written, told: str, flow_changed: bool
) -> None:
    left = batch(out=found, letters=NOTHING)
    with pytest.raises(HeadgateError) as refused:
        check_choice(left, None, job="shop", flow_changed=flow_changed)
    assert refused.value.code == "BATCH_OPEN"
    assert ("with a changed flow" in refused.value.message) is flow_changed
    assert ("without --from" in refused.value.hint) is not flow_changed
    assert told in refused.value.message
    assert "letters" not in refused.value.message
    assert "--open-batch repeat" in refused.value.hint
    assert "--open-batch skip" in refused.value.hint
    for choice in OpenBatch:
        check_choice(left, choice, job="shop", flow_changed=flow_changed)
        assert told in describe_choice(left, choice)
    assert "written again" in describe_choice(left, OpenBatch.REPEAT)
    assert "state misses" in describe_choice(left, OpenBatch.SKIP)


def test_answers_of_several_runs_add_up_and_unknown_stays_unknown() -> None:
    assert NOTHING.plus(ROWS) == ROWS.plus(NOTHING) == ROWS
    assert ROWS.plus(ROWS) == Written(Answer.YES, rows=6, tasks=4)
    assert by_tasks(1).plus(ROWS) == Written(Answer.YES, tasks=3)
    doubt = unknown("nobody answers").plus(ROWS)
    assert (doubt.answer, doubt.rows, doubt.why) == (Answer.UNKNOWN, None, "nobody answers")


def batches(first: int = 7, last: int | None = None) -> Batches:
    return Batches(first, last, NOW)


WRITERS = Writers(RUN, f"headgate.shop.{RUN}", (f"headgate.shop.{RUN}.0",))


def test_an_embedded_topic_knows_batches_by_the_names_of_its_files(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "out")
    assert files.find_in_folder(folder.path, WRITERS, batches()) == NOTHING
    folder.create(2)
    for name, rows in (
        (f"{RUN}-0000000006-00000.jsonl", 5),
        (f"{OTHER}-0000000007-00000.jsonl", 5),
        ("mine.jsonl", 5),
    ):
        folder.publish(b"{}\n" * rows, name=name)
    assert files.find_in_folder(folder.path, WRITERS, batches()) == NOTHING
    folder.publish(b"{}\n" * 2, name=f"{RUN}-0000000007-00000.jsonl")
    folder.publish(b"{}\n" * 3, name=f"{RUN}-0000000007-00001.jsonl", partition=1)
    folder.publish(b"{}\n", name=f"{RUN}-0000000008-00001.jsonl", partition=1)
    assert files.find_in_folder(folder.path, WRITERS, batches()) == Written(Answer.YES, 6, 2)
    assert files.find_in_folder(folder.path, WRITERS, batches(7, 7)) == Written(Answer.YES, 5, 2)
    assert files.find_in_folder(folder.path, WRITERS, batches(6, 6)) == Written(Answer.YES, 5, 1)


def test_a_topic_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("no folder")
    assert files.find_in_folder(tmp_path / "out", WRITERS, batches()).answer is Answer.UNKNOWN


@pytest.fixture
def job(tmp_path: Path) -> tuple[JobFolder, Run]:
    """Give a job that writes to a terminal, to Kafka, to Pulsar and to embedded topics."""
    flow = Flow("shop")
    rows = flow.stream("in", "id BIGINT NOT NULL")
    rows.to(Kafka("of-kafka", servers="h:1"))
    rows.to(Kafka("more-of-kafka", servers="h:1"))
    rows.to(Pulsar("of-pulsar", service="pulsar://h:2"))
    rows.to(Console())
    rows.to("embedded")
    graph = bind(flow.graph(), FilesLog(tmp_path / "topics"))
    home = JobFolder(tmp_path / "home", "shop")
    run = new_run(home, graph, parallelism=2, checkpoints=None, now=NOW)
    write_run(home, run)
    home.write_job(run.lineage, flow="flow.py", options=encode(RunOptions()))
    return home, run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Writers]]:
    """Have brokers answer that two tasks wrote, and give what they are asked."""
    found: list[tuple[str, Writers]] = []

    def answer(name: str) -> Callable[[object, Writers, Batches], Written]:
        def ask(_where: object, writers: Writers, _batches: Batches) -> Written:
            found.append((name, writers))
            return by_tasks(2)

        return ask

    monkeypatch.setattr("headgate.connectors.kafka.runs.written.find_on_cluster", answer("kafka"))
    monkeypatch.setattr("headgate.connectors.pulsar.runs.written.find_in_topic", answer("pulsar"))
    return found


def test_each_output_is_asked_in_its_own_way_and_each_cluster_once(
    job: tuple[JobFolder, Run], asked: list[tuple[str, Writers]]
) -> None:
    home, run = job
    found = written_batches.find_written(home, run, batches())
    assert found == {
        "of-kafka": by_tasks(2),
        "more-of-kafka": by_tasks(2),
        "of-pulsar": by_tasks(2),
        "console": NOTHING,
        "embedded": NOTHING,
        "dead-letters": NOTHING,
    }
    assert [name for name, _ in asked] == ["kafka", "pulsar"]
    writers = asked[0][1]
    assert writers.run == f"headgate.shop.{run.lineage}"
    assert {f"{writers.run}.{task}" for task in range(2)} <= set(writers.tasks)


def test_rows_without_marks_are_unknown_whatever_the_job_was_started_with_since(
    job: tuple[JobFolder, Run], asked: list[tuple[str, Writers]]
) -> None:
    home, run = job
    written_batches.note_delivery(home, run, Delivery.EXACTLY_ONCE)
    assert written_batches.find_written(home, run, batches())["of-kafka"].answer is Answer.YES
    written_batches.note_delivery(home, run, Delivery.AT_LEAST_ONCE)
    asked.clear()
    found = written_batches.find_written(home, run, batches())
    assert {name for name, each in found.items() if each.answer is Answer.UNKNOWN} == {
        "of-kafka",
        "more-of-kafka",
        "of-pulsar",
    }
    assert "at-least-once" in found["of-kafka"].why
    assert asked == []


def test_a_run_of_an_older_release_is_judged_by_the_delivery_of_its_last_start(
    job: tuple[JobFolder, Run], asked: list[tuple[str, Writers]]
) -> None:
    home, run = job
    loose = encode(RunOptions(delivery=Delivery.AT_LEAST_ONCE))
    home.write_job(run.lineage, flow="flow.py", options=loose)
    assert written_batches.find_written(home, run, batches())["of-pulsar"].answer is Answer.UNKNOWN
    assert asked == []


def test_what_executors_elsewhere_may_still_write_is_unknown_but_for_kafka(
    job: tuple[JobFolder, Run], asked: list[tuple[str, Writers]]
) -> None:
    home, run = job
    for master in ("spark://h:7077", "local-cluster[2,1,1024]"):
        home.write_job(run.lineage, flow="f", options=encode(RunOptions(master=master)))
        found = written_batches.find_written(home, run, batches())
        assert {name for name, each in found.items() if each.answer is Answer.UNKNOWN} == {
            "of-pulsar",
            "embedded",
            "dead-letters",
        }
    assert {name for name, _ in asked} == {"kafka"}


def test_nothing_is_asked_while_a_driver_of_the_run_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests may have left a JVM in this process.
    monkeypatch.setattr("headgate._kernel.gateway.has_jvm", lambda: False)
    file = tmp_path / "driver.lock"
    await_drivers(file, wait=timedelta(0))
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(HeadgateError) as refused:
            await_drivers(file, wait=timedelta(0))
    assert refused.value.code == "DRIVER_STILL_RUNNING"
    await_drivers(file, wait=timedelta(0))


def test_consent_is_written_and_read_as_it_was_given() -> None:
    given = Consent(open_batch=OpenBatch.SKIP, allow_repeats=True)
    for consent in (NO_CONSENT, Consent(open_batch=OpenBatch.SKIP), given):
        options = RunOptions(consent=consent)
        assert decode(RunOptions, json.loads(json.dumps(encode(options)))) == options
    # Of a release that knew nothing of it.
    before = {key: value for key, value in encode(RunOptions()).items() if key != "consent"}
    assert decode(RunOptions, before).consent == NO_CONSENT
