"""How often a job reads rows of tables, how large they are, and that none of them is outdated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from bench import Bench, bag

from headgate import Flow
from headgate.engine.attempt import attempt
from headgate.engine.attempt.progress import BatchReport, parse_report
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.values import JobSnapshot

USERS = 300
ROUNDS = 4
KIB = 1024


def named() -> Flow:
    """Return a flow that gives events the names of their users."""
    flow = Flow("named")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    events = flow.stream("events", "n BIGINT, user BIGINT")
    events.enrich("with-user", users, on="user", into="u").matched.select("n", "u.name").to("out")
    return flow


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how often each batch that had records read state; goes on as jobs run."""
    counts: list[int] = []

    def watch(report: Mapping[str, Any], **options: Any) -> BatchReport | None:
        batch = parse_report(report, **options)
        if batch and batch.rows:
            held = report["stateOperators"]
            counts.append(sum(each["customMetrics"]["rocksdbGetCount"] for each in held))
        return batch

    monkeypatch.setattr(attempt, "parse_report", watch)
    return counts


def test_the_size_of_state_follows_its_rows_and_not_the_changes(bench: Bench) -> None:
    def run(users: int, *, times: int = 1) -> tuple[int, int]:
        for _ in range(times):
            bench.put("users", ({"id": n, "name": f"user {n:06d}"} for n in range(users)))
        totals = bench.run(named(), max_batch=64 * KIB, parallelism=2).totals
        return totals.state_rows["with-user"], totals.state_bytes["with-user"]

    bench.put("events", [])
    rows, size = run(USERS)
    many_rows, many_size = run(20 * USERS)
    assert (rows, many_rows) == (USERS, 20 * USERS)
    assert many_size / size == pytest.approx(20, rel=0.1)
    # As many rows, each of them written three times more.
    rows, size = run(20 * USERS, times=3)
    assert rows == many_rows
    assert size / many_size == pytest.approx(1, rel=0.1)
    # And a start that writes none.
    bench.put("events", [{"n": 1, "user": 1}])
    rows, size = run(0)
    assert rows == many_rows
    assert size / many_size == pytest.approx(1, rel=0.1)


def test_a_key_that_comes_again_in_a_run_is_not_read_again(bench: Bench, reads: list[int]) -> None:
    bench.put("users", ({"id": n, "name": f"user {n}"} for n in range(USERS)))
    bench.run(named(), parallelism=2)
    names = {n: f"user {n}" for n in range(USERS)}
    wanted = []
    for run in range(2):
        reads.clear()
        events = [{"n": n, "user": n % USERS} for n in range(run * 12_000, (run + 1) * 12_000)]
        bench.put("events", events)
        bench.run(named(), max_batch=64 * KIB, parallelism=2)
        wanted += [{"n": each["n"], "name": names[each["user"]]} for each in events]
        assert bench.bag("out") == bag(wanted)
        first, *others = reads
        assert first == USERS
        assert len(others) >= 3
        assert others == [0] * len(others)


@dataclass
class Renamer:
    """Renames users and, when the job has seen it, sends events of them; several times."""

    bench: Bench
    renamed: int = 0
    sent: int = 0
    stopped: bool = False

    def watch(self, snapshot: JobSnapshot) -> None:
        read = snapshot.totals.inputs
        if self.sent == self.renamed and read.get("events", 0) == self.sent * USERS:
            if self.renamed < ROUNDS:
                self.renamed += 1
                names = ({"id": n, "name": f"{n} of {self.renamed}"} for n in range(USERS))
                self.bench.put("users", names)
            elif not self.stopped:
                self.stopped = True
                write_intent(JobFolder(self.bench.home, "named"), Verb.STOP, {}, by="a test")
        elif self.sent < self.renamed and read.get("users", 0) == self.renamed * USERS:
            self.sent += 1
            self.bench.put("events", ({"n": self.sent, "user": n} for n in range(USERS)))


def test_a_row_that_changed_is_the_changed_one_in_the_next_batch(bench: Bench) -> None:
    bench.put("users", [])
    bench.put("events", [])
    renamer = Renamer(bench)
    bench.run(named(), until_caught_up=False, watch=renamer.watch, parallelism=2)
    rounds = range(1, ROUNDS + 1)
    wanted = [{"n": r, "name": f"{n} of {r}"} for r in rounds for n in range(USERS)]
    assert bench.bag("out") == bag(wanted)
