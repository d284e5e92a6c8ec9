"""What a job tells of itself while it runs, against what it was fed: samples, graph, latency."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from bench import Bench

from headgate import Flow
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.metrics.counter_file import read_counters
from headgate.jobs.metrics.executor_file import find_executors
from headgate.jobs.metrics.vitals_file import find_vitals
from headgate.jobs.values import JobSnapshot
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.samples import Samples

ROUNDS = 4
EVENTS = 300


def watched() -> Flow:
    """Return a flow with all that is counted: a filter, a table, side outputs, refused rows."""
    flow = Flow("watched")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    events = flow.stream("events", "n BIGINT, user BIGINT, divisor BIGINT")
    kept = events.where("n % 3 <> 0")
    found = kept.enrich("with-user", users, on="user", into="found")
    found.matched.select("n", "100 / divisor AS part").to("out")
    found.missing.to("unknown")
    return flow


@dataclass
class Feeder:
    """Gives the job events round by round, looks at it from outside, and stops it."""

    bench: Bench
    fed: int = 0
    fed_at: float = 0.0
    stopped: bool = False
    running: GraphView | None = None

    def watch(self, snapshot: JobSnapshot) -> None:
        read = snapshot.totals.inputs.get("events", 0)
        now = time.time()
        if self.fed < ROUNDS and read >= self.fed * (EVENTS + 1) and now - self.fed_at > 1.5:
            self.fed += 1
            self.fed_at = now
            rows = [{"n": n, "user": n % 2, "divisor": n % 5} for n in range(EVENTS)]
            self.bench.put("events", [*rows, "no record"])
        done = self.fed == ROUNDS and read == ROUNDS * (EVENTS + 1)
        if done and self.running is None:
            self.running = FolderHome(self.bench.home).graph("watched")
        if done and not self.stopped and self._is_idle():
            self.stopped = True
            write_intent(JobFolder(self.bench.home, "watched"), Verb.STOP, {}, by="a test")

    def _is_idle(self) -> bool:
        """Tell whether the last sample says that nothing happens."""
        file = JobFolder(self.bench.home, "watched").path / "samples.jsonl"
        return "b" not in json.loads(file.read_text().splitlines()[-1])


@dataclass(frozen=True)
class Told:
    """What a job told that ran for some seconds."""

    ended: JobSnapshot
    running: GraphView
    graph: GraphView
    samples: Samples
    home: JobFolder


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    bench = Bench(tmp_path_factory.mktemp("telemetry"))
    bench.put("users", [{"id": 1, "name": "Ann"}])
    feeder = Feeder(bench)
    ended = bench.run(watched(), until_caught_up=False, watch=feeder.watch, parallelism=2)
    assert feeder.running is not None
    graph, samples = (
        FolderHome(bench.home).graph("watched"),
        FolderHome(bench.home).samples("watched"),
    )
    return Told(ended, feeder.running, graph, samples, JobFolder(bench.home, "watched"))


def edges(view: GraphView) -> dict[tuple[str, str], int | None]:
    return {(each.source, each.target): each.records for each in view.edges}


def test_every_edge_has_the_rows_that_went_over_it(told: Told) -> None:
    kept = [n for n in range(EVENTS) if n % 3]
    matched = [n for n in kept if n % 2 == 1]
    # A division by zero is no row.
    written = [n for n in matched if n % 5]
    found = edges(told.graph)
    select = "with-user.matched.select-1"
    assert found == {
        ("events", "events.where-1"): ROUNDS * EVENTS,
        ("events.where-1", "with-user"): ROUNDS * len(kept),
        ("users", "with-user"): 1,
        ("with-user", select): ROUNDS * len(matched),
        ("with-user", "unknown"): ROUNDS * (len(kept) - len(matched)),
        (select, "out"): ROUNDS * len(written),
        ("events", "dead-letters"): ROUNDS,
        ("users", "dead-letters"): 0,
        (select, "dead-letters"): ROUNDS * (len(matched) - len(written)),
    }
    assert told.ended.totals.outputs["out"] == ROUNDS * len(written)


def test_counters_are_those_of_the_graph_and_of_the_outputs(told: Told) -> None:
    counters = read_counters(told.home)
    assert counters.records_in == told.ended.totals.inputs
    assert counters.records_out == told.ended.totals.outputs
    rows = {(port.operator, port.output): port.rows for port in counters.ports.values()}
    assert rows["with-user", "matched"] == ROUNDS * len(
        [n for n in range(EVENTS) if n % 3 and n % 2]
    )
    assert rows["events", "!"] == ROUNDS
    assert counters.batches.total == told.ended.totals.batches
    assert counters.checkpoints > 0
    assert counters.latency is not None
    # Rows with a single record behind them: all that were written but dead letters of no record.
    assert 0 < counters.latency.total <= sum(told.ended.totals.outputs.values())
    assert 0 < counters.latency.sum < counters.latency.total * 60


def test_the_drivers_memory_and_time_are_measured(told: Told) -> None:
    vitals = find_vitals(told.home)
    assert vitals is not None
    pools = {"heap", "metaspace", "compiled-code", "direct", "mapped", "state"}
    assert pools | {"execution", "storage"} <= set(vitals.pools)
    heap = vitals.pools["heap"]
    assert heap.limit is not None
    assert 0 < heap.used <= heap.limit
    assert vitals.pools["metaspace"].used > 10 * 1024**2
    assert vitals.threads > 10
    # A process is larger than what its heap holds.
    assert vitals.resident > 100 * 1024**2
    counters = read_counters(told.home)
    assert counters.cpu_seconds >= vitals.cpu_seconds - 0.001 > 1
    assert counters.gc_count >= vitals.gc_count


def test_a_local_driver_counts_the_tasks_that_it_runs_itself(told: Told) -> None:
    executors = find_executors(told.home)
    assert executors is not None
    (driver,) = executors.listed
    assert (driver.id, driver.slots, driver.is_alive) == ("driver", 2, True)
    assert (executors.registered, executors.lost) == (0, 0)
    assert driver.completed > 0
    assert driver.failed == 0
    assert 0 <= driver.running <= driver.slots
    assert driver.shuffle_written > 0
    # Its memory is that of the driver.
    assert driver.vitals is None


def test_nodes_of_a_running_job_are_as_busy_and_as_fast_as_they_can_be(told: Told) -> None:
    nodes = {each.id: each.facts for each in told.running.nodes}
    busy, speed = nodes["with-user"].busy, nodes["events"].out_per_s
    assert busy is not None
    assert 0 < busy <= 1
    assert speed is not None
    # All events came within these batches, and the batches took their time.
    assert 0 < speed < ROUNDS * EVENTS
    assert nodes["with-user"].state_rows == 1
    assert nodes["events"].lag_bytes == 0


def test_samples_add_up_to_what_was_read_and_written(told: Told) -> None:
    lines = (told.home.path / "samples.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"format": 1}
    samples = [json.loads(line) for line in lines[1:]]
    read = sum(each.get("i", {}).get("events", 0) for each in samples)
    assert read == ROUNDS * (EVENTS + 1)
    outputs = told.ended.totals.outputs
    assert sum(each.get("w", 0) for each in samples) == sum(outputs.values())
    rates = told.samples.inputs["events"]
    by_rates = sum(
        (rate or 0) * _measured_seconds(told.samples, place, samples)
        for place, rate in enumerate(rates)
    )
    assert by_rates == pytest.approx(read, rel=0.02), (rates, lines)
    assert told.samples.in_per_s[-1] == 0.0
    assert told.samples.state_rows[-1] == 1


def _measured_seconds(samples: Samples, place: int, lines: list[dict[str, Any]]) -> float:
    """Return how much of a place's span the lines of the file cover; some overlap."""
    end = round(samples.at[place].timestamp() * 1000)
    begin = end - 1 - (end - 1) % (samples.every // timedelta(milliseconds=1))
    covered, reached = 0, begin
    for line in sorted(lines, key=lambda line: line["t"] - line["s"]):
        until = min(end, line["t"])
        covered += max(0, until - max(reached, line["t"] - line["s"]))
        reached = max(reached, until)
    return covered / 1000


def test_a_batchs_time_is_split_and_the_parts_are_no_longer_than_the_whole(told: Told) -> None:
    found = [
        (whole, [told.samples.phases[name][place] or 0 for name in told.samples.phases])
        for place, whole in enumerate(told.samples.batch_ms)
        if whole
    ]
    assert found
    for whole, parts in found:
        assert 0.5 * whole < sum(parts) <= 1.01 * whole


def test_latency_is_from_a_records_timestamp_to_the_commit_of_its_batch(told: Told) -> None:
    samples = told.samples
    known = [each for each in samples.latency_p99_ms if each is not None]
    assert known
    status = told.home.find_json("status.json") or {}
    # No batch took longer than the job lived, and none is quicker than its own processing.
    started = datetime.fromisoformat(status["started_at"])
    lived = (samples.at[-1] - started) / timedelta(milliseconds=1)
    for place, p50 in enumerate(samples.latency_p50_ms):
        p95, p99 = samples.latency_p95_ms[place], samples.latency_p99_ms[place]
        if p50 is not None and p95 is not None and p99 is not None:
            assert 0 < p50 <= p95 <= p99 < lived
    assert status["latency_ms"]["p50"] > 0


def test_what_happened_is_told(told: Told) -> None:
    assert [each.state for each in FolderHome(told.home.root).exceptions("watched").attempts] == [
        "STOPPED"
    ]
    history = FolderHome(told.home.root).checkpoint_history("watched")
    assert history.completed >= 1
    assert history.entries[0].kept
    assert history.entries[0].run == told.ended.lineage
    assert (told.home.checkpoints_folder(told.ended.lineage) / history.entries[0].id).is_dir()
