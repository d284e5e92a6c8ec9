"""Whose transactions are ended when a job starts anew, or does not start again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate import Flow
from headgate.connectors import Kafka
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.engine.settings import Delivery, Fenced
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Origin, Run, continue_run, new_run, write_run
from headgate.jobs.runs.transactions import earlier_runs, end_transactions, has_transactions

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def graph(*servers: str) -> Graph:
    flow = Flow("store")
    rows = flow.stream("in", "id BIGINT NOT NULL")
    for number, each in enumerate(servers):
        rows.to(Kafka(f"out-{number}", servers=each))
    return flow.graph()


def run(home: JobFolder, parallelism: int = 2, origin: Origin | None = None) -> Run:
    made = new_run(home, graph("h:1"), parallelism=parallelism, checkpoints=None, now=NOW)
    made = Run(**{name: getattr(made, name) for name in Run.__slots__} | {"origin": origin})
    write_run(home, made)
    return made


def test_the_run_before_and_the_run_it_was_restored_from_may_write_no_more(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "store")
    old, before = run(home, 3), run(home)
    now = run(home, origin=Origin("chk-1", old.lineage, 1))
    assert earlier_runs(home, now, before.lineage) == (
        Fenced(before.lineage, 2),
        Fenced(old.lineage, 3, last=1),
    )


def test_tasks_that_ran_in_the_driver_alone_are_gone_with_it(tmp_path: Path) -> None:
    home, flow = JobFolder(tmp_path, "store"), graph("h:1")

    def is_over(*masters: str, checkpoints: Path | None = None) -> bool:
        """Return what the next run is told of one that was started with these masters."""
        first, *more = masters
        made = new_run(home, flow, parallelism=2, checkpoints=checkpoints, now=NOW, master=first)
        for master in more:
            made = continue_run(made, flow, job="store", master=master)
        write_run(home, made)
        (fenced,) = earlier_runs(home, run(home), made.lineage)
        return fenced.is_over

    assert is_over("local[*]")
    assert is_over("local[2]", "local")
    assert is_over("local", checkpoints=tmp_path / "elsewhere")
    assert not is_over("spark://h:7077")
    # Executors of its first start may still be at work.
    assert not is_over("k8s://h", "local[2]")
    assert not is_over("local[2]", "yarn", "local[2]")
    assert not is_over("local-cluster[2,1,1024]")
    # A manifest of an older release says nothing.
    (fenced,) = earlier_runs(home, run(home), run(home).lineage)
    assert not fenced.is_over


def test_a_run_does_not_fence_itself_nor_another_job(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "store")
    now = run(home, origin=Origin("sp-1", "of-another-job", 1))
    assert earlier_runs(home, now, now.lineage) == ()


def test_every_task_at_every_cluster_is_ended_and_what_cannot_be_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: dict[str, list[str]] = {}

    def fence(log: KafkaLog, ids: Iterable[str]) -> None:
        if log.servers == "down:1":
            raise HeadgateError("BROKER_UNREACHABLE", "cannot end it", hint="wait")
        ended[log.servers] = list(ids)

    monkeypatch.setattr("headgate.connectors.kafka.runs.groups.fence", fence)
    told: list[str] = []
    made = run(JobFolder(tmp_path, "store"))
    outputs = graph("down:1", "up:1", "up:1")
    end_transactions("store", made, outputs, lambda error: told.append(error.code))
    first = [f"headgate.store.{made.lineage}.{task}" for task in range(2)]
    assert ended == {"up:1": [*first, *(f"{each}-1" for each in first)]}
    assert told == ["BROKER_UNREACHABLE"]


def test_only_exactly_once_on_kafka_has_transactions() -> None:
    assert has_transactions(graph("h:1"), Delivery.EXACTLY_ONCE)
    assert not has_transactions(graph("h:1"), Delivery.AT_LEAST_ONCE)
    flow = Flow("files")
    flow.stream("in", "id BIGINT NOT NULL").to("out")
    assert not has_transactions(flow.graph(), Delivery.EXACTLY_ONCE)
