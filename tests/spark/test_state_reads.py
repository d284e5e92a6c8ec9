"""How often a job reads state: once for each key of a run, as long as its rows are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from bench import Bench, bag

from headgate import Flow
from headgate.engine import attempt
from headgate.engine.progress import BatchReport, parse_report

USERS = 300
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
        # Twice, in case a batch ends in the middle of the first round of users.
        assert USERS <= first <= 2 * USERS
        assert len(others) >= 3
        assert others == [0] * len(others)
