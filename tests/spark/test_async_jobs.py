"""Async calls of whole jobs: a batch that is repeated gives the rows that it gave before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import Bench
from located_flow import Locate, Order, located
from located_service import Service, check, orders, served

from headgate import Flow
from headgate.jobs.job_folder import JobFolder
from headgate.testing import CrashAt, run_flow


@pytest.fixture
def service() -> Iterator[Service]:
    """Give the service that the functions ask."""
    with served() as service:
        yield service


def outputs(bench: Bench) -> dict[str, bytes]:
    """Return the content of every file that the job wrote."""
    return {
        str(file.relative_to(bench.topics)): file.read_bytes()
        for topic in ("located", "nowhere", "failed")
        for file in sorted((bench.topics / topic).rglob("part-*/*.jsonl"))
    }


def crash(bench: Bench, flow: Path, crashes: Path, point: str) -> None:
    """Run the job until it gets to a point, where its driver dies."""
    (crashes / point).touch()
    process = bench.spawn(flow, max_batch=8000, parallelism=2)
    told, _ = process.communicate(timeout=300)
    assert "exit code 77" in told, told


def test_a_batch_that_is_repeated_gives_the_same_rows_without_a_call(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench.put("zones", [{"zone": n, "name": f"zone {n}"} for n in range(3)])
    for begin in range(0, 200, 25):
        bench.put("orders", orders(200)[begin : begin + 25])
    crashes = tmp_path / "crashes"
    crashes.mkdir()
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(crashes))
    with served() as service:
        flow = bench.flow_file(located(service.url, capacity=10))
        # Answers are recorded, and no row has left.
        crash(bench, flow, crashes, "answers-recorded")
        assert not outputs(bench)
        at_first = dict(service.calls)
        # All rows of the batch are written, and it is not committed.
        crash(bench, flow, crashes, "epoch-committed")
        written, calls = outputs(bench), dict(service.calls)
        assert [n for n in at_first if calls[n] == at_first[n]], "all were asked for again"
        # A file that the open batch wrote is lost: the next attempt writes it again.
        lost = next(name for name in written if name.startswith("located/"))
        (bench.topics / lost).unlink()
        bench.run(flow, max_batch=8000, parallelism=2)
        check(service, 200, [*bench.read("located"), *bench.read("nowhere")], bench.read("failed"))
        after = outputs(bench)
        assert {name: after.get(name) for name in written} == written
        assert {n: service.calls[n] for n in calls} == calls
    home = JobFolder(bench.home, "located")
    lineage = home.find_present_run()
    assert lineage is not None
    # Those of older batches are gone.
    assert len(list((home.run_folder(lineage) / "answers" / "geo").iterdir())) == 1


def test_calls_follow_each_other_and_stand_behind_state(service: Service) -> None:
    async def twice(row: Any) -> dict[str, int]:
        return {"id": row.id, "answer": 2 * row.answer}

    async def words(row: Any) -> dict[str, Any]:
        return {"id": row.id, "zone": row.row.name.upper()}

    flow = Flow("chain")
    zones = flow.table("zones", "zone BIGINT NOT NULL, name STRING", key="zone")
    asked = flow.stream("orders", Order).call("geo", Locate(service.url), retries=1, capacity=3)
    asked.ok.call("twice", twice, schema="id BIGINT, answer BIGINT").ok.to("doubled")
    zoned = asked.ok.enrich("with-zone", zones, on="zone", into="row").matched
    zoned.call("words", words, schema="id BIGINT, zone STRING").ok.to("zoned")
    # The call behind a call makes one row more of each.
    rows = run_flow(
        flow,
        {"orders": orders(50), "zones": [{"zone": n, "name": f"zone {n}"} for n in range(5)]},
        batches=3,
        faults=[CrashAt(batch=1), CrashAt(batch=3)],
    )
    kept = [n for n in range(1, 51) if n % 11]
    assert [row["id"] for row in rows["doubled"]] == kept
    assert sorted(row["id"] for row in rows["zoned"]) == kept
    # One answer per order, also in the batches that were run twice.
    assert {n: len(given) for n, given in service.given.items()} == dict.fromkeys(kept, 1)
    answers = {n: given[0] for n, given in service.given.items()}
    assert {row["id"]: row["answer"] for row in rows["doubled"]} == {
        n: 2 * answer for n, answer in answers.items()
    }
    assert {row["id"]: row["zone"] for row in rows["zoned"]} == {
        n: f"ZONE {answer % 5}" for n, answer in answers.items()
    }
